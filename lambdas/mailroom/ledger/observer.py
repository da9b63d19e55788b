"""Writes a provider's events into the ledger. The result does not depend on the order of the events, and an
event may arrive twice.

Two rules ensure this. A status is replaced only by a status of a higher rank (see `Status`), and a fact is
written only if it is new. An event about an earlier attempt is ignored.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mailroom.aws.dynamo_updates import ConditionFailed, Update
from mailroom.aws.dynamo_values import Sets, number, string
from mailroom.ledger.items import error_of, facts_of
from mailroom.ledger.ledger import KNOWN, Ledger, earlier_than
from mailroom.ledger.table import TRY_NOTES
from mailroom.message.outcome import Event, Facts, Status, rank

_GOOD = (None, "sent", "delivered")
_FINAL = ("undelivered", "delivered")
_SOME = "for at least one of its recipients; see `recipients` in the ledger for the reason"


class Seen(Struct, frozen=True):
    """Result of `observe` for a message in the ledger, to whose latest attempt the events belong."""

    item: dict[str, Any]
    """Ledger item of the message, with Python values instead of DynamoDB's typed ones."""
    moved: bool = False
    """Whether the events have changed the message's status."""


class Foreign(Struct, frozen=True):
    """Result of `observe` for a message that is not in the ledger: it is not Mailroom's message, or its item
    has expired."""


class Outdated(Struct, frozen=True):
    """Result of `observe` for events about an earlier attempt: the message was retried or resent since."""

    item: dict[str, Any]
    """Ledger item of the message, with Python values instead of DynamoDB's typed ones."""


Observed = Seen | Foreign | Outdated


class Verdict(Struct, frozen=True):
    """Status of a message, derived from events."""

    status: Status
    kind: str
    """Kind of the event that decided the status, for the history and the error's code."""
    detail: str = ""
    """Sentence for the message's `error`; empty if the events lack it."""

    @property
    def code(self) -> str:
        return self.kind.lower().replace(" ", "_")


def observe(ledger: Ledger, events: Sequence[Event]) -> Observed:
    """Write a provider's events about one attempt of one message into the ledger.

    Every submit follows a claim, which creates the item. So a message without an item is not Mailroom's
    message, or its item has expired, and the result is `Foreign`.
    """
    ordered = sorted(events, key=lambda event: event.at)
    foremost = max(ordered, key=lambda event: rank(_status(event)))
    verdict = Verdict(_status(foremost), foremost.kind, foremost.detail)
    if any(event.several for event in ordered):
        # The status of a message to several recipients follows from the entries of all recipients, in
        # `_entries`. So far, only the provider's acceptance is certain.
        verdict = Verdict("sent", foremost.kind)
    observed = _message(ledger, ordered, verdict)
    if isinstance(observed, Seen) and observed.item.get("recipients"):
        return _entries(ledger, ordered, observed.item)
    return observed


def _message(ledger: Ledger, events: Sequence[Event], verdict: Verdict) -> Observed:
    first = events[0]
    facts: Sets = {**facts_of(_facts(events)), **_proved(first)}
    try:
        return Seen(_move(ledger, first, verdict, facts), moved=True)
    except ConditionFailed as failed:
        item = failed.item
    if not item:
        return Foreign()
    if not _is_current(item, first.attempt):
        return Outdated(item)
    missing = {name: value for name, value in facts.items() if name not in item}
    return _note(ledger, first, missing) if missing else Seen(item)


def _move(ledger: Ledger, event: Event, verdict: Verdict, facts: Sets) -> dict[str, Any]:
    """Replace the message's status by the later status of the verdict, and add the facts that are new.
    Returns the item after the write. Raises ConditionFailed."""
    current, values = _current(event.attempt)
    earlier = earlier_than(verdict.status)
    outcome = ledger.outcome(event.key, verdict.status)
    first_values = {"completedAt": outcome.pop("completedAt"), **facts}
    # This write counts the attempt as ended, because the sender does not count it if the event is recorded
    # first.
    sets: Sets = {**outcome, "attempts": number(event.attempt)}
    adds, removes = Sets(), [*TRY_NOTES]
    if verdict.status in _GOOD or not verdict.detail:
        removes.append("error")
    else:
        sets |= error_of(verdict.code, verdict.detail)
    if event.found_by_number and event.provider_id is not None:
        # The sender may have crashed before it recorded the provider's id. Without that id, a look-up for
        # another message could mistake this message for the other one.
        sets["submittedAt"] = number(event.at)
        adds = {"provider_ids": {"SS": [event.provider_id]}}
    return ledger.write(
        event.key,
        Update(sets, once=first_values, adds=adds, removes=removes),
        f"{current} AND #status IN ({', '.join(earlier)})",
        {**values, **earlier},
        entry=verdict.status,
        code=verdict.kind,
        returns="ALL_NEW",
    )


def _note(ledger: Ledger, event: Event, facts: Sets) -> Observed:
    """Add the facts that the ledger item lacks, without a change of the status."""
    current, values = _current(event.attempt)
    try:
        item = ledger.write(
            event.key, Update(once=facts), f"{KNOWN} AND {current}", values, returns="ALL_NEW"
        )
        return Seen(item)
    except ConditionFailed as failed:
        return Outdated(failed.item) if failed.item else Foreign()


def _entries(ledger: Ledger, events: Sequence[Event], item: dict[str, Any]) -> Observed:
    """Write the events into the entries of their recipients. Then replace the message's status if a later
    status follows from the entries of all recipients."""
    for event in events:
        for recipient in _concerned(event, item):
            error = "" if event.status in _GOOD else event.detail
            advanced = ledger.advance(event.key, recipient, event.status, event.facts, error)
            # If several workers write at the same time, the response to the last write contains all their
            # changes.
            item = advanced or item
    verdict = _of_all(item["recipients"])
    if rank(verdict.status) <= rank(item["status"]):
        return Seen(item)
    try:
        return Seen(_move(ledger, events[0], verdict, {}), moved=True)
    except ConditionFailed as failed:
        return Seen(failed.item)  # another worker has written a later status meanwhile


def _of_all(entries: Mapping[str, Mapping[str, Any]]) -> Verdict:
    """Return the status of a message to several recipients: complained or bounced as soon as one recipient
    has that status. The status is delivered or undelivered only when the outcomes of all recipients are
    known, because a later status can never be replaced by an earlier one."""
    sent = [entry for _, entry in sorted(entries.items()) if entry.get("status") != "suppressed"]
    worst: tuple[Status, ...] = ("complained", "bounced")
    for status in worst:
        if any(entry.get("status") == status for entry in sent):
            return Verdict(status, status, _SOME)
    if not sent or any(entry.get("status") not in _FINAL for entry in sent):
        return Verdict("sent", "sent")
    if any(entry["status"] == "undelivered" for entry in sent):
        return Verdict("undelivered", "undelivered", _SOME)
    return Verdict("delivered", "delivered")


def _concerned(event: Event, item: Mapping[str, Any]) -> Sequence[str]:
    """Return the recipients whose entries an event changes: the recipients in the event, or all recipients of
    the message if the event contains no recipients. An event without recipients that reports no status or the
    status `sent` changes no entry."""
    if event.recipients or event.status in (None, "sent"):
        return event.recipients
    return sorted(item["recipients"])


def _status(event: Event) -> Status:
    """Return the status that an event proves: at least `sent`, because every event proves that the provider
    accepted the message."""
    return event.status or "sent"


def _proved(event: Event) -> Sets:
    sets: Sets = {"provider": string(event.provider)}
    if event.provider_id is not None:
        sets["provider_id"] = string(event.provider_id)
    return sets


def _facts(events: Sequence[Event]) -> Facts:
    """Return the events' facts about the whole message. A fact about one of several recipients is not among
    them, because it is stored in that recipient's entry."""
    facts: Facts = {}
    for event in events:
        for name, value in event.facts.items():
            if name == "sentAt" or not (event.several and event.recipients):
                facts.setdefault(name, value)
    return facts


def _current(attempt: int) -> tuple[str, Sets]:
    """Return the condition, and its values, that `attempt` is the latest attempt: it has not ended, or the
    message has ended with it."""
    under_way = "attempts = :before_it"
    if attempt == 1:
        under_way = "attribute_not_exists(attempts) OR attempts = :before_it"
    condition = f"({under_way} OR (attempts = :it AND attribute_exists(completedAt)))"
    return condition, {":before_it": number(attempt - 1), ":it": number(attempt)}


def _is_current(item: Mapping[str, Any], attempt: int) -> bool:
    """Return whether an item that was read fulfils the condition of `_current`."""
    attempts = int(item.get("attempts", 0))
    return attempts == attempt - 1 or (attempts == attempt and "completedAt" in item)
