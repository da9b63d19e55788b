"""Brings a provider's events into the ledger: any order, any number of them ends the same.

Two rules make it so. A status is replaced by one of a higher rank alone (see `status`), and a fact is written
where it is new. What was told of an attempt that the message has left behind changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mailroom.clock import Clock
from mailroom.dynamo import Change, ConditionFailed, Sets, number, string
from mailroom.feedback.event import Event
from mailroom.ledger_items import SETTLED, LedgerItems, ended, error_of, facts_of, ids_of
from mailroom.outcome import Facts
from mailroom.status import Status, before, rank

_ONCE = "if_not_exists({name}, {value})"
_GOOD = ("sent", "delivered")
_FOUND_BY_NUMBER = ("sms",)
"""Channels whose look-up finds messages by their number."""


class Seen(Struct, frozen=True):
    """It stands in the ledger, as `item` (plain Python)."""

    item: dict[str, Any]


class Foreign(Struct, frozen=True):
    """There is no such message: never was, or it is long over."""


class Outdated(Struct, frozen=True):
    """The message has left that attempt behind: it was retried, or resent by hand."""


Observed = Seen | Foreign | Outdated


class Observer:
    """Writes what events say, in one write for all that is known of a message at once."""

    def __init__(self, items: LedgerItems, clock: Clock) -> None:
        self._items = items
        self._clock = clock

    def observe(self, events: Sequence[Event]) -> Observed:
        """Take in the events of one attempt at one message."""
        ordered = sorted(events, key=lambda event: event.at)
        observed = self._message(ordered)
        if isinstance(observed, Seen):
            for event in ordered:
                if event.several:
                    self._recipients(event)
        return observed

    def _message(self, events: Sequence[Event]) -> Observed:
        first = events[0]
        facts = _facts(events)
        news: Sets = {**facts_of(facts), **_proved(first)}
        foremost = max(events, key=lambda event: rank(_status(event)))
        try:
            change = self._move(foremost, news)
            return Seen(self._items.write(first.key, change, _status(foremost), foremost.kind, "ALL_NEW"))
        except ConditionFailed as failed:
            found = failed.item
        if not found:
            return Foreign()
        if not _is_current(found, first.attempt):
            return Outdated()
        lacking = {name: value for name, value in news.items() if name not in found}
        return self._note(first, lacking) if lacking else Seen(found)

    def _move(self, event: Event, news: Sets) -> Change:
        """The status forward, with all that is new."""
        status = _status(event)
        current, values = _current(event.attempt)
        earlier = {f":before{at}": string(each) for at, each in enumerate(before(status))}
        sets: Sets = {**news, **ended(event.key, status, self._clock())}
        # Set, not counted on: a sender that was overtaken by this event will not count it any more.
        sets["attempts"] = number(event.attempt)
        gone: tuple[str, ...] = (*SETTLED, "failed_on")
        if status in _GOOD or not event.detail:
            gone = (*gone, "error")
        else:
            sets |= error_of(event.kind.lower().replace(" ", "_"), event.detail)
        ids: Sets = {}
        if event.key.event_type in _FOUND_BY_NUMBER and event.provider_id is not None:
            # Its sender may have crashed before it could say so: a look-up for another message must not
            # take this one for its own.
            sets["submittedAt"] = number(event.at)
            ids = ids_of(event.provider_id)
        condition = f"{current} AND #status IN ({', '.join(earlier)})"
        once = dict.fromkeys((*news, "completedAt", "submittedAt"), _ONCE)
        return Change(sets, condition, {**values, **earlier}, once, gone, unions=ids)

    def _note(self, event: Event, news: Sets) -> Observed:
        """What is new, where the status stays."""
        current, values = _current(event.attempt)
        change = Change(news, f"attribute_exists(id) AND {current}", values, dict.fromkeys(news, _ONCE))
        try:
            return Seen(self._items.write(event.key, change, returns="ALL_NEW"))
        except ConditionFailed as failed:
            return Outdated() if failed.item else Foreign()

    def _recipients(self, event: Event) -> None:
        for recipient in event.recipients:
            self._items.advance(event.key, "recipients", recipient, event.status, event.facts)


def _status(event: Event) -> Status:
    """Where an event brings the message: whatever it tells, it proves that the provider has it."""
    return event.status or "sent"


def _proved(event: Event) -> Sets:
    sets: Sets = {"provider": string(event.provider)}
    if event.provider_id is not None:
        sets["provider_id"] = string(event.provider_id)
    return sets


def _facts(events: Sequence[Event]) -> Facts:
    """Of a message to several, what is one recipient's stands in that one's entry."""
    facts: Facts = {}
    for event in events:
        for name, value in event.facts.items():
            if not event.several or name == "sentAt":
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
    """The same of an item that was read."""
    ended = int(item.get("attempts", 0))
    return ended == attempt - 1 or (ended == attempt and "completedAt" in item)
