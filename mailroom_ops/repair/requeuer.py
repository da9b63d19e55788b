"""Puts messages back into their usual queues, or hands them to their usual functions. This module does not
write to the ledger. There are three routes:

dispatch     The function `dispatch` gets the mailbox item as a stream record of a put. It queues the message,
             makes it wait, or records why it failed.
outcomes     The function `outcomes` gets a stream record of a change of a fax's ledger item. It queues the
             fax's next attempt.
queue        The mailbox item and the number of its next attempt are sent to the queue of its channel.

Even if a route is used repeatedly, or the message is still on its way, the message is not sent twice:

dispatch     The copy has the first attempt's number, and the claim lets one worker have it. A wait and a
             refusal are written once.
outcomes     The copy has the next attempt's number, which one worker claims. A callback that is repeated has
             the same `webhook-id`.
queue        The copy has the next attempt's number, which one worker claims.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.aws import queues
from mailroom.aws.dynamo_values import image_of
from mailroom.aws.queues import Entry
from mailroom.channels.fax import contract as fax
from mailroom.errors import Invalid
from mailroom.ledger.change import LedgerChange
from mailroom.mailbox import original
from mailroom.message.message import Key, Message, encode, parse
from mailroom.outcomes import retry_of
from mailroom_ops.shared.stage_queues import DeployedStage, Route, StoredMessage

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient

Item = Mapping[str, Any]
_RECORDS = 100
_BYTES = 4 * 1024 * 1024
"""Maximum number of bytes of one invocation; Lambda allows 6 MB."""


class NotHandedOver(Exception):
    """Failure of a function to process records. The error's text is the reason."""


def hand_over(functions: "LambdaClient", name: str, event: bytes) -> set[str]:
    """Invoke a function with the records of a stream, and return the sequence numbers of those that failed.
    Raises NotHandedOver if the invocation fails."""
    try:
        reply = functions.invoke(FunctionName=name, Payload=event)
    except (ClientError, BotoCoreError) as fault:
        raise NotHandedOver(f"its function could not be invoked: {fault}") from None
    if "FunctionError" in reply:
        raise NotHandedOver(f"its function failed; see the log of {name}")
    failures = json.loads(reply["Payload"].read()).get("batchItemFailures", ())
    return {failure["itemIdentifier"] for failure in failures}


def next_attempt(item: Item) -> int:
    """Return the number of a message's next attempt, by its ledger item."""
    return int(item.get("attempts", 0)) + 1


def fax_of(item: Item) -> dict[str, Any]:
    """Return the item for the next attempt of a fax, made from its ledger item."""
    body = retry_of(_reopening(item), 0) or {}
    return fax.item_of({name: value for name, value in body.items() if name != "not_before"})


class Requeuer:
    """Requeues messages of one stage."""

    def __init__(self, stage: DeployedStage) -> None:
        self._stage = stage
        self._routes = stage.dispatch.routes

    def requeue(self, stuck: Iterable[tuple[Route | None, StoredMessage]]) -> set[Key]:
        """Requeue each message by its route. Return the keys of the messages that could not be requeued, such
        as those without a route."""
        groups: dict[Route | None, list[StoredMessage]] = defaultdict(list)
        for route, message in stuck:
            groups[route].append(message)
        failed: set[Key] = set()
        for route, group in groups.items():
            match route:
                case "dispatch":
                    numbers = self._hand_over("dispatch", map(_put, group))
                case "outcomes":
                    numbers = self._hand_over("outcomes", map(_change, group))
                case "queue":
                    numbers = self._queue(group)
                case None:
                    numbers = set(map(str, range(len(group))))
            failed |= {message.key for number, message in enumerate(group) if str(number) in numbers}
        return failed

    def read(self, item: Item, attempt: int) -> Message:
        """Return the message as the worker will read it. Raises Invalid if the message would fail at once, or
        is not due yet."""
        message, now_s = self._parsed(item, attempt), self._stage.clock()
        if message.expired(now_s):
            raise Invalid("expires_at", f"{message.expires_at} is past")
        if (message.due() or 0) > now_s:
            raise Invalid("send_at", f"{message.send_at} is in the future; put the message under a new id")
        return message

    def entry(self, reference: str, item: Item, attempt: int) -> tuple[str, Entry]:
        """Return the URL of the queue and the queue message for an item that is not a fax. (The function
        `outcomes` makes the queue messages of faxes.) The message gets the current version of its template,
        like a message that `dispatch` queues. An expired message is queued as well: its worker records that
        it expired. Raises Invalid if the item is invalid, or if the stage does not have its channel or
        lane."""
        message = self._parsed(item, attempt)
        if self._stage.versions is not None:
            item = self._stage.versions.bound(message, item)
        kinds = {"channel": message.event_type, "type": message.kind}
        body = encode({**original(item), "attempt": attempt})
        url = self._routes[message.event_type][message.lane]
        return url, Entry(reference, body, kinds, group=message.group)

    def send(self, entries: Iterable[tuple[str, Entry]]) -> set[str]:
        """Send queue messages to their queues. Return the references of the messages that SQS did not
        accept."""
        by_url: dict[str, list[Entry]] = defaultdict(list)
        for url, entry in entries:
            by_url[url].append(entry)
        failed: set[str] = set()
        for url, batch in by_url.items():
            failed |= queues.send(self._stage.sqs, url, batch)
        return failed

    def _hand_over(self, function: str, records: Iterable[dict[str, Any]]) -> set[str]:
        """Invoke a function with records. Return the numbers of the records that failed."""
        failed: set[str] = set()
        number = 0
        for batch in queues.batches(_texts(records), lambda each: len(each.encode()), _RECORDS, _BYTES):
            event = f'{{"Records":[{",".join(batch)}]}}'.encode()
            try:
                failed |= hand_over(self._stage.functions, self._stage.name(function), event)
            except NotHandedOver:  # the operator's next run finds these messages again
                failed |= set(map(str, range(number, number + len(batch))))
            number += len(batch)
        return failed

    def _queue(self, messages: Sequence[StoredMessage]) -> set[str]:
        """Queue messages. Return the numbers of those that are invalid, or that SQS did not accept."""
        entries: list[tuple[str, Entry]] = []
        unfit: set[str] = set()
        for number, message in enumerate(messages):
            try:
                attempt = next_attempt(message.ledger or {})
                entries.append(self.entry(str(number), message.mailbox or {}, attempt))
            except Invalid:
                unfit.add(str(number))
        return unfit | self.send(entries)

    def _parsed(self, item: Item, attempt: int) -> Message:
        contracts = {name: kind for name, kind in self._stage.contracts.items() if name in self._routes}
        message = parse({**item, "attempt": attempt}, contracts)
        if message.lane not in self._routes[message.event_type]:
            raise Invalid("lane", f"{message.lane!r} is not set up for {message.event_type}")
        return message


def _reopening(item: Item) -> LedgerChange:
    """Return the change that the ledger's stream would have if a fax was reopened now. It makes `outcomes`
    queue the next attempt at once, and send no callback."""
    before = {"status": "sending", "generation": int(item.get("generation", 0)) - 1}
    return LedgerChange({**item, **before}, {**item, "status": "retrying"})


def _put(message: StoredMessage) -> dict[str, Any]:
    """Return the stream record of the message's put. The item of a campaign's later start has the number of
    its attempt; a message that the ledger does not have gets its first attempt, which a worker can claim."""
    item = {name: value for name, value in original(message.mailbox or {}).items() if name != "attempt"}
    return {"eventName": "INSERT", "dynamodb": {"NewImage": image_of(item)}}


def _change(message: StoredMessage) -> dict[str, Any]:
    """Return the stream record that made the fax wait for its next attempt or, if it does not wait, the
    record that would reopen it now."""
    item = message.ledger or {}
    waits = item["status"] == "retrying" and "error" in item
    change = LedgerChange({**item, "status": "sending"}, item) if waits else _reopening(item)
    images = {"OldImage": image_of(change.old), "NewImage": image_of(change.new)}
    return {"eventName": "MODIFY", "dynamodb": images}


def _texts(records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the records as JSON, each with its number as sequence number."""
    for number, record in enumerate(records):
        record["dynamodb"]["SequenceNumber"] = str(number)
        yield json.dumps(record, ensure_ascii=False, separators=(",", ":"))
