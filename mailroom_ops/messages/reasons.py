"""The reasons why messages fail or are tried again, with the number of messages of each: `messages list
--reasons`."""

import itertools
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from mailroom.clock import iso
from mailroom.search.finder import Filter
from mailroom_ops.messages import filters
from mailroom_ops.messages.failed_messages import Failure, FailureFilter, choose
from mailroom_ops.messages.failure_groups import MOST, FailureGroup, groups_of, tried
from mailroom_ops.messages.filters import FAILURE, MessageFilter
from mailroom_ops.messages.lookup import finder_of
from mailroom_ops.shared.screen import fold, right, screen, stacked, table_of, whole
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3


class ReasonsAnswer(Struct, frozen=True):
    """Output of the command `messages list --reasons`."""

    stage: str
    since: str
    groups: list[FailureGroup]
    """The largest first, at most `--limit` of them."""
    more: bool
    """Whether there are older failures, which are not counted."""
    tried_since: str | None
    """Time of the put (ISO 8601) after which messages that are tried again are counted. Empty if all of them
    are counted; null for a stage without search."""


def reasons_of(
    session: "boto3.Session", stage: str, typed: MessageFilter, since: str, limit: int
) -> ReasonsAnswer:
    """Return the reasons of the failures that a filter matches, and of messages that are tried again.

    Counts at most MOST failures since a time like that of `--since`; by default since the start of the
    filter's run, or for a day. Raises Refused for an invalid time, and if there are none because the filter
    has a name that does not exist.
    """
    client = session.client("dynamodb")
    span = filters.bounds_of_failures(client, stage, typed.campaign, since, time.time())
    status = "" if typed.status == FAILURE else typed.status
    criteria = FailureFilter(
        typed.event_type,
        status,
        typed.template,
        typed.campaign,
        reason=typed.reason,
        domain=typed.domain,
        **span,
    )
    selection = choose(client, stage, criteria, full=False)
    answer = _grouped(session, stage, int(span["since"]) / 1000, criteria, selection)
    return replace(answer, groups=answer.groups[:limit])


def _grouped(
    session: "boto3.Session",
    stage: str,
    start: float,
    criteria: FailureFilter,
    selection: Iterator[Failure],
) -> ReasonsAnswer:
    """Return the groups of the selected failures, and of messages that are tried again. Raises Refused if
    there are none because a name in `criteria` does not exist."""
    newest = list(itertools.islice(selection, MOST))
    finder = finder_of(session, stage)
    retried = None if finder is None else tried(finder, start, criteria)
    groups = groups_of([*newest, *(retried.messages if retried else ())])
    if not groups:
        filters.check_names(session, stage, criteria, Filter.statuses)
    return ReasonsAnswer(
        stage, iso(start), groups, len(newest) == MOST, None if retried is None else retried.since
    )


def show(answer: ReasonsAnswer) -> None:
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
