"""`preferences`: which topics people have opted out of, and what an operator does about it for them."""

from typing import Annotated

import boto3
import typer

from ops.people.answers import OptedOut, PreferencesAnswer, opted_out
from ops.people.preferences import Choices
from ops.screen import AsJson, Stage, aws_faults, plain, screen, tell
from ops.times import short

app = typer.Typer(no_args_is_help=True, help="Topics that people have opted out of: see them, change them.")

Recipient = Annotated[str, typer.Argument(help="A mail address, a number such as +16175551234, an endpoint.")]
Topic = Annotated[str, typer.Option(help="The topic, as messages name it.")]

_BY = {
    "one_click": "by their mail program's button",
    "page": "on the page behind a mail's link",
    "operator": "by an operator, for them",
}


@app.command()
def show(
    recipient: Recipient,
    stage: Stage = "dev",
    *,
    topic: Annotated[str | None, typer.Option(help="That topic alone.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a recipient has opted out of. Exit code 1: of nothing.

    Example: mailroom preferences show ada@example.com --stage prod
    """
    with aws_faults(stage):
        found = [opted_out(each) for each in Choices(boto3.Session(), stage).of(recipient, topic)]
    if as_json:
        tell(PreferencesAnswer(stage, found))
    else:
        nothing = f"has not opted out of {topic}" if topic else "has opted out of nothing"
        _print(found, f"{recipient} {nothing} in {stage}.")
    raise typer.Exit(0 if found else 1)


@app.command("opt-out")
def opt_out(recipient: Recipient, topic: Topic, stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """Send a recipient no more of a topic, as they have asked for. Exit code 1: that was so already.

    Example: mailroom preferences opt-out ada@example.com --topic followers --stage prod
    """
    with aws_faults(stage):
        choices = Choices(boto3.Session(), stage)
        changed = choices.opt_out(recipient, topic)
        found = [opted_out(each) for each in choices.of(recipient, topic)]
    if as_json:
        tell(PreferencesAnswer(stage, found))
    else:
        _print(found, "")
    raise typer.Exit(0 if changed else 1)


@app.command("opt-in")
def opt_in(recipient: Recipient, topic: Topic, stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """Send a recipient of a topic again: only where they themselves have asked for it.

    Exit code 1: they had not opted out.

    Example: mailroom preferences opt-in ada@example.com --topic followers --stage prod
    """
    with aws_faults(stage):
        old = [opted_out(each) for each in Choices(boto3.Session(), stage).opt_in(recipient, topic)]
    if as_json:
        tell(PreferencesAnswer(stage, old))
    elif old:
        screen.print(plain(f"{old[0].recipient} gets {topic} of {stage} again."), soft_wrap=True)
    else:
        screen.print(plain(f"{recipient} has not opted out of {topic} in {stage}."), soft_wrap=True)
    raise typer.Exit(0 if old else 1)


def _print(found: list[OptedOut], otherwise: str) -> None:
    for sentence in map(_sentence, found) if found else (otherwise,):
        screen.print(plain(sentence), soft_wrap=True)


def _sentence(found: OptedOut) -> str:
    return f"{found.recipient} gets no {found.topic} since {short(found.since)}: opted out {_BY[found.by]}."
