"""Queue messages as dispatch makes them, of an attempt that need not be the first.

A copy too many is harmless: the claim takes one of each attempt, and drops the others.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from mailroom.aws import queues
from mailroom.aws.queues import Entry
from mailroom.channels.fax import contract as fax
from mailroom.errors import Invalid
from mailroom.ledger.change import LedgerChange
from mailroom.message.message import Message, encode, parse
from mailroom.outcomes.outcomes import Schedule, retry_of
from ops.resend.deployed import Deployed

Item = Mapping[str, Any]
_AT_ONCE = Schedule(delay=0, growth=1, cap=0)


def reopening(item: Item) -> LedgerChange:
    """The change that a fax's ledger item would show if it was reopened now: an attempt follows at once, and
    nobody is told of anything."""
    before = {"status": "sending", "generation": int(item.get("generation", 0)) - 1}
    return LedgerChange({**item, **before}, {**item, "status": "retrying"})


def fax_of(item: Item) -> dict[str, Any]:
    """The item that the next attempt of a fax would be, by what the ledger kept of it."""
    body = retry_of(reopening(item), _AT_ONCE) or {}
    return fax.item_of({name: value for name, value in body.items() if name != "not_before"})


class Copies:
    """Makes and sends the queue messages of one stage."""

    def __init__(self, deployed: Deployed) -> None:
        self._deployed = deployed
        self._routes = deployed.dispatch.routes

    def read(self, item: Item, attempt: int) -> Message:
        """The message as its worker will read it. Raises Invalid for what would end as failed at once."""
        message, now = self._parsed(item, attempt), self._deployed.clock()
        if message.expired(now):
            raise Invalid("expires_at", f"{message.expires_at} is past")
        if (message.due() or 0) > now:
            raise Invalid("send_at", f"{message.send_at} is yet to come; a new id waits for it")
        return message

    def entry(self, reference: str, item: Item, attempt: int) -> tuple[str, Entry]:
        """The queue's URL and what to put there; of a fax there is none, for outcomes makes it. Raises
        Invalid for what has no queue. What has expired goes there all the same: its worker ends it."""
        message = self._parsed(item, attempt)
        kinds = {"channel": message.event_type, "type": message.kind}
        body = encode({**item, "attempt": attempt})
        url = self._routes[message.event_type][message.lane]
        return url, Entry(reference, body, kinds, group=message.group)

    def send(self, entries: Iterable[tuple[str, Entry]]) -> set[str]:
        """Send all; the references of those that SQS would not take."""
        by_url: dict[str, list[Entry]] = defaultdict(list)
        for url, entry in entries:
            by_url[url].append(entry)
        failed: set[str] = set()
        for url, batch in by_url.items():
            failed |= queues.send(self._deployed.sqs, url, batch)
        return failed

    def _parsed(self, item: Item, attempt: int) -> Message:
        contracts = {name: each for name, each in self._deployed.contracts.items() if name in self._routes}
        message = parse({**item, "attempt": attempt}, contracts)
        if message.lane not in self._routes[message.event_type]:
            raise Invalid("lane", f"{message.lane!r} is not set up for {message.event_type}")
        return message
