"""Brings a provider's events into the ledger: any order, any number of them ends the same.

Two rules make it so. A status is replaced by one of a higher rank alone (see `status`), and a fact is written
where it is new. What is said of an attempt that the message has left behind changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mailroom.aws.dynamo_updates import ConditionFailed, also, assigned_once, values_of
from mailroom.aws.dynamo_values import Sets, number, string
from mailroom.ledger.items import earlier_than, error_of, facts_of
from mailroom.ledger.table import LedgerTable
from mailroom.message.outcome import FAILED, Event, Facts, Status, rank

_GOOD = (None, "sent", "delivered")
_KNOWN = ("undelivered", "delivered")
_SOME = "for one of its recipients at least; `recipients` in the ledger says for whom, and why"


class Seen(Struct, frozen=True):
    """The message is in the ledger, as `item` (plain Python)."""

    item: dict[str, Any]


class Foreign(Struct, frozen=True):
    """The ledger has no such message: it never was, or is long over."""


class Outdated(Struct, frozen=True):
    """The message, `item`, has left that attempt behind: it was retried, or reopened."""

    item: dict[str, Any]


Observed = Seen | Foreign | Outdated


class Verdict(Struct, frozen=True):
    """The status that a message comes to by some events: `kind` for the history, `code` and `detail` for its
    error."""

    status: Status
    kind: str
    detail: str = ""

    @property
    def code(self) -> str:
        return self.kind.lower().replace(" ", "_")


def observe(items: LedgerTable, events: Sequence[Event]) -> Observed:
    """Write what a provider says of one attempt at one message.

    The message has an item, for a claim precedes every submit: an event without one is foreign, or long over.
    """
    ordered = sorted(events, key=lambda event: event.at)
    foremost = max(ordered, key=lambda event: rank(_status(event)))
    said = Verdict(_status(foremost), foremost.kind, foremost.detail)
    if any(event.several for event in ordered):
        # Where it went to several, their entries say how it stands; only that it was sent is sure.
        said = Verdict("sent", foremost.kind)
    observed = _message(items, ordered, said)
    if isinstance(observed, Seen) and observed.item.get("recipients"):
        return _entries(items, ordered, observed.item)
    return observed


def _message(items: LedgerTable, events: Sequence[Event], said: Verdict) -> Observed:
    first = events[0]
    news: Sets = {**facts_of(_facts(events)), **_proved(first)}
    try:
        return Seen(_move(items, first, said, news))
    except ConditionFailed as failed:
        found = failed.item
    if not found:
        return Foreign()
    if not _is_current(found, first.attempt):
        return Outdated(found)
    lacking = {name: value for name, value in news.items() if name not in found}
    return _note(items, first, lacking) if lacking else Seen(found)


def _move(items: LedgerTable, event: Event, said: Verdict, news: Sets) -> dict[str, Any]:
    """The item after its status went forward, with all that is new. Raises ConditionFailed."""
    current, values = _current(event.attempt)
    earlier = earlier_than(said.status)
    told, ids = "", ""
    gone = "" if said.status in FAILED else ", failed_on"
    new = {**news, "attempts": number(event.attempt)}
    if said.status in _GOOD or not said.detail:
        gone += ", #error"
    else:
        told = ", #error = :error"
        new |= error_of(said.code, said.detail)
    if said.status in FAILED:
        told += ", failed_on = :failed_on"
    if event.found_by_number and event.provider_id is not None:
        # Its sender may have crashed before it could say so: a look-up for another message must not
        # take this one for its own.
        told += ", submittedAt = :submittedAt"
        ids = "ADD provider_ids :provider_ids"
        new |= {"submittedAt": number(event.at), "provider_ids": {"SS": [event.provider_id]}}
    return items.write(
        event.key,
        # Set, not counted on: a sender that was overtaken by this event will not count its attempt any more.
        f"""SET #status = :status, attempts = :attempts, completedAt = if_not_exists(completedAt, :now){told}{
            also(assigned_once(news))
        }
        REMOVE trouble, dead_lettered_at{gone}
        {ids}""",
        f"{current} AND #status IN ({', '.join(earlier)})",
        {**items.ended(event.key, said.status), **values_of(new), **values, **earlier},
        entry=said.status,
        code=said.kind,
        returns="ALL_NEW",
    )


def _note(items: LedgerTable, event: Event, news: Sets) -> Observed:
    """What is new, where the status stays."""
    current, values = _current(event.attempt)
    try:
        item = items.write(
            event.key,
            f"SET {assigned_once(news)}",
            f"attribute_exists(id) AND {current}",
            {**values_of(news), **values},
            returns="ALL_NEW",
        )
        return Seen(item)
    except ConditionFailed as failed:
        return Outdated(failed.item) if failed.item else Foreign()


def _entries(items: LedgerTable, events: Sequence[Event], item: dict[str, Any]) -> Observed:
    """Move each recipient's status, and then the message's by all of theirs."""
    for event in events:
        for recipient in _concerned(event, item):
            status, error = event.status, "" if event.status in _GOOD else event.detail
            moved = items.advance(event.key, recipient, status, event.facts, error)
            item = moved or item  # whoever writes last sees what all have written
    said = _of_all(item["recipients"])
    if rank(said.status) <= rank(item["status"]):
        return Seen(item)
    first = events[0]
    try:
        return Seen(_move(items, first, said, {}))
    except ConditionFailed as failed:
        return Seen(failed.item)  # somebody who knew more was faster


def _of_all(entries: Mapping[str, Mapping[str, Any]]) -> Verdict:
    """How a message to several stands: as soon as one bounced or complained, so; delivered or undelivered
    when all of them are known, for until then either could be wrong and a status never moves back."""
    sent = [entry for _, entry in sorted(entries.items()) if entry.get("status") != "suppressed"]
    worst: tuple[Status, ...] = ("complained", "bounced")
    for status in worst:
        if any(entry.get("status") == status for entry in sent):
            return Verdict(status, status, _SOME)
    if not sent or any(entry.get("status") not in _KNOWN for entry in sent):
        return Verdict("sent", "sent")
    if any(entry["status"] == "undelivered" for entry in sent):
        return Verdict("undelivered", "undelivered", _SOME)
    return Verdict("delivered", "delivered")


def _concerned(event: Event, item: Mapping[str, Any]) -> Sequence[str]:
    """The recipients whose entries an event moves. One about the whole mail moves all of them, save that it
    was sent: so much the message says."""
    if event.recipients or event.status in (None, "sent"):
        return event.recipients
    return sorted(item["recipients"])


def _status(event: Event) -> Status:
    """Where an event brings the message: whatever it tells, it proves that the provider has it."""
    return event.status or "sent"


def _proved(event: Event) -> Sets:
    sets: Sets = {"provider": string(event.provider)}
    if event.provider_id is not None:
        sets["provider_id"] = string(event.provider_id)
    return sets


def _facts(events: Sequence[Event]) -> Facts:
    """The facts of a message; with several recipients, one recipient's facts are in that one's entry."""
    facts: Facts = {}
    for event in events:
        for name, value in event.facts.items():
            if name == "sentAt" or not (event.several and event.recipients):
                facts.setdefault(name, value)
    return facts


def _current(attempt: int) -> tuple[str, Sets]:
    """The condition that this attempt is the message's latest: under way, or the one that completed it."""
    under_way = "attempts = :before_it"
    if attempt == 1:
        under_way = "attribute_not_exists(attempts) OR attempts = :before_it"
    condition = f"({under_way} OR (attempts = :it AND attribute_exists(completedAt)))"
    return condition, {":before_it": number(attempt - 1), ":it": number(attempt)}


def _is_current(item: Mapping[str, Any], attempt: int) -> bool:
    """Whether `attempt` is the latest of an item that was read: under way, or the one that completed it."""
    ended = int(item.get("attempts", 0))
    return ended == attempt - 1 or (ended == attempt and "completedAt" in item)
