"""Reacts to changes of the ledger: queues callbacks and the next attempts of faxes, puts events on
EventBridge, and counts failures in the metric `Failed`."""

import hashlib
import math
import time
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import UNSET, Meta, Struct, UnsetType

from mailroom.aws import clients, queues
from mailroom.aws.queues import Entry
from mailroom.clock import Clock
from mailroom.environment import OutcomesSettings
from mailroom.errors import quantity
from mailroom.http.url_policy import host_of
from mailroom.ledger.change import LedgerChange, change_of
from mailroom.ledger.items import UNCOUNTED
from mailroom.message.message import MAX_GROUP, Key, encode
from mailroom.message.outcome import CODES, DETAIL_TYPE, FAILED, SILENT
from mailroom.message.unless import Condition
from mailroom.telemetry import about, count, count_by, logger

if TYPE_CHECKING:
    from types_boto3_events import EventBridgeClient
    from types_boto3_events.type_defs import PutEventsRequestEntryTypeDef
    from types_boto3_sqs import SQSClient

OF_THE_LINE = "Fax status: "
"""Prefix of a fax's error text if the telephone line or the receiving machine was at fault, and not the
request."""

_SENTENCES = {
    "sent": "{channel} sent successfully",
    "delivered": "{channel} delivered",
    "undelivered": "{channel} could not be delivered",
    "bounced": "{channel} bounced",
    "complained": "The recipient complained about the {lower}",
    "suppressed": "{channel} suppressed",
    "cancelled": "{channel} cancelled",
    "failed": "Failed to send {lower}",
    "retrying": "{channel} will be tried again",
}
_FAX_STATUSES = dict.fromkeys(("failed", "cancelled", "suppressed"), "perm_fail")
_FAX_STATUSES |= {"delivered": "sent", "retrying": "tmp_fail"}


class Callback(Struct, frozen=True):
    """The body of a message of the webhook queue that reports an outcome."""

    webhook_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,128}\Z")]
    """Id of the outcome. A repeated callback has the same id, so that a receiver can ignore it."""
    url: str
    id: Annotated[str, Meta(min_length=1)]
    event_type: Annotated[str, Meta(min_length=1)]
    name: Annotated[str, Meta(min_length=1)]
    """Key of this callback in `callbacks` of the ledger item."""
    payload: Any

    @property
    def key(self) -> Key:
        """Key of the message whose outcome the callback reports."""
        return Key(self.id, self.event_type)

    @property
    def group(self) -> str:
        """Message group in the queue: the host of the callback URL, so that a slow host does not delay the
        callbacks to other hosts."""
        return host_of(self.url)[:MAX_GROUP] or "unknown"


def callback_of(change: LedgerChange, max_attempts: int) -> Callback | None:
    """Return the callback for a change, or None if the change is not an outcome or the item has an empty or
    missing `callback_url`. `max_attempts` is the stage's limit of attempts for a fax."""
    url = change.new.get("callback_url")
    if not url or not _is_outcome(change):
        return None
    key = change.key
    payload = _fax(change, max_attempts) if key.event_type == "fax" else _common(change)
    return Callback(_event_id(change), url, key.id, key.event_type, _name(change), payload)


def _is_outcome(change: LedgerChange) -> bool:
    return change.moved and not change.reopened and change.status not in SILENT


def _name(change: LedgerChange) -> str:
    """Return a name of the outcome that is unique among the outcomes of the message."""
    name = f"{change.status}.{change.attempts}"
    return f"{name}.{change.generation}" if change.generation else name


def _event_id(change: LedgerChange) -> str:
    """Return an id of the outcome that is unique in the stage, and the same if the stream repeats the
    change."""
    key = change.key
    digest = hashlib.sha256("\0".join((key.event_type, key.id, _name(change))).encode()).hexdigest()
    return f"msg_{digest[:40]}"


def _common(change: LedgerChange) -> dict[str, Any]:
    return {
        "id": change.key.id,
        "event_type": change.key.event_type,
        "status": change.status,
        "message": _sentence(change),
        **_shared_fields(change),
    }


def _shared_fields(change: LedgerChange) -> dict[str, Any]:
    """Return the fields at the end of every callback's body: the time and the published template. For a
    failed message they include the invalid attribute of the item, and for a message that was cancelled by its
    `unless` the condition that was fulfilled."""
    fields: dict[str, Any] = {"timestamp": int(change.at), "timestamp_ms": round(change.at * 1000)}
    if "template_version" in change.new:
        names = ("template", "template_version")
        fields |= {name: change.new[name] for name in names if name in change.new}
    if (fulfilled := _fulfilled(change)) is not UNSET:
        fields["unless"] = msgspec.to_builtins(fulfilled)
    field = _error(change).get("field")
    return {**fields, "field": field} if field and change.status == "failed" else fields


def _fulfilled(change: LedgerChange) -> Condition | UnsetType:
    """Return the condition in `unless` that was fulfilled, or UNSET if the message was not cancelled by a
    condition."""
    if change.status != "cancelled" or "unless_fulfilled" not in change.new:
        return UNSET
    return msgspec.convert(change.new["unless_fulfilled"], Condition)


def _sentence(change: LedgerChange) -> str:
    channel = change.key.event_type
    template = _SENTENCES.get(change.status, "{channel}: {status}")
    title = channel.upper() if channel == "sms" else channel.capitalize()
    sentence = template.format(channel=title, lower=channel, status=change.status)
    reason = _error(change).get("message")
    return f"{sentence}: {reason}" if reason and change.status not in {"sent", "delivered"} else sentence


def _fax(change: LedgerChange, max_attempts: int) -> dict[str, Any]:
    """Return the body of a fax's callback. The names of its fields and statuses are those of an earlier fax
    gateway."""
    return {
        "fax_id": change.key.id,
        "status": _FAX_STATUSES.get(change.status, change.status),
        "message": _fax_sentence(change, max_attempts),
        **_shared_fields(change),
    }


def _fax_sentence(change: LedgerChange, max_attempts: int) -> str:
    error = _error(change)
    before, uncounted = (int(item.get(UNCOUNTED, 0)) for item in (change.old, change.new))
    attempts = change.attempts + int(change.new.get("retry_count", 0)) - uncounted
    match change.status:
        case "sent" | "delivered":
            return "Fax sent successfully"
        case "retrying" if uncounted > before:
            return f"Failed to deliver fax (this attempt does not count). Fax status: {error.get('code')}"
        case "retrying":
            attempt = f"attempt {attempts} of {max_attempts}"
            return f"Failed to deliver fax ({attempt}). Fax status: {error.get('code')}"
        case "failed" if change.attempts and str(error.get("message", "")).startswith(OF_THE_LINE):
            tries = quantity(attempts, "try", "tries")
            return f"Failed to deliver fax after {tries}. Last attempt status: {error.get('code')}"
        case "failed":
            return f"Failed to deliver fax: {error.get('message')}"
    return _sentence(change)


def _error(change: LedgerChange) -> Mapping[str, Any]:
    error = change.new.get("error", {})
    return error if isinstance(error, Mapping) else {}


class OutcomeEvent(Struct, frozen=True):
    """The `detail` of an event: the outcome of a message, without its recipients and its content. Fields
    without a value are omitted."""

    event_id: Annotated[str, Meta(description="same in a repetition; equals the callback's `webhook-id`")]
    id: Annotated[str, Meta(description="the message's id, chosen by its producer")]
    event_type: Annotated[str, Meta(description="the message's channel")]
    status: str
    attempt: Annotated[int, Meta(description="number of attempts that have ended")]
    timestamp: Annotated[int, Meta(description="time of the status change, in epoch seconds")]
    provider: Annotated[str | UnsetType, Meta(description="provider that accepted the message")] = UNSET
    topic: Annotated[str | UnsetType, Meta(description="the message's topic")] = UNSET
    campaign: Annotated[str | UnsetType, Meta(description="the campaign that composed the message")] = UNSET
    code: Annotated[
        str | UnsetType, Meta(description="reason: code of the error, or type of the bounce or complaint")
    ] = UNSET
    unless: Annotated[
        Condition | UnsetType, Meta(description="the condition on another message that cancelled this one")
    ] = UNSET


MAX_EVENTS = 10
"""Maximum number of entries of one PutEvents call. Mailroom's entries have less than 20 KB each, and a call
may have 1 MB, so their size need not be checked."""


class EventBus(Struct, frozen=True):
    """Event bus of EventBridge that the settings name."""

    client: "EventBridgeClient"
    settings: OutcomesSettings

    def event_of(self, change: LedgerChange) -> OutcomeEvent | None:
        """Return the event that reports a change, or None if the change is not an outcome."""
        if not _is_outcome(change):
            return None
        item, key = change.new, change.key
        campaign = key.id.partition("#")[0]
        codes = (item.get(name) for name in CODES.get(change.status, ()))
        return OutcomeEvent(
            event_id=_event_id(change),
            id=key.id,
            event_type=key.event_type,
            status=change.status,
            attempt=change.attempts,
            timestamp=int(change.at),
            provider=item.get("provider", UNSET),
            topic=item.get("topic", UNSET),
            campaign=campaign if campaign in self.settings.campaigns else UNSET,
            code=next(filter(None, codes), _error(change).get("code", UNSET)),
            unless=_fulfilled(change),
        )

    def put(self, events: Sequence[tuple[str, OutcomeEvent]]) -> set[str]:
        """Put events, each paired with the caller's reference, and return the references of events that
        EventBridge did not accept.

        After a call that fails as a whole, no further calls are made, because they could use up the
        function's time.
        """
        failed: set[str] = set()
        for start in range(0, len(events), MAX_EVENTS):
            batch = events[start : start + MAX_EVENTS]
            try:
                reply = self.client.put_events(Entries=[self._entry(event) for _, event in batch])
            except (ClientError, BotoCoreError) as error:
                logger.warning("events not put on the bus", entries=len(events) - start, error=str(error))
                return failed | {reference for reference, _ in events[start:]}
            codes = {
                reference: result["ErrorCode"]
                for (reference, _), result in zip(batch, reply["Entries"], strict=True)
                if "ErrorCode" in result
            }
            if codes:
                logger.warning("events refused by the bus", codes=sorted({*codes.values()}))
            failed |= codes.keys()
        return failed

    def _entry(self, event: OutcomeEvent) -> "PutEventsRequestEntryTypeDef":
        return {
            "EventBusName": self.settings.event_bus,
            "Source": self.settings.event_source,
            "DetailType": DETAIL_TYPE,
            "Detail": encode(event),
            "Time": datetime.fromtimestamp(event.timestamp, UTC),
        }


REASON_CHARACTERS = 64
UNKNOWN = "unknown"
"""Channel in the metric for items whose `event_type` is not a channel of the stage."""


def count_failures(changes: Iterable[LedgerChange], channels: Container[str]) -> None:
    """Write the metric `Failed` by channel, and by channel and reason, for the changes that report failures.
    `channels` are the channels of the stage."""
    counts: Counter[tuple[str, str]] = Counter()
    for change in changes:
        if change.moved and change.status in FAILED:
            # A producer may write any `event_type`, so unknown channels are counted together: each different
            # value would become a metric.
            channel = change.key.event_type if change.key.event_type in channels else UNKNOWN
            counts[channel, _reason(change)] += 1
    for (channel, reason), failures in counts.items():
        count_by("Failed", failures, {"channel": channel}, {"channel": channel, "reason": reason})


def _reason(change: LedgerChange) -> str:
    """Return the error's code for a failed message, and the status for failures that a provider reported
    later.

    There are at most a few dozen reasons, because each one is a separate metric, which costs money.
    """
    code = _error(change).get("code") if change.status == "failed" else None
    return str(code or change.status)[:REASON_CHARACTERS]


_RETRY_ATTRIBUTES = ("to", "pdf_url", "payload_ref", "from", "expires_at", "retry_count", "callback_url")


def retry_of(change: LedgerChange, delay: float) -> dict[str, Any] | None:
    """Return the body of the queue message for a fax's next attempt, `delay` seconds after the change, or
    None if the change requires no attempt.

    If the change creates the item, the item was restored from a backup. It requires no attempt, because later
    attempts than the one in the item may have been made.
    """
    if change.key.event_type != "fax" or change.status != "retrying" or not (change.old and change.moved):
        return None
    attributes = {name: change.new[name] for name in _RETRY_ATTRIBUTES if name in change.new}
    wait = 0.0 if change.reopened else delay
    return {
        "fax_id": change.key.id,
        **attributes,
        "attempt": change.attempts + 1,
        "not_before": round(change.at + wait, 3),
    }


class Outcomes(Struct, frozen=True):
    """Handles batches of the ledger's stream. A repeated batch is harmless, because callbacks and events have
    the same ids again, and the claim drops a second copy of a fax's attempt."""

    settings: OutcomesSettings
    sqs: "SQSClient"
    clock: Clock = time.time
    bus: EventBus | None = None
    """Event bus on which outcomes are put; None without an event bus in the settings."""

    @classmethod
    def of(cls, settings: OutcomesSettings) -> "Outcomes":
        """Create the handler from the settings of the function `outcomes`."""
        bus = EventBus(clients.events(), settings) if settings.event_bus else None
        return cls(settings, clients.sqs(), bus=bus)

    def handle(self, records: Iterable[Mapping[str, Any]]) -> set[str]:
        """Handle a batch of stream records, and return the sequence numbers of the records that must be
        handled again."""
        entries: dict[str, list[Entry]] = defaultdict(list)
        events: list[tuple[str, OutcomeEvent]] = []
        failed: set[str] = set()
        changes: list[tuple[str, LedgerChange]] = []
        for record in records:
            sequence = str(record["dynamodb"]["SequenceNumber"])
            try:
                change = change_of(record)
                if change is not None:
                    self._follow(change, sequence, entries)
                    if self.bus is not None and (event := self.bus.event_of(change)):
                        events.append((sequence, event))
                    changes.append((sequence, change))
            except Exception:  # noqa: BLE001 - logged, and the stream keeps the record
                logger.exception("a ledger change was not handled; it is tried again", sequence=sequence)
                failed.add(sequence)
        for url, batch in entries.items():
            failed |= queues.send(self.sqs, url, batch)
        if self.bus is not None:
            # The events are sent after the queue entries: if the event bus does not respond, the function's
            # time-out may end this call.
            failed |= self.bus.put(events)
        # The stream repeats failed records, so their failures are counted later.
        handled = (change for sequence, change in changes if sequence not in failed)
        count_failures(handled, self.settings.channels)
        return failed

    def _follow(self, change: LedgerChange, sequence: str, entries: dict[str, list[Entry]]) -> None:
        callback = callback_of(change, self.settings.max_attempts)
        if callback is not None:
            entry = Entry(sequence, encode(callback), group=callback.group)
            entries[self.settings.webhook_queue_url].append(entry)
            count("Callbacks")
        retry = retry_of(change, self.settings.retry_delay_seconds)
        if retry is not None:
            # SQS delays a message by 15 minutes at most. The function `retry_fax` waits for the rest of a
            # longer delay.
            wait = math.ceil(retry["not_before"] - self.clock())
            entry = Entry(sequence, encode(retry), delay=max(0, min(queues.MAX_DELAY_SECONDS, wait)))
            entries[self.settings.retry_queue_url].append(entry)
            logger.info("another attempt follows", extra=about(change.key), attempt=retry["attempt"])
            count("Retries")
