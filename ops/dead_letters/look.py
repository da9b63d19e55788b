"""A look at dead letters that takes none: what each is about, why it is dead, and what the ledger says."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
from msgspec import Struct

from mailroom.aws.dynamo import Sets, batch_get, string
from mailroom.dead_letters.cause import Cause, Subject, cause_of, subject_of
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, DeadLetter, DeadLetterQueue
from mailroom.message.message import Key
from ops.dead_letters.queues import DeadQueue
from ops.stage import name

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_sqs import SQSClient

HIDDEN_SECONDS = 270.0
"""For as long a letter stays hidden, and a little longer, should this process die before it puts it back."""


class Seen(Struct, frozen=True):
    """A letter, and what is known of it. `item` is the ledger's ({}: none), `first_seen` when the function
    dead-letters told of it (epoch milliseconds; None: not yet)."""

    letter: DeadLetter
    subject: Subject
    cause: Cause
    item: dict[str, Any]
    first_seen: int | None = None


class Looking:
    """Looks through one stage's dead-letter queues. The cause is told anew from the ledger: what was true
    when the letter died need not be so any more."""

    def __init__(self, session: boto3.Session, stage: str) -> None:
        self._sqs = session.client("sqs")
        self._dynamodb: DynamoDBClient = session.client("dynamodb")
        self._ledger = name(stage, "ledger")
        self._log = name(stage, "dead-letters")

    @contextmanager
    def through(self, queue: DeadQueue) -> Iterator["Pass"]:
        """A pass through a queue; at the end of the block all that it has not deleted is there for everybody
        again."""
        pass_ = Pass(self._sqs, queue, self)
        try:
            yield pass_
        finally:
            pass_.put_back()

    def known(self, letters: list[DeadLetter]) -> Iterator[Seen]:
        """What is known of each of these."""
        subjects = {each.message_id: subject_of(each) for each in letters}
        keys = dict.fromkeys(each.key for each in subjects.values() if each.key is not None)
        found = batch_get(
            self._dynamodb,
            {
                self._ledger: [_where(key) for key in keys],
                self._log: [{"message_id": string(each)} for each in subjects],
            },
            consistent=True,
        )
        items = {Key(each["id"], each["event_type"]): each for each in found[self._ledger]}
        told = {each["message_id"]: int(each["first_seen"]) for each in found[self._log]}
        for letter in letters:
            subject = subjects[letter.message_id]
            item = items.get(subject.key, {}) if subject.key is not None else {}
            cause = cause_of(letter, subject, item)
            yield Seen(letter, subject, cause, item, told.get(letter.message_id))


class Pass(DeadLetterQueue):
    """Hands out the letters of a queue, each once. When it has ended, `complete` says whether those were all:
    a pass holds a certain number, and in a long one the first letters come again before the last are seen."""

    def __init__(self, client: "SQSClient", queue: DeadQueue, looking: Looking) -> None:
        super().__init__(client, queue.name, queue.url, LONG_POLL_SECONDS)
        self._looking = looking

    def __iter__(self) -> Iterator[Seen]:
        while not self.full and (letters := self.receive(HIDDEN_SECONDS)):
            yield from self._looking.known(letters)

    def delete(self, letter: DeadLetter) -> None:
        """Take one out for good."""
        self._client.delete_message(QueueUrl=self._url, ReceiptHandle=self._held.pop(letter.message_id))


def _where(key: Key) -> Sets:
    return {"id": string(key.id), "event_type": string(key.event_type)}
