"""Reads providers' events from the feedback queue, and writes them into the ledger. Puts recipients whose
mail bounced, who complained, or who sent STOP, on the suppression list.

A batch's events about the same attempt are written into the ledger together. Repeating such a write is
harmless: see the module `observer`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import clients, queues
from mailroom.environment import FEEDBACK_KEPT_BACK_SECONDS, FeedbackSettings
from mailroom.errors import Malformed
from mailroom.feedback.reader import read
from mailroom.ledger.items import REDIRECTED_TO
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import Foreign, Observed, Outdated, Seen, observe
from mailroom.message import address
from mailroom.message.address import spellings, to_e164
from mailroom.message.message import CANARY, Key
from mailroom.message.outcome import Event
from mailroom.providers.keywords import Keywords, KeywordText
from mailroom.recipients.choices import Suppression, Suppressions
from mailroom.telemetry import about, count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


Attempt = tuple[Key, int]
"""A message's key and the number of one of its attempts."""


class Batch(Struct):
    """Contents of a batch of the feedback queue, after its records were parsed."""

    events: dict[Attempt, list[Event]]
    """Events by the attempt that they are about."""
    records: dict[Attempt, set[str]]
    """Ids of the queue records that contained events about an attempt."""
    texts: list[tuple[KeywordText, str]]
    """Texts with STOP or START, each with the id of its queue record."""
    malformed: dict[str, str]
    """Receipt handles of malformed queue records, by the records' ids."""


class Feedback(Struct, frozen=True):
    """Handles batches of the feedback queue."""

    settings: FeedbackSettings
    ledger: Ledger
    suppressions: Suppressions
    sqs: "SQSClient"

    @classmethod
    def of(cls, settings: FeedbackSettings) -> "Feedback":
        """Build the handler of the feedback queue's batches from the settings of the function `feedback`."""
        suppressions = Suppressions.of(settings.suppressions_table)
        return cls(settings, Ledger.of(settings), suppressions, clients.sqs())

    def handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        """Handle a batch of the feedback queue. Return the records that SQS must deliver again, as batch item
        failures.

        `remaining`: function that returns the milliseconds until the Lambda function's time-out.
        """
        batch = self._parsed(event["Records"])
        failed = {
            id_
            for attempt, events in batch.events.items()
            if not self._record(events, remaining)
            for id_ in batch.records[attempt]
        }
        failed |= {id_ for text, id_ in batch.texts if not self._heed(text, remaining)}
        # Malformed records are received again at once, so that they soon become dead letters. Records whose
        # write failed are received again after the queue's visibility time-out.
        receipts = [(receipt, queues.AT_ONCE) for receipt in batch.malformed.values()]
        queues.set_visibility(self.sqs, self.settings.queue_url, receipts)
        returned = sorted(failed | batch.malformed.keys())
        return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in returned]}

    def _parsed(self, records: Iterable[Mapping[str, Any]]) -> Batch:
        topics, region = self.settings.feedback_topics, self.settings.default_region
        keywords = Keywords.of(self.settings.stop_words, self.settings.start_words)
        batch = Batch(defaultdict(list), defaultdict(set), [], {})
        for record in records:
            id_ = record["messageId"]
            try:
                events = read(record["body"], topics, region, keywords)
            except Malformed as fault:
                logger.error("not an event", reason=str(fault), message_id=id_)
                count("Malformed")
                batch.malformed[id_] = record["receiptHandle"]
                continue
            for event in events:
                if isinstance(event, KeywordText):
                    batch.texts.append((event, id_))
                    continue
                attempt = (event.key, event.attempt)
                batch.events[attempt].append(event)
                batch.records[attempt].add(id_)
        return batch

    def _record(self, events: list[Event], remaining: Callable[[], int]) -> bool:
        """Write the events of one attempt into the ledger, and return whether that succeeded."""
        if remaining() < FEEDBACK_KEPT_BACK_SECONDS * 1000:
            return False
        key = events[0].key
        try:
            observed = observe(self.ledger, events)
            if not isinstance(observed, Foreign):
                # An event about an earlier attempt suppresses the recipient too: a person who complained does
                # not want further messages.
                self._suppress(events, observed.item)
        except Exception:  # noqa: BLE001 - logged; SQS delivers the records again
            logger.exception("an event was not recorded; it is tried again", extra=about(key))
            return False
        _count(key, events, observed)
        return True

    def _heed(self, text: KeywordText, remaining: Callable[[], int]) -> bool:
        """Write a STOP or START into the suppression list, and return whether that succeeded."""
        if remaining() < FEEDBACK_KEPT_BACK_SECONDS * 1000:
            return False
        try:
            if text.wish == "stop":
                detail = f"STOP sent to {text.sent_to}"
                changed = self.suppressions.mark(Suppression(text.number, "sms", "stop", text.at, detail))
            else:
                # The STOP may be listed under another spelling of the number: when a provider refuses a
                # message because of a STOP, the number is listed as the message spells it.
                starts = [
                    self.suppressions.start(number, "sms", text.at) for number in spellings(text.number)
                ]
                changed = any(starts)
        except Exception:  # noqa: BLE001 - logged; SQS delivers the record again
            logger.exception("a STOP or START was not recorded; it is tried again", wish=text.wish)
            return False
        if changed:
            count("TextsStop" if text.wish == "stop" else "TextsStart")
        return True

    def _suppress(self, events: Iterable[Event], item: Mapping[str, Any]) -> None:
        """Add recipients whose mail bounced, who complained or who opted out to the suppression list.

        Only recipients of the message itself are added, because an event may contain other addresses. If the
        message was redirected, neither the recipients, who did not receive the message, nor the address that
        received it are added.
        """
        if REDIRECTED_TO in item:
            return
        for event in events:
            if event.suppress is None:
                continue
            own_recipients = self._recipients(event.key, item)
            for recipient in event.recipients or (() if event.several else own_recipients):
                if own_recipients.isdisjoint(spellings(recipient)):
                    logger.warning("an event has a recipient that its message lacks", extra=about(event.key))
                    continue
                since_ms = _first_time(event, item.get("recipients", {}).get(recipient, item))
                channel, message_id = event.key.event_type, event.key.id
                suppression = Suppression(
                    recipient, channel, event.suppress, since_ms, event.detail, message_id
                )
                if self.suppressions.mark(suppression):
                    count("SuppressionsMarked")

    def _recipients(self, key: Key, item: Mapping[str, Any]) -> set[str]:
        """Return the message's recipients from its ledger item, in the canonical form of the suppression
        list."""
        several = item.get("recipients")
        if several:
            return {*several}
        to = item.get("to", [])
        return {self._canonical(key, recipient) for recipient in ([to] if isinstance(to, str) else to)}

    def _canonical(self, key: Key, recipient: str) -> str:
        if key.event_type == "sms":
            return to_e164(recipient, self.settings.default_region or None)
        return address.bare(recipient)


def _count(key: Key, events: Sequence[Event], observed: Observed) -> None:
    """Count events that were written into the ledger."""
    count("Events", len(events))
    for event in events:
        if event.misconfigured:
            logger.error(
                "not delivered: the configuration is invalid", extra={**about(key), "reason": event.detail}
            )
            count("Misconfigured")
    if key.id.startswith(CANARY) and any(event.status == "delivered" for event in events):
        count("CanaryDelivered")
    match observed:
        case Foreign() | Outdated():
            kinds = sorted({event.kind for event in events})
            reason = type(observed).__name__
            logger.info("events that change nothing", extra=about(key), found=reason, kinds=kinds)
            count(f"Events{reason}", len(events))
        case Seen(item, moved=True) if key.event_type == "mail" and item["status"] == "delivered":
            count("MailsDelivered")


def _first_time(event: Event, facts: Mapping[str, Any]) -> int:
    """Return the earliest time at which the event was reported. `facts` are the ledger's attributes of the
    message or of the recipient, which include the times of earlier reports.

    If Twilio repeats a callback, the event's time is the time of the repetition. With this later time, the
    callback would suppress a recipient again whom an operator has removed from the list since the first
    report.
    """
    names = [name for name in event.facts if name.endswith("At") and name != "sentAt"]
    return min([event.at, *(int(facts[name]) for name in names if name in facts)])
