"""Groups of messages that failed, or are being tried again, for the same reason."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mailroom.clock import epoch
from mailroom.ledger.status_reader import MessageStatus
from mailroom.search.finder import Filter, Finder
from mailroom_ops.messages.failed_messages import Failure, FailureFilter

MOST = 5_000
"""Maximum number of failures that are read for groups."""
TRIED = 500
"""Maximum number of messages in trouble that are read for groups."""
DEAD_LETTER = "dead letter"
"""Status of a group of messages that are dead letters."""
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|[^\s@]{0,64}@\S*|…?\d+")
"""Pattern of the parts in which the sentences about two messages differ if they have the same reason: values,
addresses and numbers."""


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


def groups_of(failures: Iterable[Failure]) -> list[FailureGroup]:
    """Return the groups of failures, which begin with the newest, the largest group first."""
    by_reason: dict[tuple[str, ...], list[Failure]] = {}
    for failure in failures:
        sentence = _VARYING.sub("…", failure.message)
        attributes = (failure.event_type, failure.status, failure.template, failure.reason, failure.field)
        by_reason.setdefault((*attributes, sentence), []).append(failure)
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


def tried(finder: Finder, start: float, criteria: FailureFilter) -> list[Failure]:
    """Return the newest messages that were put after `start` (epoch seconds) and are tried again, or are dead
    letters, in the form of failures. Raises Invalid."""
    filter_ = _Troubled(criteria.event_type, criteria.status, criteria.template, criteria.campaign)
    messages = finder.newest(filter_, size=TRIED).messages
    failures = (_failure(message) for message in messages if epoch(message.times["putAt"]) >= start)
    return [failure for failure in failures if criteria.takes(failure)]


def _failure(message: MessageStatus) -> Failure:
    trouble = message.trouble or {}
    return Failure(
        message.times["putAt"],
        message.id,
        message.event_type,
        DEAD_LETTER if "dead_lettered_at" in message.times else message.status,
        "",
        trouble.get("code", ""),
        trouble.get("message", ""),
        message.attempts,
        template=message.template or "",
        campaign=message.campaign or "",
    )
