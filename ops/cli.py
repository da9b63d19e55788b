"""The commands, their options and what they print."""

import json
from pathlib import Path
from typing import Annotated

import boto3
import typer
from rich.progress import Progress

from ops import campaign_commands, preferences_commands, suppressions_commands
from ops.plan_command import plan
from ops.replay import Replay, Unprocessed
from ops.schema import schema_of
from ops.screen import Stage, aws_faults, screen

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(campaign_commands.app, name="campaign")
app.add_typer(preferences_commands.app, name="preferences")
app.add_typer(suppressions_commands.app, name="suppressions")
app.command()(plan)


@app.callback()
def main() -> None:
    """Operate a Mailroom stage. AWS credentials and region are the environment's, as for the AWS CLI."""


@app.command()
def schema(
    channel: Annotated[str, typer.Argument(help="The channel, which is the item's event_type.")],
    output: Annotated[Path | None, typer.Option(help="Write it to this file instead of printing it.")] = None,
) -> None:
    """Print the JSON Schema of a mailbox item.

    Example: mailroom schema mail > mail.schema.json
    """
    try:
        text = json.dumps(schema_of(channel), indent=2, ensure_ascii=False) + "\n"
    except KeyError as error:
        raise typer.BadParameter(str(error.args[0])) from None
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text)


@app.command()
def replay(
    stage: Stage = "dev",
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what there is; invoke nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Put back on its way what the mailbox's and the ledger's streams gave up on.

    Lambda leaves such batches in the stage's "unprocessed" bucket, whole. Each is handed to its function
    again, dispatch or outcomes; one that goes through moves to replayed/ in the same bucket, one that does
    not stays where it is. What was queued before is not sent twice: the ledger drops it. Exit code 1:
    something is left.

    Example: mailroom replay --stage prod --dry-run
    """
    with aws_faults(stage):
        found = Replay(boto3.Session(), stage).waiting()
        left = found if dry_run else _replay(Replay(boto3.Session(), stage), found, quiet=as_json)
    if as_json:
        counts = {"found": len(found), "records": sum(each.records for each in found), "left": len(left)}
        typer.echo(json.dumps(counts))
    elif dry_run:
        for each in found:
            # Whole, however narrow the terminal: the key is there to be copied.
            screen.print(
                f"{each.key}  {each.function}  {each.records} records  {each.condition}", soft_wrap=True
            )
        screen.print(f"{len(found)} batches wait; run without --dry-run to replay them.")
    else:
        screen.print(f"{len(found) - len(left)} batches replayed, {len(left)} left.")
        if left:
            screen.print("Why: the log groups of dispatch and outcomes, by the time of this command.")
    raise typer.Exit(1 if left and not dry_run else 0)


def _replay(replaying: Replay, found: list[Unprocessed], *, quiet: bool) -> list[Unprocessed]:
    """Replay each; those that are left."""
    with Progress(console=screen, disable=quiet, transient=True) as progress:
        task = progress.add_task("replaying", total=len(found))
        left = []
        for each in found:
            if not replaying.run(each):
                left.append(each)
            progress.advance(task)
    return left
