"""The command `people erase`: erases a person from all data that a stage stores for longer than a month."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from msgspec import Struct, structs

from mailroom.clock import iso
from mailroom.errors import quantity
from mailroom_ops.people.erase_choices import CHOICES, erase_choices, lift_from_provider
from mailroom_ops.people.erase_messages import FoundMessages, MessageErasure, find
from mailroom_ops.people.erase_search import erase_rows
from mailroom_ops.people.person import Person
from mailroom_ops.people.stage_data import Erased, ErasurePlace, ErasureRun, Goes, StageData
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.screen import (
    aws_faults,
    bar,
    confirm,
    plain,
    print_json,
    print_line,
    screen,
    table_of,
)
from mailroom_ops.shared.times import short
from mailroom_stacks.settings.queues import DAY, UNPROCESSED_DAYS

_MOST_NAMED = 20
GOES = {
    "dead letters and their records": 14,
    "batches that a stream gave up on": UNPROCESSED_DAYS,
    "backups": 35,
}
"""Places that may still contain a recipient, and the number of days after which their data expires."""
_CHOICES = (
    "The recipient's opt-outs and suppressions ({count}) are erased too. After that, a campaign or an "
    "application that still has the recipient can send messages to it again. Delete the recipient there "
    "first, or keep opt-outs and suppressions with --keep-choices."
)


class Survey(Struct):
    """Result of a search for the person's data: the messages, and the number of entries in each place."""

    messages: FoundMessages
    places: dict[str, ErasurePlace]


def erase(
    recipient: Annotated[
        str, typer.Argument(help="A mail address, a number, a device token or an endpoint's ARN.")
    ],
    stage: Stage = "dev",
    channel: Annotated[
        str,
        typer.Option(help="A channel of your own, if the recipient is of another kind, such as a chat id."),
    ] = "",
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the data found; erase nothing.")] = False,
    keep_choices: Annotated[
        bool,
        typer.Option("--keep-choices", help="Keep opt-outs and suppressions, at the mail provider too."),
    ] = False,
    reason: Annotated[
        str, typer.Option("--why", help="The reason, to be recorded: without names, addresses and numbers.")
    ] = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Erase a recipient, in all spellings, from the data that a stage stores for over a month.

    The command deletes messages to this recipient alone, cancels them first if they wait, and removes
    the recipient from messages to several. The ledger keeps each emptied item until its retention ends, so
    that no late copy of the message is sent. A message that a worker is sending at this moment is not erased,
    but printed. The command also prints when other places, such as backups, delete their data. Exit code 1:
    some data is left; run the command again later.
    You can run it at any time. For logs and backups, see `mailroom docs erase-a-person`.

    Example: mailroom people erase ada@example.com --stage prod
    """
    with aws_faults(stage):
        data = StageData(aws_session(), stage)
        person = Person(recipient, data.default_region, channel)
        survey_run = ErasureRun(data, person, keep_choices=keep_choices)
        with _progress(data, quiet=as_json):
            first = take_stock(survey_run)
        if not as_json:
            _show_first(first)
        if dry_run:
            answer = _answer(survey_run, first, None)
        else:
            confirm(_question(first, stage, keep_choices), yes=yes)
            with _progress(data, quiet=as_json):
                answer = carry_out(survey_run, first, reason)
    if as_json:
        print_json(answer)
    elif not dry_run:
        _show(answer)
    good = not (answer.left or answer.remains or answer.ids)
    raise typer.Exit(0 if dry_run or good else 1)


def take_stock(survey_run: ErasureRun) -> Survey:
    """Search for a person's data, without changing it."""
    messages = find(survey_run.data, survey_run.person)
    entries = list(messages.found.values())
    objects = {name for entry in entries if entry.role == "whole" for name in entry.objects}
    places = [
        ErasurePlace("mailbox", sum(entry.mailbox is not None for entry in entries)),
        ErasurePlace("contents", sum(len(entry.versions) for entry in entries)),
        ErasurePlace("ledger", sum(entry.ledger is not None for entry in entries)),
        ErasurePlace("payloads", len(objects)),
        *_beside_messages(survey_run),
    ]
    return Survey(messages, {place.place: place for place in places})


def _beside_messages(run: ErasureRun) -> Iterator[ErasurePlace]:
    """Erase the person's opt-outs, suppressions and rows of the table `search`, or count them if `run.apply`
    is false."""
    for table in CHOICES:
        yield erase_choices(run, table)
    yield erase_rows(run)


def carry_out(survey_run: ErasureRun, first: Survey, reason: str = "") -> Erased:
    """Erase the data that was found, and search once more. Return the output."""
    run = ErasureRun(survey_run.data, survey_run.person, apply=True, keep_choices=survey_run.keep_choices)
    verb = f"erase {quantity(len(first.messages.found), 'message')}"
    run.data.deeds.record(verb, [run.data.deeds.person(run.person.recipient)], run.person.out_of(reason))
    messages = MessageErasure(run)
    messages.erase(first.messages)
    ses = lift_from_provider(run)
    # The rows of the table `search` are erased after the messages: a late record of the ledger's stream
    # cannot create new rows for a message that is erased.
    for place in (*messages.places.values(), *_beside_messages(run)):
        first.places[place.place].erased += place.erased
        first.places[place.place].kept = place.kept
    answer = _answer(run, first, take_stock(survey_run))
    return structs.replace(answer, cancelled=messages.cancelled, ses=ses)


def _answer(run: ErasureRun, first: Survey, last: Survey | None) -> Erased:
    """Return the output, from the survey `first` before and the survey `last` after the erasure (None in a
    dry run)."""
    ids = (last or first).messages.ids
    if last is not None:
        for name, place in first.places.items():
            place.left = max(0, last.places[name].found - last.places[name].kept)
    places = list(first.places.values())
    end = max(ids.values(), default=0)
    return Erased(
        stage=run.data.stage,
        dry_run=last is None,
        at=iso(run.data.clock()),
        by=run.data.caller,
        places=places,
        cancelled=0,
        remains=[] if last is None else run.remains,
        ids=sorted(ids),
        ids_until=iso(end) if end else None,
        ses="not_asked",
        goes=[Goes(rest_name, iso(run.data.clock() + days * DAY)) for rest_name, days in GOES.items()],
        left=sum(place.found if last is None else place.left for place in places),
    )


@contextmanager
def _progress(data: StageData, *, quiet: bool) -> Iterator[None]:
    """Show on stderr the table that is read, and the number of items read so far."""
    with bar("reading", quiet=quiet) as advance:
        data.report = lambda table, count: advance(count, name=f"{table}: {count:,} read")
        yield


def _question(first: Survey, stage: str, keep_choices: bool) -> str:
    messages = first.messages
    whole, shared = len(messages.keys("whole")), len(messages.keys("part")) + len(messages.keys("mention"))
    deleted, changed = quantity(whole, "message"), quantity(shared, "message")
    sentence = f"Delete {deleted} of {stage} and remove the recipient from {changed} to others"
    return f"{sentence}, and keep opt-outs and suppressions?" if keep_choices else f"{sentence}?"


def _show_first(first: Survey) -> None:
    rows = ((place.place, str(place.found)) for place in first.places.values())
    screen.print(table_of("place", "found", rows=rows))
    choices = sum(first.places[name].found - first.places[name].kept for name in CHOICES)
    if choices:
        screen.print(_CHOICES.format(count=choices), soft_wrap=True)


def _show(answer: Erased) -> None:
    rows = (
        (place.place, *map(str, (place.found, place.erased, place.kept, place.left)))
        for place in answer.places
    )
    screen.print(table_of("place", "found", "erased", "kept", "left", rows=rows))
    if answer.cancelled:
        screen.print(f"Cancelled without an outcome in the ledger: {quantity(answer.cancelled, 'message')}.")
    for remnant in answer.remains[:_MOST_NAMED]:
        print_line(f"{remnant.place}: {remnant.what} {remnant.why}.")
    if len(answer.remains) > _MOST_NAMED:
        screen.print(f"and {len(answer.remains) - _MOST_NAMED} more; --json names all of them.")
    if answer.ids:
        until = answer.ids_until or "deleted"
        screen.print(plain(f"These ids contain the recipient; the ledger has them until {until}:"))
        for id_ in answer.ids[:_MOST_NAMED]:
            print_line(f"  {id_}")
    for expiry in answer.goes:
        print_line(f"{expiry.what}: remaining data of this recipient is deleted by {short(expiry.by)}.")
    screen.print(
        f"{quantity(answer.left, 'entry', 'entries')} left in {answer.stage}; mail provider's suppression "
        f"list: {answer.ses.replace('_', ' ')}."
    )
