"""Groups of messages that failed, or are being tried again, for the same reason."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailroom.clock import iso
from mailroom.errors import Invalid
from mailroom.ledger.status_reader import MessageStatus
from mailroom.message.outcome import FAILED
from mailroom.search.finder import Filter, Finder
from mailroom_ops.messages.failed_messages import Failure, FailureFilter, failure_of, sentence_of
from mailroom_ops.shared.refusals import Refused

MOST = 5_000
"""Maximum number of failures that are read for groups."""
MOST_TRIED, PAGES = 1_000, 20
"""Maximum number of messages in trouble, and of pages of the search, that are read for groups. A page
examines as many messages as may be added, but at least 200."""
LONGEST_TRIES_SECONDS = 14_400
"""Seconds for which a message is usually tried until it becomes a dead letter."""


class FailureGroup(Struct, frozen=True):
    """Messages that failed, or are being tried again, for the same reason."""

    messages: int
    since: str
    """Time of the first failure, or of the put of the first message that is tried again (ISO 8601)."""
    event_type: str
    status: str
    template: str
    reason: str
    field: str
    message: str
    """Sentence about the newest message."""
    example: str
    """Id of the newest message."""

    @property
    def filter(self) -> dict[str, str]:
        """Fields of a `FailureFilter` that only the messages of the group match."""
        names = ("event_type", "status", "template", "reason", "field")
        return {**{name: getattr(self, name) for name in names}, "sentence": sentence_of(self.message)}


def groups_of(failures: Iterable[Failure]) -> list[FailureGroup]:
    """Return the groups of failures, which begin with the newest, the largest group first."""
    by_reason: dict[tuple[str, ...], list[Failure]] = {}
    for failure in failures:
        attributes = (failure.event_type, failure.status, failure.template, failure.reason, failure.field)
        by_reason.setdefault((*attributes, failure.sentence), []).append(failure)
    groups = [_group(alike) for alike in by_reason.values()]
    return sorted(groups, key=lambda group: -group.messages)


def _group(alike: Sequence[Failure]) -> FailureGroup:
    newest = alike[0]
    return FailureGroup(
        len(alike),
        min(failure.at for failure in alike),
        newest.event_type,
        newest.status,
        newest.template,
        newest.reason,
        newest.field,
        newest.message,
        newest.id,
    )


class _Troubled(Filter, frozen=True):
    """Filter of messages whose latest try did not send them."""

    def takes(self, message: MessageStatus) -> bool:
        return bool(message.trouble) and super().takes(message)


class Tried(Struct, frozen=True):
    """Messages that are tried again, or are dead letters."""

    messages: list[Failure]
    """The newest first, in the form of failures."""
    since: str
    """Time of the put (ISO 8601) after which they are complete; empty if older ones are complete too."""


def tried(finder: Finder, start: float, criteria: FailureFilter) -> Tried:
    """Search for messages that are tried again, or are dead letters. A message may be tried for hours, so the
    search begins LONGEST_TRIES_SECONDS before `start` (epoch seconds). It ends earlier after MOST_TRIED
    messages or PAGES pages. Raises Refused for an invalid status."""
    if criteria.status in FAILED:  # a message with an outcome is not tried any more
        return Tried([], "")
    filter_ = _Troubled(criteria.event_type, criteria.status, criteria.template, criteria.campaign)
    earliest, since, cursor = iso(start - LONGEST_TRIES_SECONDS), "", ""
    troubled: list[MessageStatus] = []
    for _ in range(PAGES):
        try:
            page = finder.newest(filter_, cursor, MOST_TRIED - len(troubled))
        except Invalid as fault:
            raise Refused(f"{fault}.") from None
        troubled += page.messages
        since, cursor = page.looked_back_to or "", page.cursor or ""
        if not cursor or since < earliest or len(troubled) == MOST_TRIED:
            break
    failures = (replace(failure_of(message, full=False), at=message.times["putAt"]) for message in troubled)
    complete = not cursor or since < earliest
    criteria = replace(criteria, status="")  # the search has compared the status
    return Tried([failure for failure in failures if criteria.takes(failure)], "" if complete else since)
