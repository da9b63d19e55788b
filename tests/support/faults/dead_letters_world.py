"""The function that checks dead letters, with its queues and the ledger, for crash tests."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from mailroom.channels.fax.contract import Fax
from mailroom.channels.mail.contract import Mail
from mailroom.dead_letters.inspector import DeadLetterInspector
from mailroom.ledger.claims import Claimed
from mailroom.message.message import Message
from tests.support.faults.base import BaseWorld
from tests.support.faults.outside import Clock, Queued, Queues, Stopped

FUNCTION_SECONDS = 50.0
EVERY_SECONDS = 3600.0
STANDARD, FIFO, CALLBACKS = "https://sqs/mail-dlq", "https://sqs/fax-dlq.fifo", "https://sqs/webhook-dlq"
URLS = {"mail-dlq": STANDARD, "fax-dlq.fifo": FIFO, "webhook-dlq": CALLBACKS}
AT_ONCE = 2
"""Most letters of one receive. SQS may return fewer letters than the queue contains."""

Item = dict[str, Any]


class DeadLetterQueues(Queues):
    """SQS for a consumer that never deletes. Calls that would remove a letter do not exist."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, visibility=30, max_receives=1_000_000)

    def receive_message(
        self,
        *,
        QueueUrl: str,  # noqa: N803
        MaxNumberOfMessages: int,  # noqa: N803
        VisibilityTimeout: int,  # noqa: N803
        **_others: Any,
    ) -> Item:
        found = list(self._heads(QueueUrl) if QueueUrl.endswith(".fifo") else self._visible(QueueUrl))
        letters = found[: min(MaxNumberOfMessages, AT_ONCE)]
        for letter in letters:
            letter.receives += 1
            letter.visible_at = self._clock() + VisibilityTimeout
        return {"Messages": [_handed_out(letter) for letter in letters]} if letters else {}

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Any) -> Item:  # noqa: N803
        shown = len(list(self._visible(QueueUrl)))
        numbers = (shown, len(self.messages[QueueUrl]) - shown)
        return {"Attributes": {name: str(each) for name, each in zip(AttributeNames, numbers, strict=True)}}

    def hidden(self) -> int:
        """Return the letters that are invisible now."""
        return sum(len(letters) - len(list(self._visible(url))) for url, letters in self.messages.items())

    def redrive(self, url: str, chosen: Callable[[str], bool]) -> list[Item]:
        """Move the visible letters that are `chosen` back to their source queue, as an operator does.

        Returns their bodies.
        """
        moved = [each for each in self._visible(url) if chosen(each.body)]
        self.messages[url] = [each for each in self.messages[url] if each not in moved]
        return [json.loads(each.body) for each in moved]

    def _visible(self, url: str) -> Iterator[Queued]:
        return (each for each in self.messages[url] if each.visible_at <= self._clock())

    def _heads(self, url: str) -> Iterator[Queued]:
        """Return the first letter of each group without an invisible letter. The group is a body's `to`."""
        groups: set[str] = set()
        for letter in self.messages[url]:
            group = json.loads(letter.body)["to"]
            if group not in groups and letter.visible_at <= self._clock():
                yield letter
            groups.add(group)


def _handed_out(letter: Queued) -> Item:
    return {
        "MessageId": letter.message_id,
        "ReceiptHandle": letter.message_id,
        "Body": letter.body,
        "Attributes": {"ApproximateReceiveCount": str(letter.receives), "SentTimestamp": "1795251600000"},
    }


class DeadLettersWorld(BaseWorld):
    """A world with dead letters of every kind, and a schedule that starts the function repeatedly."""

    queues: DeadLetterQueues

    def __init__(self) -> None:
        self._restarted = False
        # A stopped process makes no further call, not even in a `finally`.
        super().__init__(
            calls=("update_item", "batch_get_item"), queues=DeadLetterQueues, time_is_up=self._dead
        )
        self.redriven: list[str] = []
        """The senders' writes go to an unwatched client, so this function is not stopped at them. Before a
        new claim, the sender has waited."""
        # Writes of the senders are not counted as calls of this function. Before a new claim, the sender has
        # waited.
        self.ledger = self.ledger_of(self.dynamodb, lease=0)
        self.sqs = self.outside.watch(
            self.queues, "receive_message", "get_queue_attributes", "change_message_visibility_batch"
        )

    def put(self, url: str, body: Item | str) -> None:
        self.queues.put(url, body if isinstance(body, str) else json.dumps(body))

    def mail(self, name: str, *, trouble: str = "", done: bool = False) -> Item:
        """Return a mail's item after a worker claimed it: it returned the mail for `trouble`, sent it, or
        crashed.
        """
        item = {"id": name, "event_type": "mail", "to": "ada@example.com"}
        claim = self.claim(Mail(id=name, event_type="mail", to="ada@example.com"))
        if trouble:
            self.ledger.release(claim, "misconfigured", trouble)
        if done:
            self.ledger.complete(claim, "ses", "p-1")
        return item

    def fax(self, name: str, number: str) -> Item:
        """Return a body of the fax queue whose fax a worker has claimed and not finished."""
        self.claim(Fax(id=name, event_type="fax", to=number, pdf_url="https://files.example/f.pdf"))
        return {"fax_id": name, "to": number}

    def claim(self, message: Message) -> Claimed:
        claim = self.ledger.claim(message)
        assert isinstance(claim, Claimed), claim
        return claim

    def run_pass(self) -> bool:
        """Run one pass in a new process, as the schedule does. Returns False if it crashes."""
        letters = DeadLetterInspector(
            URLS,
            self.ledger_of(self.watched, lease=0),
            self.sqs,
            long_poll=0,
        )
        end = self.clock() + FUNCTION_SECONDS
        try:
            letters.handle(lambda: int((end - self.clock()) * 1000))
        except Stopped:
            self._restarted = True
            return False
        return True

    def _dead(self) -> bool:
        return self.outside.stopped_at is not None and not self._restarted

    def settle(self) -> None:
        """Run the schedule's next passes: one may crash, and later passes do not."""
        for _ in range(2):
            self.run_pass()
            self.clock.sleep(EVERY_SECONDS)
