"""The commands `campaign`: start a campaign, show its progress, pause it, stop it."""

from functools import cache, partial
from shlex import quote
from typing import Annotated

import typer
from msgspec import structs

from mailroom.campaigns.runs import Run
from mailroom.errors import quantity
from mailroom.search.finder import PAGE
from mailroom_ops.campaigns import files
from mailroom_ops.campaigns import report as view
from mailroom_ops.campaigns.day import CampaignDay
from mailroom_ops.campaigns.deployed import DeployedCampaigns, RunStart
from mailroom_ops.campaigns.dry_run import DryRun
from mailroom_ops.campaigns.ending import end_of, figures_of
from mailroom_ops.campaigns.progress import Progress
from mailroom_ops.campaigns.report import CampaignsAnswer, RunsAnswer, RunStarted, run_status
from mailroom_ops.campaigns.results import Results, ResultsReader
from mailroom_ops.messages.filter_options import Limit
from mailroom_ops.messages.rendered import samples_of
from mailroom_ops.shared.deeds import with_names
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.screen import aws_faults, bar, confirm, print_answer, print_json, print_line, screen

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Start a campaign, show its runs, pause and stop them.",
)

Name = Annotated[str, typer.Argument(help="The campaign: the name of its folder in campaigns/.")]
RUN = "The run, such as 2026-11-18T13:00Z."
RunName = Annotated[str, typer.Option(help=RUN)]
Reason = Annotated[str, typer.Option("--why", help="The reason, which mailroom campaign status shows.")]
LATEST = 10


@app.command("list")
def list_(stage: Stage = "dev", *, limit: Limit = None, as_json: AsJson = False) -> None:
    """List the campaigns of this folder, sorted by name, and the state of each in a stage.

    Example: mailroom campaign list --stage prod
    """
    with aws_faults(stage):
        enabled, total = files.enabled(stage), len(files.names())
        rows = files.campaign_rows(DeployedCampaigns(aws_session(), stage), limit or PAGE)
    if as_json:
        print_json(CampaignsAnswer(stage, total, rows))
        return
    if rows:
        screen.print(view.campaigns_table(rows))
    screen.print(f"{quantity(total, 'campaign')}, {len(enabled):,} enabled in {stage}.")
    if len(rows) < total:
        screen.print(f"More: --limit {total}")


@app.command()
def start(
    name: Name,
    stage: Stage = "dev",
    *,
    run: Annotated[str | None, typer.Option(help=f"{RUN} Default: a new run, named by its minute.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Start a new run with the name in --run.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the audience and show three messages; send nothing.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Start a campaign now. Without --run, a new run starts, named after the present minute.

    With --run, an earlier run starts again, also right after a stop or a pause: people of the present
    audience whose message was not sent yet get it, with its present content. Other unsent messages of the run
    are cancelled. A run can be started again for 60 days.

    A new name needs --new, because every recipient gets a message in each run. Exit code 1: a message of a
    dry run would fail, or all entries of its audience are faulty.

    Example: mailroom campaign start weekly-followers --stage prod --dry-run
    """
    with aws_faults(stage):
        files.check(name, stage)
        campaigns = DeployedCampaigns(aws_session(), stage)
        starting = campaigns.starting(name, run, new=new or dry_run)
        day = CampaignDay.of(aws_session(), stage, str(files.read(name).get("channel")), campaigns.clock)
        if dry_run:
            raise typer.Exit(_dry_run(starting, stage, day, as_json=as_json))
        confirm(_question(starting, stage, day), yes=yes)
        campaigns.start(starting)
    _say_started(starting, stage, as_json=as_json)


@app.command()
def status(
    name: Name,
    stage: Stage = "dev",
    *,
    run: Annotated[str | None, typer.Option(help=f"{RUN} Default: the latest run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the progress of a run, the outcomes of its messages, and the faulty entries of its audience.

    Exit code 1: the campaign has had no run in the stage.

    Example: mailroom campaign status weekly-followers --stage prod
    """
    with aws_faults(stage):
        campaigns = DeployedCampaigns(aws_session(), stage)
        runs = [campaigns.run(name, run)] if run else campaigns.runs(name, LATEST)
        settings, session, clock = files.settings_of(name, runs), aws_session(), campaigns.clock
        reader = ResultsReader(session, stage)
        results = [reader.of(entry, settings.get("topic")) for entry in runs]
        figures, channel = cache(partial(figures_of, session, stage, clock)), str(settings.get("channel"))
        ends = [
            end_of(session, Progress(*row), channel, figures, clock)
            for row in zip(runs, results, strict=True)
        ]
        deeds = campaigns.deeds_of(runs[0]) if runs else []
    if as_json:
        print_json(RunsAnswer(stage, name, [*map(run_status, runs, results, ends)]))
    elif runs:
        view.print_run(runs[0], results[0], ends[0], deeds)
        if len(runs) > 1:
            screen.print("\nEarlier runs:")
            screen.print(view.runs_table(runs[1:]))
    else:
        screen.print(f"{name} has had no run in {stage}.")
    raise typer.Exit(0 if runs else 1)


@app.command()
def stop(
    name: Name,
    run: RunName,
    reason: Reason,
    stage: Stage = "dev",
    *,
    lost: Annotated[
        bool, typer.Option("--lost", help="The table of runs has lost the run, and messages wait for it.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Stop a run: it collects no further page of its audience, and after some seconds sends no further
    message.

    Its messages that are not sent yet are cancelled, each when its turn comes. If you start the run again, it
    sends to the people of the then audience who have not got their message, each once.

    With --lost, a run that is missing in the table of runs is recorded as stopped, so that the messages that
    wait for it are cancelled. It can never be started again. Exit code 1: the run was stopped already.

    Example: mailroom campaign stop weekly-followers --run 2026-11-18T13:00Z --why "wrong list" --stage prod
    """
    with aws_faults(stage):
        campaigns, results = DeployedCampaigns(aws_session(), stage), None
        if lost:
            details = "and cancel the messages that wait for it? It can never be started again"
        else:
            before = campaigns.run(name, run)
            run, results = before.run, ResultsReader(aws_session(), stage).of(before, None)
            details = f"with {quantity(before.recipients, 'recipient')} collected?"
        confirm(f"Stop run {run} of {name} in {stage}, {details}", yes=yes)
        stopped = campaigns.stop(name, run, reason, lost=lost)
        after = campaigns.run(name, run)
    if as_json:
        print_json(run_status(after))
    elif lost:
        print_line(f"Run {run} is recorded as stopped. Messages that wait for it are cancelled in minutes.")
    elif stopped:
        screen.print(
            f"Stopped.{_so_far(after, results)} To start it again: "
            f"mailroom campaign start {quote(name)} --run {quote(after.run)} --stage {stage}",
            soft_wrap=True,
        )
    else:
        screen.print(f"Run {after.run} of {name} is stopped already.", soft_wrap=True)
    raise typer.Exit(0 if stopped else 1)


@app.command()
def pause(name: Name, run: RunName, reason: Reason, stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """Pause a run: it collects no further page of its audience, and after some seconds sends no further
    message.

    Messages that are not sent yet wait, and keep their order. To continue, use mailroom campaign resume.

    Example: mailroom campaign pause weekly-followers --run 2026-11-18T13:00Z --why "wrong link" --stage prod
    """
    with aws_faults(stage):
        paused = DeployedCampaigns(aws_session(), stage).pause(name, run, reason)
    print_answer(run_status(paused), lambda _: view.print_run(paused), as_json=as_json)


@app.command()
def resume(
    name: Name, run: RunName, reason: Reason, stage: Stage = "dev", *, as_json: AsJson = False
) -> None:
    """Resume a paused run: within minutes, its waiting messages are sent, the oldest first.

    A run that has paused itself for its bounces or complaints pauses itself again at twice their share.

    Example: mailroom campaign resume weekly-followers --run 2026-11-18T13:00Z --why "link works" --stage prod
    """
    with aws_faults(stage):
        resumed = DeployedCampaigns(aws_session(), stage).resume(name, run, reason)
    print_answer(run_status(resumed), lambda _: view.print_run(resumed), as_json=as_json)


def _so_far(run: Run, results: Results | None) -> str:
    """Return a sentence with the number of messages of a stopped run that a provider has accepted, and the
    number that will be cancelled. Without results, the sentence has only the number of messages that were
    put into the mailbox."""
    if results is None:
        return f" Of {quantity(run.composed, 'message')}, those that are not sent yet are cancelled."
    sent = quantity(results.accepted, "message was sent", "messages were sent")
    return f" {sent}; {results.under_way:,} will be cancelled in their turn."


def _question(starting: RunStart, stage: str, day: CampaignDay | None) -> str:
    again = so_far = ""
    if starting.known:
        again = " again"
        paused = f" It is paused {with_names(starting.known.paused)}." if starting.known.paused else ""
        so_far = (
            f"{paused} It has put {quantity(starting.known.composed, 'message')} into the mailbox. People of "
            "the present audience whose message was not sent yet get it, with its present content."
        )
    room = (
        f" The daily limit allows {quantity(day.room.recipients, 'recipient')} now; the rest follow later."
        if day
        else ""
    )
    return f"Start {starting.campaign} in {stage}, run {starting.run}{again}?{so_far}{room}"


def _say_started(starting: RunStart, stage: str, *, as_json: bool) -> None:
    again = " again" if starting.known else ""
    which = f"{quote(starting.campaign)} --run {quote(starting.run)} --stage {stage}"
    sentence = (
        f"{starting.campaign} is started{again}, run {starting.run}, scheduled for {starting.scheduled_at}. "
        f"To see its progress: mailroom campaign status {which}"
    )
    answer = RunStarted(starting.campaign, starting.run, starting.scheduled_at)
    print_answer(answer, lambda _: print_line(sentence), as_json=as_json)


def _dry_run(starting: RunStart, stage: str, day: CampaignDay | None, *, as_json: bool) -> int:
    """Count an audience, and print three of its messages. Return the exit code: 1 if a message would fail, or
    if all entries are faulty."""
    session = aws_session()
    samples = samples_of(session, stage)
    with bar("counting recipients", quiet=as_json) as advance:
        answer = DryRun(session, starting, stage).run(
            samples, lambda count: advance(count, name=f"{quantity(count, 'recipient')} counted")
        )
    if day is not None:
        answer = structs.replace(answer, days=day.shares(answer.recipients))
    print_answer(answer, view.print_dry_run, as_json=as_json)
    faulty = answer.refused and not answer.recipients
    return 1 if faulty or answer.failed or any(sample.problem for sample in answer.samples) else 0
