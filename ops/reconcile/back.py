"""Puts messages back on their way, by those who do it every day: nothing here writes the ledger.

missing      a put, told once more   ─▶ dispatch ─▶ queue, schedule, or failed with a reason
fax          a change of its ledger item ─▶ outcomes ─▶ retry queue
begun        the mailbox's item and its attempt ─▶ the queue of its channel
scheduled    its key ─▶ the queue that its schedule would have written to
"""

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.aws import queues
from mailroom.aws.dynamo import image_of, plain
from mailroom.aws.queues import Entry
from mailroom.errors import Invalid
from mailroom.ledger.change import LedgerChange
from mailroom.message.message import Key, encode
from ops.reconcile.judge import Way
from ops.reconcile.reading import Image
from ops.resend.copies import Copies, reopening
from ops.resend.deployed import Deployed

_RECORDS = 100
_BYTES = 4 * 1024 * 1024
"""Of one invocation, which takes 6 MB."""


class Stuck(Struct, frozen=True):
    """One message: its items in DynamoDB's form, `None` where there is none, and who is to put it back."""

    key: Key
    way: Way
    ledger: Image | None
    mailbox: Image | None


class Back:
    """Works for one stage. Each way answers with the number of those that it could not put back."""

    def __init__(self, deployed: Deployed) -> None:
        self._deployed = deployed
        self._copies = Copies(deployed)
        self._ways: Mapping[Way, Callable[[Sequence[Stuck]], int]] = {
            "dispatch": lambda stuck: self._invoke("dispatch", map(_put, stuck)),
            "outcomes": lambda stuck: self._invoke("outcomes", map(_change, stuck)),
            "queue": self._queue,
            "scheduled": self._schedule,
        }

    def put(self, stuck: Sequence[Stuck]) -> tuple[Counter[str], int]:
        """Put them back. How many, by channel, and how many were not."""
        counts: Counter[str] = Counter()
        failed = 0
        for way, take in self._ways.items():
            for channel in {each.key.event_type for each in stuck if each.way == way}:
                mine = [each for each in stuck if each.way == way and each.key.event_type == channel]
                left = take(mine)
                counts[channel] += len(mine) - left
                failed += left
        return +counts, failed

    def _invoke(self, short: str, records: Iterator[dict[str, Any]]) -> int:
        return sum(self._invoked(short, batch) for batch in _batches(records))

    def _invoked(self, short: str, batch: Sequence[str]) -> int:
        event = f'{{"Records":[{",".join(batch)}]}}'.encode()
        try:
            reply = self._deployed.functions.invoke(FunctionName=self._deployed.name(short), Payload=event)
        except (ClientError, BotoCoreError):
            return len(batch)  # told by the count; the next run meets the same fault, or none
        if "FunctionError" in reply:
            return len(batch)
        return len(json.loads(reply["Payload"].read()).get("batchItemFailures", ()))

    def _queue(self, stuck: Sequence[Stuck]) -> int:
        entries, unfit = [], 0
        for at, each in enumerate(stuck):
            attempt = int(plain(each.ledger or {}).get("attempts", 0)) + 1
            try:
                entries.append(self._copies.entry(str(at), plain(each.mailbox or {}), attempt))
            except Invalid:
                unfit += 1
        return unfit + len(self._copies.send(entries))

    def _schedule(self, stuck: Sequence[Stuck]) -> int:
        name = self._deployed.dispatch.schedule_target_arn.rpartition(":")[2]
        url = self._deployed.sqs.get_queue_url(QueueName=name)["QueueUrl"]
        bodies = [encode({"id": each.key.id, "event_type": each.key.event_type}) for each in stuck]
        entries = [Entry(str(at), body) for at, body in enumerate(bodies)]
        return len(queues.send(self._deployed.sqs, url, entries))


def _put(stuck: Stuck) -> dict[str, Any]:
    return {"eventName": "INSERT", "dynamodb": {"NewImage": stuck.mailbox}}


def _change(stuck: Stuck) -> dict[str, Any]:
    """What the ledger's stream told when the fax began to wait, or would tell if it was reopened now."""
    item = plain(stuck.ledger or {})
    waits = item["status"] == "retrying" and "error" in item
    change = LedgerChange({**item, "status": "sending"}, item) if waits else reopening(item)
    images = {"OldImage": image_of(change.old), "NewImage": image_of(change.new)}
    return {"eventName": "MODIFY", "dynamodb": images}


def _batches(records: Iterator[dict[str, Any]]) -> Iterator[list[str]]:
    """The records as JSON, as many as an invocation takes."""
    batch: list[str] = []
    size = 0
    for at, record in enumerate(records):
        record["dynamodb"]["SequenceNumber"] = str(at)
        text = json.dumps(record, default=_binary, ensure_ascii=False, separators=(",", ":"))
        if batch and (len(batch) == _RECORDS or size + len(text.encode()) > _BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text.encode())
    if batch:
        yield batch


def _binary(value: Any) -> str:
    """As a stream's record has it."""
    return base64.b64encode(bytes(value)).decode()
