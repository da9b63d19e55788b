"""`campaign`: start one, look how far it is, stop it."""

from shlex import quote
from typing import Annotated

import boto3
import typer

from ops.campaigns import listing, progress
from ops.campaigns import screen as view
from ops.campaigns.answers import Listed, Runs, Started, stands
from ops.campaigns.deployed import Campaigns, Start
from ops.campaigns.files import CampaignFiles
from ops.screen import AsJson, Stage, Yes, aws_faults, errors, plain, print_json, screen

app = typer.Typer(
    no_args_is_help=True, help="Messages to many: start a campaign, see how far it is, stop it."
)

Name = Annotated[str, typer.Argument(help="The campaign: its folder under campaigns/.")]
RUN = "The run, such as 2026-11-18T13:00Z."
LATEST = 10


@app.command("list")
def list_(stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """Print the campaigns of this repository, and how each stands in a stage.

    Example: mailroom campaign list --stage prod
    """
    with aws_faults(stage):
        files = CampaignFiles()
        enabled = files.enabled(stage)
        rows = listing.rows(files, Campaigns(boto3.Session(), stage))
    if as_json:
        print_json(Listed(stage, rows))
        return
    if rows:
        screen.print(view.campaigns_table(rows))
    screen.print(f"{len(rows)} campaigns, {len(enabled)} of them enabled in {stage}.")


@app.command()
def start(
    name: Name,
    stage: Stage = "dev",
    *,
    run: Annotated[
        str | None, typer.Option(help=f"{RUN} One that was begun goes on; without it, a new one.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Begin the run that --run names, if need be.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the audience and show three messages; send nothing.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Until all of it is in the mailbox.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Start a campaign by hand. Without --run a new run begins, named by this minute.

    A run that was begun goes on: only what was not yet sent is sent, whatever became of it before. A name
    that no run has needs --new, for in another run everybody gets a message again. Exit code 1: of a dry
    run, a message would fail; of --wait, not all of the run came into the mailbox.

    Example: mailroom campaign start weekly-followers --stage prod --dry-run
    """
    with aws_faults(stage):
        files = CampaignFiles()
        files.check(name, stage)
        campaigns = Campaigns(boto3.Session(), stage)
        starting = campaigns.starting(name, run, new=new or dry_run)
        if dry_run:
            raise typer.Exit(progress.dry_run(files, starting, stage, as_json=as_json))
        if not yes:
            typer.confirm(_question(starting, stage), abort=True, err=True)
        campaigns.start(starting)
        _say_started(starting, as_json=as_json and not wait)
        if wait:
            raise typer.Exit(progress.wait(campaigns, starting, as_json=as_json))


@app.command()
def status(
    name: Name,
    stage: Stage = "dev",
    *,
    run: Annotated[str | None, typer.Option(help=f"{RUN} Without it, the latest.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say how far a run has come, and which entries of its audience are not as they must be.

    Exit code 1: the campaign has had no run.

    Example: mailroom campaign status weekly-followers --stage prod
    """
    with aws_faults(stage):
        CampaignFiles().read(name)
        campaigns = Campaigns(boto3.Session(), stage)
        found = [campaigns.run(name, run)] if run else campaigns.runs(name, LATEST)
    if as_json:
        print_json(Runs(stage, name, [stands(each) for each in found]))
    elif found:
        view.print_run(found[0])
        if len(found) > 1:
            screen.print("\nBefore:")
            screen.print(view.runs_table(found[1:]))
    else:
        screen.print(f"{name} has had no run in {stage}.")
    raise typer.Exit(0 if found else 1)


@app.command()
def stop(
    name: Name,
    run: Annotated[str, typer.Option(help=RUN)],
    stage: Stage = "dev",
    *,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Stop a run: no further page is collected, and nothing more of it composed.

    What lies in the mailbox already is sent. A stopped run goes on when it is started again. Exit code 1: it
    was stopped before.

    Example: mailroom campaign stop weekly-followers --run 2026-11-18T13:00Z --stage prod
    """
    with aws_faults(stage):
        CampaignFiles().read(name)
        campaigns = Campaigns(boto3.Session(), stage)
        found = campaigns.run(name, run)
        if not yes:
            collected = f"with {found.recipients:,} recipients collected"
            typer.confirm(f"Stop run {found.run} of {name} in {stage}, {collected}?", abort=True, err=True)
        stopped = campaigns.stop(name, found.run)
        now = campaigns.run(name, found.run)
    if as_json:
        print_json(stands(now))
    elif stopped:
        screen.print(
            f"Stopped. What is in the mailbox goes out: {now.composed:,} messages. To go on: "
            f"mailroom campaign start {quote(name)} --run {quote(now.run)} --stage {stage}",
            soft_wrap=True,
        )
    else:
        screen.print(f"Run {now.run} of {name} is stopped already.", soft_wrap=True)
    raise typer.Exit(0 if stopped else 1)


def _question(starting: Start, stage: str) -> str:
    goes_on = f", which has put {starting.known.composed:,} messages" if starting.known else ""
    verb = "Go on with" if starting.known else "Start"
    return f"{verb} {starting.campaign} in {stage}, run {starting.run}{goes_on}?"


def _say_started(starting: Start, *, as_json: bool) -> None:
    if as_json:
        print_json(Started(starting.campaign, starting.run, starting.scheduled_at))
        return
    verb = "goes on" if starting.known else "is started"
    errors.print(plain(f"{starting.campaign} {verb}, run {starting.run}, for {starting.scheduled_at}."))
