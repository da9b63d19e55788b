"""The command `failures`: lists the messages that failed, bounced, were not delivered, or caused a complaint,
with the reasons; or groups of messages with the same reason."""

import itertools
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from mailroom.clock import iso
from mailroom.search.finder import Filter
from mailroom_ops.messages import filters
from mailroom_ops.messages.failed_messages import Failure, FailureFilter, choose
from mailroom_ops.messages.failure_groups import MOST, FailureGroup, groups_of, tried
from mailroom_ops.messages.failures_csv import print_csv
from mailroom_ops.messages.search import finder_of
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import (
    Refused,
    aws_faults,
    errors,
    fold,
    print_answer,
    right,
    screen,
    stacked,
    table_of,
    whole,
)
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3


class FailuresAnswer(Struct, frozen=True):
    """Output of the command `failures`."""

    stage: str
    since: str
    failures: list[Failure]
    """The newest first, at most `--limit` of them."""
    more: bool
    """Whether there are more failures than `--limit` allows."""


class GroupsAnswer(Struct, frozen=True):
    """Output of the command `failures --groups`."""

    stage: str
    since: str
    groups: list[FailureGroup]
    """The largest first, at most `--limit` of them."""
    more: bool
    """Whether there are older failures, which are not counted."""
    tried_since: str | None
    """Time of the put (ISO 8601) after which messages that are tried again are counted. Empty if all of them
    are counted; null for a stage without search."""


def failures(
    stage: Stage = "dev",
    *,
    since: Annotated[
        str | None,
        typer.Option(
            help="The earliest time: 24h, 2d, 2026-11-20 or an ISO time; default: 24h, or the start of the "
            "run in --campaign."
        ),
    ] = None,
    channel: filters.Channel = "",
    status: filters.Status = "",
    reason: Annotated[str, typer.Option(help="Only messages with this error code, such as invalid.")] = "",
    template: filters.Template = "",
    campaign: filters.Campaign = "",
    domain: Annotated[str, typer.Option(help="Only mails to recipients of this domain.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Print at most this many failures.")] = 50,
    full: Annotated[bool, typer.Option("--full", help="Do not mask addresses and numbers.")] = False,
    as_csv: filters.AsCsv = False,
    groups: Annotated[
        bool,
        typer.Option(
            "--groups",
            help="Print the reasons instead, with the numbers of messages, and include messages that are "
            "tried again and dead letters.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the messages that failed, bounced, were not delivered, or caused a complaint, the newest first,
    with the reasons. Addresses and numbers are masked.

    --since is compared with the time at which a message failed. Dead letters are not failures: see mailroom
    dead-letters list. --csv ignores --limit. Exit code 0, even if messages failed.

    If an alarm rings because many messages fail or are not accepted, --groups prints the reason of most of
    them: equal reasons are counted together, among the newest 5,000 failures since --since and the newest
    1,000 messages that are tried again, whatever --since says. The search for the latter examines 20,000
    messages at most, and the output says how far back it got.

    Example: mailroom failures --since 2d --channel mail --stage prod

    Example: mailroom failures --groups --since 1h --stage prod
    """
    with aws_faults(stage):
        if as_csv and as_json:
            raise Refused("--csv and --json exclude each other; leave out one of them.")
        if groups and (as_csv or full):
            raise Refused(
                f"--groups and --{'csv' if as_csv else 'full'} exclude each other; leave out one of them."
            )
        session = aws_session()
        client = session.client("dynamodb")
        span = filters.bounds_of_failures(client, stage, campaign, since or "", time.time())
        start = int(span["since"]) / 1000
        criteria = FailureFilter(
            channel, status, template, campaign, reason=reason, domain=domain.lower(), **span
        )
        with errors.status("reading the ledger"):
            selection = choose(client, stage, criteria, full=full)
            if groups:
                answer = _grouped(session, stage, start, criteria, selection)
                answer = replace(answer, groups=answer.groups[:limit])
                print_answer(answer, _show_groups, as_json=as_json)
                return
            newest = list(itertools.islice(selection, limit + 1))
            if not newest:
                filters.check_names(session, stage, criteria, criteria.statuses)
        if as_csv:
            print_csv(itertools.chain(newest, selection))
            return
    print_answer(
        FailuresAnswer(stage, iso(start), newest[:limit], len(newest) > limit), _show, as_json=as_json
    )


def _show(answer: FailuresAnswer) -> None:
    span = f"since {short(answer.since)} in {answer.stage}"
    if answer.failures:
        columns = (whole("when (UTC)"), whole("channel"), fold("message", ratio=1))
        screen.print(table_of(*columns, rows=map(_cells, answer.failures)))
    if answer.more:
        screen.print(f"The newest {len(answer.failures):,} {span}; --limit shows more.")
    else:
        screen.print(f"{len(answer.failures):,} went wrong {span}.")


def _cells(failure: Failure) -> tuple[str | Text, ...]:
    sentence = f"{failure.status}, {failure.why}: {failure.message}"
    message = stacked(failure.id, f"to {failure.to}", sentence)
    return short(failure.at).removesuffix(" UTC"), failure.event_type, message


def _grouped(
    session: "boto3.Session",
    stage: str,
    start: float,
    criteria: FailureFilter,
    selection: Iterator[Failure],
) -> GroupsAnswer:
    """Return the groups of the selected failures, and of messages that are tried again. Raises Refused if
    there are none because a name in `criteria` does not exist."""
    newest = list(itertools.islice(selection, MOST))
    finder = finder_of(session, stage)
    retried = None if finder is None else tried(finder, start, criteria)
    groups = groups_of([*newest, *(retried.messages if retried else ())])
    if not groups:
        filters.check_names(session, stage, criteria, Filter.statuses)
    return GroupsAnswer(
        stage, iso(start), groups, len(newest) == MOST, None if retried is None else retried.since
    )


def _show_groups(answer: GroupsAnswer) -> None:
    span = f"since {short(answer.since)} in {answer.stage}"
    if answer.groups:
        columns = (right("messages"), whole("first (UTC), channel"), fold("reason", ratio=1))
        screen.print(table_of(*columns, rows=map(_cells_of_group, answer.groups)))
    else:
        screen.print(f"No message failed or is tried again {span}.")
    if answer.more:
        screen.print(
            f"Only the newest {MOST:,} failures {span} are counted; use a later --since, or --channel."
        )
    if answer.tried_since is None:
        screen.print("Messages that are tried again are not counted, because the stage has no search.")
    elif answer.tried_since:
        screen.print(
            f"Messages that are tried again are counted if they were put after {short(answer.tried_since)}."
        )


def _cells_of_group(group: FailureGroup) -> tuple[str | Text, ...]:
    of = f"{group.template}: " if group.template else ""
    code = f"{group.reason} ({group.field})" if group.field else group.reason
    reason = stacked(f"{of}{group.status}, {code}", group.message, f"such as {group.example}")
    first = stacked(short(group.since).removesuffix(" UTC"), group.event_type)
    return f"{group.messages:,}", first, reason
