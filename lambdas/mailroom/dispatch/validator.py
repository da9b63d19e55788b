"""Whether an item may enter: by its channel's contract, by the stage's settings and by the time."""

import math
import time
from collections.abc import Collection, Mapping
from typing import Any

from mailroom.aws.queues import MAX_DELAY_SECONDS
from mailroom.clock import Clock
from mailroom.content.payloads import Payloads
from mailroom.errors import Invalid
from mailroom.http.url_policy import UrlPolicy
from mailroom.mailbox import DAY, NEEDED_AFTER
from mailroom.message.message import MAX_AHEAD_SECONDS, Message, parse


class Validator:
    """Validates items for one stage. `lanes` are those of each of its channels; `waiting` are the channels
    whose queue cannot delay a message: their delayed messages carry an attribute of the system's own."""

    def __init__(
        self,
        contracts: Mapping[str, type[Message]],
        lanes: Mapping[str, Collection[str]],
        *,
        payloads: Payloads,
        callbacks: UrlPolicy,
        clock: Clock = time.time,
        waiting: Collection[str] = (),
    ) -> None:
        self._contracts = {name: contracts[name] for name in lanes}
        self._lanes = lanes
        self._payloads = payloads
        self._callbacks = callbacks
        self._clock = clock
        self._waiting = waiting

    def validate(self, item: Mapping[str, Any]) -> Message:
        """The message that the item asks for. Raises Malformed where it has no key, Invalid otherwise."""
        message = parse(item, self._contracts)
        self._check(message)
        return message

    def _check(self, message: Message) -> None:
        now = self._clock()
        if message.attempt != 1:
            raise Invalid("attempt", "is the system's own; name that attribute otherwise")
        self._callbacks.validate("callback_url", message.callback_url)
        if message.event_type in self._waiting and "not_before" in message.variables:
            raise Invalid("not_before", "is the system's own; use send_at")
        if message.lane not in self._lanes[message.event_type]:
            lanes = ", ".join(self._lanes[message.event_type])
            raise Invalid("lane", f"{message.lane!r} is not set up for {message.event_type}; use {lanes}")
        if message.payload_ref is not None:
            self._payloads.key("payload_ref", message.payload_ref)
        if message.expired(now):
            raise Invalid("expires_at", f"{message.expires_at} is past; use a time to come")
        if (message.due() or 0) > now + MAX_AHEAD_SECONDS:
            raise Invalid("send_at", f"{message.send_at} is over a year ahead; put the item later")
        _check_ttl(message, now)


def _check_ttl(message: Message, now: float) -> None:
    """Raise Invalid where an outage of ours could outlast the item. What is due so soon that it gets no
    schedule travels as a whole, and needs its item no more."""
    due = message.due() or 0.0
    if message.ttl is None or due - now <= MAX_DELAY_SECONDS:
        return
    least = math.ceil(due + NEEDED_AFTER)
    if message.ttl < least:
        raise Invalid(
            "ttl",
            f"{message.ttl} is under {NEEDED_AFTER // DAY} days after send_at; the item may be gone before "
            f"it is read back, should that be late; use {least} or more, or leave it out",
        )
