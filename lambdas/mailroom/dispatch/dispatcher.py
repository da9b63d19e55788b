"""Routes new mailbox items: a message is put into the queue of its channel and lane, or marked as waiting
until it is due. An invalid item is recorded in the ledger as failed.

Each item is first validated against its channel's class, the stage's settings and the present time.
"""

import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import clients, queues
from mailroom.aws.queues import Entry
from mailroom.channels.contracts import contracts_of
from mailroom.clock import Clock
from mailroom.content.payloads import Payloads
from mailroom.content.versions import CurrentVersions, versions_of
from mailroom.environment import DispatchSettings
from mailroom.errors import Invalid, Malformed
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.contents import fits
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.waits import AHEAD_SECONDS, SEND_AT, Wait, Waits
from mailroom.mailbox import DAY, NEEDED_AFTER, RESTORED
from mailroom.message import CAMPAIGN_START
from mailroom.message.message import MAX_AHEAD_SECONDS, Message, encode, parse
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


class Validator:
    """Validates items for one stage.

    `lanes` contains the lanes of each channel. `waiting` contains the channels whose queue cannot delay a
    message; their delayed messages have the attribute `not_before`, which only Mailroom may set. If `strict`
    is true, an attribute without an effect is refused, unless a template might use it, which only the sender
    can check.
    """

    def __init__(
        self,
        contracts: Mapping[str, type[Message]],
        lanes: Mapping[str, Collection[str]],
        *,
        payloads: Payloads,
        callbacks: UrlPolicy,
        clock: Clock = time.time,
        waiting: Collection[str] = (),
        strict: bool = False,
    ) -> None:
        self._strict = strict
        self._contracts = {name: contracts[name] for name in lanes}
        self._lanes = lanes
        self._payloads = payloads
        self._callbacks = callbacks
        self._clock = clock
        self._waiting = waiting

    def validate(self, item: Mapping[str, Any]) -> Message:
        """Return the message of an item. Raises Malformed for an item without a key, and Invalid."""
        message = parse(item, self._contracts)
        self._check(message)
        return message

    def read(self, item: Mapping[str, Any]) -> Message:
        """Return the message of an item that was validated at its first dispatch. Raises the same errors as
        `validate`."""
        return parse(item, self._contracts)

    def names(self, item: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the attributes in the contract of the item's channel."""
        channel = item.get("event_type")
        contract = self._contracts.get(channel, Message) if isinstance(channel, str) else Message
        return contract.__struct_encode_fields__

    def _check(self, message: Message) -> None:
        moment = self._clock()
        if self._strict and not message.may_use:
            message.check_names((), strict=True)
        if name := _reserved(message):
            raise Invalid(name, "is reserved for Mailroom; rename this attribute")
        self._callbacks.validate("callback_url", message.callback_url)
        if message.event_type in self._waiting and "not_before" in message.variables:
            raise Invalid("not_before", "is reserved for Mailroom; use send_at")
        if message.lane not in self._lanes[message.event_type]:
            lanes = ", ".join(self._lanes[message.event_type])
            raise Invalid("lane", f"{message.lane!r} is not set up for {message.event_type}; use {lanes}")
        self._check_conditions(message)
        if message.payload_ref is not None:
            self._payloads.key("payload_ref", message.payload_ref)
        if message.expired(moment):
            raise Invalid("expires_at", f"{message.expires_at} is past; use a future time")
        if (message.due() or 0) > moment + MAX_AHEAD_SECONDS:
            raise Invalid("send_at", f"{message.send_at} is over a year ahead; put the item later")
        _check_ttl(message, moment)

    def _check_conditions(self, message: Message) -> None:
        """Raise Invalid for a condition on a channel that the stage does not have."""
        for condition in message.conditions:
            if condition.event_type not in self._lanes:
                channels = ", ".join(self._lanes)
                problem = f"event_type {condition.event_type!r:.60} is not allowed here; use {channels}"
                raise Invalid("unless", problem)


def _reserved(message: Message) -> str:
    """Return the attribute that only Mailroom may write but a producer has written, or an empty text."""
    if message.restored_id is not None:
        return RESTORED
    start = message.campaign_start
    if start is None:
        return "attempt" if message.attempt != 1 else ""
    # The function `compose` puts a later attempt if the run is started again.
    return "" if start.may_have(message.id) else CAMPAIGN_START


def _check_ttl(message: Message, moment: float) -> None:
    """Raise Invalid if the item could expire before it is read again when it is due, even after a long
    outage. A message that is queued at once does not need its item any more."""
    due = message.due() or 0.0
    if message.ttl is None or due - moment <= AHEAD_SECONDS:
        return
    minimum = math.ceil(due + NEEDED_AFTER)
    if message.ttl < minimum:
        raise Invalid(
            "ttl",
            f"{message.ttl} is under {NEEDED_AFTER // DAY} days after send_at; the item might expire before "
            f"its message can be sent after an outage; use {minimum} or more, or leave it out",
        )


class Dispatcher(Struct, frozen=True):
    """Puts the messages of items into their queues, or marks them as waiting. A repeated dispatch is
    harmless, because the claim drops a second copy of a message."""

    routes: Mapping[str, Mapping[str, str]]
    """URLs of queues, by channel and lane."""
    validator: Validator
    ledger: Ledger
    waits: Waits
    sqs: "SQSClient"
    clock: Clock = time.time
    delayed_routes: Mapping[str, str] = MappingProxyType({})
    """URLs of the queues for delayed messages, by channel, for channels whose own queue cannot delay a
    message."""
    versions: CurrentVersions | None = None
    """Current versions of templates; None if the stage does not publish templates."""

    @classmethod
    def of(cls, settings: DispatchSettings) -> "Dispatcher":
        """Build the dispatcher from a function's settings."""
        return cls(
            settings.routes,
            Validator(
                contracts_of(settings.default_region),
                settings.routes,
                payloads=Payloads(clients.s3(), settings.payload_bucket),
                callbacks=UrlPolicy(schemes=settings.callback_schemes, ports=settings.callback_ports),
                waiting=settings.delayed_routes,
                strict=settings.unknown == "refuse",
            ),
            ledger=Ledger.of(settings),
            waits=Waits(
                clients.dynamodb_once(), settings.ledger_table, settings.ledger_ttl_seconds, time.time
            ),
            sqs=clients.sqs(),
            delayed_routes=settings.delayed_routes,
            versions=versions_of(settings.templates_bucket),
        )

    def dispatch(
        self,
        items: Iterable[tuple[str, Mapping[str, Any]]],
        put_at: Mapping[str, float] = MappingProxyType({}),
    ) -> set[str]:
        """Dispatch items, each with the caller's reference. Returns the references of the items that must be
        dispatched again.

        `put_at` contains by reference the time in epoch seconds at which an item was put, if it is known.
        """
        failed: set[str] = set()
        entries: dict[str, list[Entry]] = defaultdict(list)
        waits: dict[str, Wait] = {}
        for reference, item in items:
            try:
                match self._route(reference, item, put_at.get(reference)):
                    case Wait() as wait:
                        waits[reference] = wait
                    case (url, entry):
                        entries[url].append(entry)
            except Exception:  # noqa: BLE001 - logged, and the caller keeps the record
                logger.exception("not dispatched; it is tried again", extra=_mentioned(item))
                failed.add(reference)
        failed |= self._hold(waits)
        for url, batch in entries.items():
            unsent = queues.send(self.sqs, url, batch)
            failed |= unsent
            count("Dispatched", len(batch) - len(unsent))
        return failed

    def _hold(self, waits: Mapping[str, Wait]) -> set[str]:
        """Mark messages as waiting for their `send_at`. Returns the references of the messages that must be
        dispatched again: all of them if the write fails, or else none."""
        if not waits:
            return set()
        try:
            # A message that cannot be held was claimed or has ended, so nothing more has to be done for it.
            count("Scheduled", sum(self.waits.hold([*waits.values()])))
        except Exception:  # noqa: BLE001 - logged, and the caller keeps the records
            logger.exception("waits for send_at were not written; they are tried again", messages=len(waits))
            return {*waits}
        return set()

    def _route(
        self, reference: str, item: Mapping[str, Any], put_at: float | None
    ) -> tuple[str, Entry] | Wait | None:
        """Return the queue and the entry for an item, or its wait. Returns None if the item needs neither,
        because it is invalid or restored."""
        if RESTORED in item and item[RESTORED] == item.get("id"):
            logger.warning("a restored item; its message is not queued again", extra=_mentioned(item))
            count("Restored")
            return None
        try:
            message, body = self._read(item)
        except Malformed as fault:
            # The mailbox's key schema should make this impossible. Without a valid key no ledger item can be
            # written, so the fault is only logged.
            logger.error("not a message", reason=str(fault))
            return None
        except Invalid as fault:
            self._refuse(item, fault, put_at)
            return None
        due = message.due() or 0.0
        wait = due - self.clock()
        if wait > AHEAD_SECONDS:
            version = self.ledger.new_token()
            return Wait(message, SEND_AT, due, version, put_at, new=message.attempt == 1)
        attributes = {"channel": message.event_type, "type": message.kind}
        if put_at is not None:
            attributes[queues.PUT_AT] = str(int(put_at))
        return self._queued(reference, message, body, max(0, math.ceil(wait)), attributes)

    def _queued(
        self, reference: str, message: Message, body: str, delay: int, attributes: Mapping[str, str]
    ) -> tuple[str, Entry]:
        url = self.routes[message.event_type][message.lane]
        if delay:
            url = self.delayed_routes.get(message.event_type, url)
        return url, Entry(
            reference,
            body,
            attributes,
            delay=delay,
            group=message.group,
            duplicate=message.duplicate if url.endswith(".fifo") else None,
        )

    def _read(self, item: Mapping[str, Any]) -> tuple[Message, str]:
        message = self.validator.validate(item)
        body = encode(item if self.versions is None else self.versions.bound(message, item))
        encoded = body.encode()
        if len(encoded) > queues.MAX_BYTES - 1024:
            raise Invalid("item", "is over 1 MiB as JSON; put the content in the payload bucket")
        if not fits(encoded):
            large = "is over 380 KB as JSON, even compressed"
            raise Invalid("item", f"{large}; put the content in the payload bucket")
        return message, body

    def _refuse(self, item: Mapping[str, Any], fault: Invalid, put_at: float | None = None) -> None:
        field = fault.attribute(self.validator.names(item))
        self.ledger.refuse(item, "invalid", str(fault), field, put_at)
        logger.warning("refused", extra=_mentioned(item), field=fault.field)
        count("Refused")


def _mentioned(item: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"{item.get(name)!s:.200}" for name in ("id", "event_type")}
