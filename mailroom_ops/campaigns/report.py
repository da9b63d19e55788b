"""Output of the campaign commands: JSON for programs, and text for the terminal."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from mailroom.campaigns.runs import Run
from mailroom.errors import quantity
from mailroom_ops.campaigns.dry_run import DryRunAnswer
from mailroom_ops.campaigns.ending import End
from mailroom_ops.campaigns.files import CampaignRow
from mailroom_ops.campaigns.progress import (
    CONFLICT,
    MEANING,
)
from mailroom_ops.campaigns.results import Results
from mailroom_ops.costs.days import DayShare
from mailroom_ops.messages.rendered import Sample
from mailroom_ops.shared.deeds import Deed, with_names
from mailroom_ops.shared.screen import fold, lines, plain, print_line, right, screen, stacked, table_of, whole
from mailroom_ops.shared.times import short

SHOWN_FAULTS = 20


class RunStarted(Struct, frozen=True):
    """Output of the command `campaign start`: the run that was started."""

    campaign: str
    run: str
    scheduled_at: str


_SHOWN = (
    *("campaign", "run", "scheduled_at", "start", "state", "next_page", "cursor", "pages", "recipients"),
    *("refused", "faults", "trouble", "composed", "existed", "conflicts", "opted_out", "left_out", "failed"),
    *("expired", "paused", "resumed", "waits_until"),
    *("earlier_recipients", "earlier_refused", "earlier_opted_out", "earlier_left_out"),
)
"""Fields of `Run` in the output. It does not have fields that only functions need, such as the secret of a
run's ids."""


class RunsAnswer(Struct, frozen=True):
    """Output of the command `campaign status`: the runs of one campaign, the newest first."""

    stage: str
    campaign: str
    runs: list[dict[str, Any]]


class CampaignsAnswer(Struct, frozen=True):
    """Output of the command `campaign list`: the campaigns of this project, sorted by name. `total` is their
    number without --limit."""

    stage: str
    total: int
    campaigns: list[CampaignRow]


def run_status(run: Run, results: Results | None = None, end: End | None = None) -> dict[str, Any]:
    """Return the fields of a run for the output. `results` is None if the stage does not count results, and
    `end` if it is unknown."""
    fields = {name: getattr(run, name) for name in _SHOWN}
    return {**fields, "updated_at": run.updatedAt, "results": results, "end": end}


def print_run(
    run: Run, results: Results | None = None, end: End | None = None, deeds: Iterable[Deed] = ()
) -> None:
    screen.print(plain(f"{run.campaign}, run {run.run}"), style="bold")
    done = ((deed.verb, "", f"{short(deed.at)} {deed.words}") for deed in deeds)
    ends = [("sending", "", f"takes {end.words}")] if end else []
    rows = (*_rows(run), *done, *(_results(results) if results else ()), *ends)
    screen.print(table_of("", right(), fold(), rows=rows, box=None, show_header=False))
    if run.trouble:
        page = "" if run.state == "stopped" else f"Page {run.next_page} was not collected: "
        print_line(f"{page}{run.trouble}")
    print_faults(run.faults, run.refused)


def _rows(run: Run) -> Iterable[tuple[str, str, str]]:
    yield "state", run.phase, MEANING[run.phase]
    yield "scheduled for", "", run.scheduled_at
    yield "starts", str(len(run.starts)), "so far; pages and recipients are of the latest start"
    yield "pages", f"{run.pages:,}", "collected"
    yield "recipients", f"{run.recipients:,}", "found"
    yield "refused", f"{run.refused:,}", "faulty entries"
    yield "composed", f"{run.composed:,}", "messages put into the mailbox, by all its starts"
    yield "existed", f"{run.existed:,}", "were in the mailbox already"
    yield "opted out", f"{run.opted_out:,}", "of the topic, and get no message"
    yield "left out", f"{run.left_out:,}", "by the campaign's own code"
    yield "failed", f"{run.failed:,}", "could not be composed; each is tried again"
    earlier = f"{run.earlier_opted_out:,} opted out, {run.earlier_left_out:,} left out"
    counts = (
        ("conflicts", run.conflicts, CONFLICT),
        ("expired", run.expired, "were composed too late, and get no message"),
        (
            "before",
            run.earlier_recipients,
            f"found by earlier starts; {earlier}, {run.earlier_refused:,} faulty",
        ),
    )
    yield from ((name, f"{count:,}", words) for name, count, words in counts if count)
    if run.waits_until:
        yield "waits", "", f"until about {short(run.waits_until)}"
    if run.paused:
        yield "paused", "", with_names(run.paused)
    yield "changed", "", run.updatedAt


_SAID = {
    "under way": "without an outcome yet",
    "waiting": "of these, for the daily limit, their window, their send_at or a paused run",
    "accepted": "by the provider",
    "failed": "were not sent",
    "suppressed": "because the recipient is suppressed, or opted out of the topic",
    "cancelled": "by their producer, by a stop or a later start of the run, or by their attribute unless",
    "opted out since": "of the topic",
}
"""Notes on figures without a rate, by the figure's name."""


def _results(results: Results) -> Iterable[tuple[str, str, str]]:
    """Yield rows with the numbers of messages by outcome."""
    for figure in results.figures:
        yield figure.name, f"{figure.count:,}", figure.rate or _SAID.get(figure.name, "")


def runs_table(runs: Iterable[Run]) -> Table:
    rows = (
        (run.run, run.phase, f"{run.pages:,}", f"{run.recipients:,}", f"{run.refused:,}", f"{run.composed:,}")
        for run in runs
    )
    counts = map(right, ("pages", "recipients", "refused", "composed"))
    return table_of(whole("run"), "state", *counts, rows=rows)


def campaigns_table(rows: Iterable[CampaignRow]) -> Table:
    columns = (whole("campaign"), whole("channel"), fold("audience, schedule, state and last run", ratio=1))
    return table_of(*columns, rows=map(_cells, rows))


def _cells(row: CampaignRow) -> tuple[str | Text, ...]:
    state = f"{row.deployment.replace('_', ' ')}  {row.last_run}".rstrip()
    return row.campaign, row.channel, stacked(f"{row.audience}  {row.schedule}", state)


def print_faults(faults: Iterable[str], faulty: int) -> None:
    """Print the first sentences about faulty entries, and the number of further ones."""
    sentences = list(faults)[:SHOWN_FAULTS]
    for fault in sentences:
        print_line(f"- {fault}")
    if faulty > len(sentences):
        screen.print(f"and {faulty - len(sentences):,} more.")


def print_dry_run(answer: DryRunAnswer) -> None:
    """Print the result of a dry run: some messages, and the size of the audience."""
    for sample in answer.samples:
        screen.print(panel(sample))
    total = len([*answer.samples, *answer.opted_out, *answer.left_out, *answer.failed])
    for keys, reason in (
        (answer.opted_out, "opted out"),
        (answer.left_out, "left out by the campaign"),
        (answer.failed, "the campaign's code fails for them (the log of compose says how)"),
    ):
        if keys:
            screen.print(plain(f"Of the first {quantity(total, 'recipient')}, {reason}: {', '.join(keys)}"))
    print_faults(answer.faults, answer.refused)
    size = f"{quantity(answer.recipients, 'recipient')} on {quantity(answer.pages, 'page')}"
    faulty = quantity(answer.refused, "entry is faulty", "entries are faulty")
    screen.print(f"{size}; {faulty}. Nothing was written or sent.")
    if len(answer.days) > 1:
        screen.print("The channel has a daily limit, so the messages are sent on several days:")
        screen.print(days_table(answer.days))


def panel(sample: Sample) -> Panel:
    """Draw a message of a dry run as its recipient would see it, or the problem that would make it fail."""
    title = plain(sample.id)
    if sample.problem:
        return Panel(lines(f"Would fail: {sample.problem}"), title=title, title_align="left", style="red")
    head = f"To: {sample.to}\n" + (f"Subject: {sample.subject}\n" if sample.subject else "")
    text = sample.text or sample.html
    return Panel(lines(f"{head}\n{text.strip()}"), title=title, title_align="left")


SHOWN_DAYS = 10


def days_table(shares: Sequence[DayShare]) -> Table:
    """Return a table of the first days, and the sum of the others."""
    table = table_of("from", right("messages"), right("left for codes"))
    for share in shares[:SHOWN_DAYS]:
        table.add_row(short(share.begins), f"{share.messages:,}", f"{share.left_for_codes:,}")
    if later := shares[SHOWN_DAYS:]:
        table.add_row(
            f"and {quantity(len(later), 'more day')}", f"{sum(share.messages for share in later):,}", ""
        )
    return table
