"""Turns changes of the ledger into consequences: callbacks, a fax's next attempt, events on EventBridge, the
count of failures."""

import hashlib
import math
import time
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import UNSET, Meta, Struct, UnsetType

from mailroom.aws import clients, queues
from mailroom.aws.queues import Entry
from mailroom.clock import Clock
from mailroom.environment import OutcomesSettings
from mailroom.http.url_policy import host_of
from mailroom.ledger.items import LedgerChange, change_of
from mailroom.message.message import MAX_GROUP, Key, encode
from mailroom.message.outcome import CODES, DETAIL_TYPE, FAILED, SILENT
from mailroom.telemetry import about, count, count_by, logger

if TYPE_CHECKING:
    from types_boto3_events import EventBridgeClient
    from types_boto3_events.type_defs import PutEventsRequestEntryTypeDef
    from types_boto3_sqs import SQSClient

OF_THE_LINE = "Fax status: "
"""How the error of a fax begins whose line, not whose request, was at fault."""

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
_FAX_STATUSES = {"retrying": "tmp_fail", **dict.fromkeys(("failed", "cancelled", "suppressed"), "perm_fail")}


class Callback(Struct, frozen=True):
    """One body of the webhook queue. `name` is its key in the ledger item's `callbacks`.

    `webhook_id` is derived from what it tells, so that a repeat has the same and a receiver can drop it.
    """

    webhook_id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
    url: str
    id: Annotated[str, Meta(min_length=1)]
    event_type: Annotated[str, Meta(min_length=1)]
    name: Annotated[str, Meta(min_length=1)]
    payload: Any

    @property
    def key(self) -> Key:
        """The message that it tells of."""
        return Key(self.id, self.event_type)

    @property
    def group(self) -> str:
        """The endpoint: one that is dead or slow must not hold up the others."""
        return host_of(self.url)[:MAX_GROUP] or "unknown"


def callback_of(change: LedgerChange, max_attempts: int) -> Callback | None:
    """What to tell of a change; None where nobody asked, or where it is no outcome.

    `max_attempts` is a fax's, for the sentences.
    """
    url = change.new.get("callback_url")
    if not url or not _is_outcome(change):
        return None
    key = change.key
    payload = _fax(change, max_attempts) if key.event_type == "fax" else _common(change)
    return Callback(_event_id(change), url, key.id, key.event_type, _name(change), payload)


def _is_outcome(change: LedgerChange) -> bool:
    return change.moved and not change.reopened and change.status not in SILENT


def _name(change: LedgerChange) -> str:
    """Tells the outcomes of one message apart."""
    name = f"{change.status}.{change.attempts}"
    return f"{name}.{change.generation}" if change.generation else name


def _event_id(change: LedgerChange) -> str:
    """Tells the outcomes of all messages apart, and is the same for each repeat of one."""
    key = change.key
    digest = hashlib.sha256("\0".join((key.event_type, key.id, _name(change))).encode()).hexdigest()
    return f"msg_{digest[:40]}"


def _common(change: LedgerChange) -> dict[str, Any]:
    return {
        "id": change.key.id,
        "event_type": change.key.event_type,
        "status": change.status,
        "message": _sentence(change),
        **_told_by(change),
    }


def _told_by(change: LedgerChange) -> dict[str, Any]:
    """What each callback ends with: when, of which published template, and which attribute of the item was at
    fault."""
    field = _error(change).get("field")
    at_fault = {"field": field} if field and change.status == "failed" else {}
    more = {**_template(change), **at_fault}
    return {"timestamp": int(change.at), "timestamp_ms": round(change.at * 1000), **more}


def _template(change: LedgerChange) -> dict[str, Any]:
    """The template and its version, where that was published."""
    names = ("template", "template_version") if "template_version" in change.new else ()
    return {name: change.new[name] for name in names if name in change.new}


def _sentence(change: LedgerChange) -> str:
    channel = change.key.event_type
    default = _SENTENCES.get(change.status, "{channel}: {status}")
    titled = channel.upper() if channel == "sms" else channel.capitalize()
    said = default.format(channel=titled, lower=channel, status=change.status)
    reason = _error(change).get("message")
    return f"{said}: {reason}" if reason and change.status not in {"sent", "delivered"} else said


def _fax(change: LedgerChange, max_attempts: int) -> dict[str, Any]:
    """A fax's callback, in the words that users of a fax gateway know."""
    return {
        "fax_id": change.key.id,
        "status": _FAX_STATUSES.get(change.status, change.status),
        "message": _fax_sentence(change, max_attempts),
        **_told_by(change),
    }


def _fax_sentence(change: LedgerChange, max_attempts: int) -> str:
    error = _error(change)
    made = change.attempts + int(change.new.get("retry_count", 0))
    match change.status:
        case "sent":
            return "Fax sent successfully"
        case "retrying":
            attempt = f"attempt {made} of {max_attempts}"
            return f"Failed to deliver fax ({attempt}). Fax status: {error.get('code')}"
        case "failed" if change.attempts and _of_the_line(error):
            tries = "try" if made == 1 else "tries"
            return f"Failed to deliver fax after {made} {tries}. Last attempt status: {error.get('code')}"
        case "failed":
            return f"Failed to deliver fax: {error.get('message')}"
    return _sentence(change)


def _of_the_line(error: Mapping[str, Any]) -> bool:
    """Whether an attempt's own end is the reason, and not something that ended it before it began."""
    return str(error.get("message", "")).startswith(OF_THE_LINE)


def _error(change: LedgerChange) -> Mapping[str, Any]:
    error = change.new.get("error", {})
    return error if isinstance(error, Mapping) else {}


class OutcomeEvent(Struct, frozen=True):
    """The `detail` of an event: what became of a message, without its recipients and its content. What is not
    known is left out."""

    event_id: Annotated[str, Meta(description="the same for each repeat; the `webhook-id` of the callback")]
    id: Annotated[str, Meta(description="the message's, as its producer gave it")]
    event_type: Annotated[str, Meta(description="the message's channel")]
    status: str
    attempt: Annotated[int, Meta(description="how many attempts have ended")]
    timestamp: Annotated[int, Meta(description="when the status changed, in epoch seconds")]
    provider: Annotated[str | UnsetType, Meta(description="who accepted the message")] = UNSET
    topic: Annotated[str | UnsetType, Meta(description="the message's topic")] = UNSET
    campaign: Annotated[str | UnsetType, Meta(description="the campaign that composed the message")] = UNSET
    code: Annotated[
        str | UnsetType, Meta(description="why: the error's code, or the type of the bounce or complaint")
    ] = UNSET


MAX_EVENTS = 10
"""Entries of one PutEvents. They need no count of bytes: none of ours has 20 KB, and a call takes 1 MB."""


class EventBus:
    """EventBridge's bus, as the settings name it."""

    def __init__(self, client: "EventBridgeClient", settings: OutcomesSettings) -> None:
        self._client = client
        self._settings = settings

    def event_of(self, change: LedgerChange) -> OutcomeEvent | None:
        """What the bus is told of a change; None where it is no outcome."""
        if not _is_outcome(change):
            return None
        item, key = change.new, change.key
        campaign = key.id.partition("#")[0]
        facts = (item.get(name) for name in CODES.get(change.status, ()))
        return OutcomeEvent(
            event_id=_event_id(change),
            id=key.id,
            event_type=key.event_type,
            status=change.status,
            attempt=change.attempts,
            timestamp=int(change.at),
            provider=item.get("provider", UNSET),
            topic=item.get("topic", UNSET),
            campaign=campaign if campaign in self._settings.campaigns else UNSET,
            code=next(filter(None, facts), _error(change).get("code", UNSET)),
        )

    def put(self, events: Sequence[tuple[str, OutcomeEvent]]) -> set[str]:
        """Put events, each behind a reference of the caller's own; the references of those that EventBridge
        did not take.

        A call that fails as a whole is the last one: the next ones would only use up the function's time.
        """
        failed: set[str] = set()
        for start in range(0, len(events), MAX_EVENTS):
            batch = events[start : start + MAX_EVENTS]
            try:
                reply = self._client.put_events(Entries=[self._entry(event) for _, event in batch])
            except (ClientError, BotoCoreError) as error:
                logger.warning("events not put on the bus", entries=len(events) - start, error=str(error))
                return failed | {reference for reference, _ in events[start:]}
            answers = zip(batch, reply["Entries"], strict=True)
            refused = {
                reference: each["ErrorCode"] for (reference, _), each in answers if "ErrorCode" in each
            }
            if refused:
                logger.warning("events refused by the bus", codes=sorted({*refused.values()}))
            failed |= refused.keys()
        return failed

    def _entry(self, event: OutcomeEvent) -> "PutEventsRequestEntryTypeDef":
        return {
            "EventBusName": self._settings.event_bus,
            "Source": self._settings.event_source,
            "DetailType": DETAIL_TYPE,
            "Detail": encode(event),
            "Time": datetime.fromtimestamp(event.timestamp, UTC),
        }


REASON_CHARACTERS = 64
UNKNOWN = "unknown"
"""The channel of what named one that there is not."""


class Failures:
    """Counts the failures in one batch of the ledger's stream, of a stage with these channels. A record that
    the stream repeats is counted again."""

    def __init__(self, channels: Container[str]) -> None:
        self._channels = channels
        self._seen: Counter[tuple[str, str]] = Counter()

    def see(self, change: LedgerChange) -> None:
        """Count a change, if it tells of a failure."""
        if change.moved and change.status in FAILED:
            # A producer may write anything there, and each name would be a metric.
            channel = change.key.event_type if change.key.event_type in self._channels else UNKNOWN
            self._seen[channel, _reason(change)] += 1

    def count(self) -> None:
        """Write what was seen: `Failed`, by channel and by channel and reason."""
        for (channel, reason), times in self._seen.items():
            count_by("Failed", times, {"channel": channel}, {"channel": channel, "reason": reason})


def _reason(change: LedgerChange) -> str:
    """The error's code; what a provider told later is its own reason. There are a few dozen at most, and each
    is a metric to be paid for."""
    error = change.new.get("error")
    code = error.get("code") if change.status == "failed" and isinstance(error, dict) else None
    return str(code or change.status)[:REASON_CHARACTERS]


_SAID_AGAIN = ("to", "pdf_url", "payload_ref", "from", "expires_at", "retry_count", "callback_url")


def retry_of(change: LedgerChange, delay: float) -> dict[str, Any] | None:
    """The body of the fax queue for what comes next, `delay` seconds after this attempt; None where this
    change calls for no attempt. An item that is new and has ended an attempt was lost and put back: later
    attempts, of which it does not know, may have been made."""
    if change.key.event_type != "fax" or change.status != "retrying" or not (change.old and change.moved):
        return None
    again = {name: change.new[name] for name in _SAID_AGAIN if name in change.new}
    wait = 0.0 if change.reopened else delay
    return {
        "fax_id": change.key.id,
        **again,
        "attempt": change.attempts + 1,
        "not_before": round(change.at + wait, 3),
    }


class Outcomes:
    """Works for the ledger's stream. Repeating it is harmless: a callback and an event keep their id, and a
    second copy of an attempt is dropped by the claim."""

    def __init__(
        self,
        settings: OutcomesSettings,
        sqs: "SQSClient",
        clock: Clock = time.time,
        bus: EventBus | None = None,
    ) -> None:
        """`bus`: where outcomes go as events; None: nowhere."""
        self._settings = settings
        self._sqs = sqs
        self._clock = clock
        self._bus = bus
        self._retry_delay = settings.retry_delay_seconds

    @classmethod
    def of(cls, settings: OutcomesSettings) -> "Outcomes":
        bus = EventBus(clients.events(), settings) if settings.event_bus else None
        return cls(settings, clients.sqs(), bus=bus)

    def handle(self, records: Iterable[Mapping[str, Any]]) -> set[str]:
        """The sequence numbers of the records that must be handled again."""
        entries: dict[str, list[Entry]] = defaultdict(list)
        events: list[tuple[str, OutcomeEvent]] = []
        failed: set[str] = set()
        failures = Failures(self._settings.channels)
        for record in records:
            sequence = str(record["dynamodb"]["SequenceNumber"])
            try:
                change = change_of(record)
                if change is not None:
                    self._follow(change, sequence, entries)
                    if self._bus is not None and (event := self._bus.event_of(change)):
                        events.append((sequence, event))
                    failures.see(change)
            except Exception:  # noqa: BLE001 - logged, and the stream keeps the record
                logger.exception("no consequence drawn; it is tried again", sequence=sequence)
                failed.add(sequence)
        for url, batch in entries.items():
            failed |= queues.send(self._sqs, url, batch)
        if self._bus is not None:
            # Behind the queues: what waits for a bus that does not answer may be cut off by the time-out.
            failed |= self._bus.put(events)
        failures.count()
        return failed

    def _follow(self, change: LedgerChange, sequence: str, entries: dict[str, list[Entry]]) -> None:
        callback = callback_of(change, self._settings.max_attempts)
        if callback is not None:
            entry = Entry(sequence, encode(callback), group=callback.group)
            entries[self._settings.webhook_queue_url].append(entry)
            count("Callbacks")
        retry = retry_of(change, self._retry_delay)
        if retry is not None:
            # What a queue cannot delay any longer, the mover waits for.
            wait = math.ceil(retry["not_before"] - self._clock())
            entry = Entry(sequence, encode(retry), delay=max(0, min(queues.MAX_DELAY_SECONDS, wait)))
            entries[self._settings.retry_queue_url].append(entry)
            logger.info("another attempt follows", extra=about(change.key), attempt=retry["attempt"])
            count("Retries")
