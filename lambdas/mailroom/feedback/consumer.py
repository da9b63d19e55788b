"""Takes providers' events from their queue into the ledger, and hard failures and STOP into the suppression
list.

All events of a batch about one attempt are one write. Repeating any of it is harmless: see `observer`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import clients, queues
from mailroom.environment import FEEDBACK_KEPT_BACK_SECONDS, FeedbackSettings
from mailroom.errors import Malformed
from mailroom.feedback.keywords import Keywords, KeywordText
from mailroom.feedback.reader import PartlyMalformed, read
from mailroom.ledger.items import REDIRECTED_TO
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import Foreign, Outdated, observe
from mailroom.message import address
from mailroom.message.address import spellings, to_e164
from mailroom.message.message import Key
from mailroom.message.outcome import Event
from mailroom.recipients.choices import Suppression, Suppressions
from mailroom.telemetry import about, count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


Attempt = tuple[Key, int]
"""What events are gathered by."""


class Gathered(Struct):
    """A batch, read: the events of each attempt, the ids of the records that they came in, texts with the
    ids of theirs, and by their ids the receipts of malformed records."""

    events: dict[Attempt, list[Event]]
    records: dict[Attempt, set[str]]
    texts: list[tuple[KeywordText, str]]
    malformed: dict[str, str]


class Feedback(Struct, frozen=True):
    """Works for the feedback queue."""

    settings: FeedbackSettings
    ledger: Ledger
    suppressions: Suppressions
    sqs: "SQSClient"

    @classmethod
    def of(cls, settings: FeedbackSettings) -> "Feedback":
        """What a function's settings describe."""
        list_ = Suppressions.of(settings.suppressions_table)
        return cls(settings, Ledger.of(settings), list_, clients.sqs())

    def handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        """One batch; the records that must come back. `remaining` is the time left, in milliseconds."""
        batch = self._gather(event["Records"])
        failed = {
            id_
            for attempt, events in batch.events.items()
            if not self._record(events, remaining)
            for id_ in batch.records[attempt]
        }
        failed |= {id_ for text, id_ in batch.texts if not self._heed(text, remaining)}
        # What failed for want of DynamoDB waits out its visibility.
        receipts = [(receipt, queues.AT_ONCE) for receipt in batch.malformed.values()]
        queues.set_visibility(self.sqs, self.settings.queue_url, receipts)
        back = sorted(failed | batch.malformed.keys())
        return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in back]}

    def _gather(self, records: Iterable[Mapping[str, Any]]) -> Gathered:
        topics, region = self.settings.feedback_topics, self.settings.default_region
        words = Keywords.of(self.settings.stop_words, self.settings.start_words)
        batch = Gathered(defaultdict(list), defaultdict(set), [], {})
        for record in records:
            id_ = record["messageId"]
            try:
                events = read(record["body"], topics, region, words)
            except Malformed as fault:
                logger.error("not an event", reason=str(fault), message_id=id_)
                count("Malformed")
                batch.malformed[id_] = record["receiptHandle"]
                events = fault.events if isinstance(fault, PartlyMalformed) else []
            for event in events:
                if isinstance(event, KeywordText):
                    batch.texts.append((event, id_))
                    continue
                attempt = (event.key, event.attempt)
                batch.events[attempt].append(event)
                batch.records[attempt].add(id_)
        return batch

    def _record(self, events: list[Event], remaining: Callable[[], int]) -> bool:
        """Bring the events of one attempt into the ledger. False: their records must come back."""
        if remaining() < FEEDBACK_KEPT_BACK_SECONDS * 1000:
            return False
        key = events[0].key
        try:
            observed = observe(self.ledger, events)
            if not isinstance(observed, Foreign):
                # Also of an attempt that is over: who complained then wants nothing now either.
                self._suppress(events, observed.item)
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the records
            logger.exception("an event was not recorded; it is tried again", extra=about(key))
            return False
        count("Events", len(events))
        if isinstance(observed, Foreign | Outdated):
            kinds = sorted({event.kind for event in events})
            what = type(observed).__name__
            logger.info("events that change nothing", extra=about(key), found=what, kinds=kinds)
            count(f"Events{what}", len(events))
        return True

    def _heed(self, text: KeywordText, remaining: Callable[[], int]) -> bool:
        """Stop all texts to a number, or end that. False: the record must come back."""
        if remaining() < FEEDBACK_KEPT_BACK_SECONDS * 1000:
            return False
        try:
            if text.wish == "stop":
                detail = f"STOP sent to {text.sent_to}"
                news = self.suppressions.mark(Suppression(text.number, "sms", "stop", text.at, detail))
            else:
                # A provider may have refused a message to another form of the number.
                starts = [self.suppressions.start(each, "sms", text.at) for each in spellings(text.number)]
                news = any(starts)
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the record
            logger.exception("a text was not heeded; it is tried again", wish=text.wish)
            return False
        if news:
            count("TextsStop" if text.wish == "stop" else "TextsStart")
        return True

    def _suppress(self, events: Iterable[Event], item: Mapping[str, Any]) -> None:
        """Mark recipients that nothing will reach, or who want nothing more.

        Only the message's own recipients: what a provider says of others is not believed. Of a message that
        was redirected they got nothing, and who got it has not done anything to be marked for.
        """
        if REDIRECTED_TO in item:
            return
        for event in events:
            if event.suppress is None:
                continue
            own = self._own(event.key, item)
            named = event.recipients or (() if event.several else own)
            for recipient in named:
                if own.isdisjoint(spellings(recipient)):
                    logger.warning("an event names somebody else's recipient", extra=about(event.key))
                    continue
                at = _first_time(event, item.get("recipients", {}).get(recipient, item))
                channel, message_id = event.key.event_type, event.key.id
                mark = Suppression(recipient, channel, event.suppress, at, event.detail, message_id)
                if self.suppressions.mark(mark):
                    count("SuppressionsMarked")

    def _own(self, key: Key, item: Mapping[str, Any]) -> set[str]:
        """The message's recipients, by the ledger."""
        several = item.get("recipients")
        if several:
            return {*several}
        to = item.get("to", [])
        return {self._canonical(key, each) for each in ([to] if isinstance(to, str) else to)}

    def _canonical(self, key: Key, recipient: str) -> str:
        if key.event_type == "sms":
            return to_e164(recipient, self.settings.default_region or None)
        return address.bare(recipient)


def _first_time(event: Event, known: Mapping[str, Any]) -> int:
    """When this was known first. A callback that is posted again has the time of that, and would undo what an
    operator has lifted meanwhile."""
    names = [name for name in event.facts if name.endswith("At") and name != "sentAt"]
    return min([event.at, *(int(known[name]) for name in names if name in known)])
