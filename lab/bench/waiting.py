"""Messages that wait: what holding them and handing them over takes, on DynamoDB Local.

DynamoDB Local does not limit a partition, and the queue is a double. So the figures are calls and the time
of the processor. They do not show the speed of AWS.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from lab import size
from lab.bench.functions import FUNCTION
from mailroom.aws.dynamo_batches import batch_put
from mailroom.aws.dynamo_values import image_of
from mailroom.channels.contracts import contracts_of
from mailroom.clock import iso
from mailroom.content.payloads import Payloads
from mailroom.dispatch.dispatcher import Dispatcher, Validator
from mailroom.dispatch.release import Lease, Mailbox, Release
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.contents import Contents
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.run_states import RunStates
from mailroom.ledger.waits import INDEX, PROJECTED, SEND_AT, SHARDS, Wait, Waits
from mailroom.message.message import parse
from mailroom.telemetry import quiet
from tests.oracle.engine import install, running

HELD, DUE, LATER = size(5_000, 100), size(20_000, 400), size(80_000, 400)
"""Messages whose hold is measured, messages that are due in the same minute, the held ones among them, and
messages that are due in a week."""
BATCH = 100
_CONTRACTS = contracts_of("US")
_TTL = 90 * 86_400


class _Queue:
    """A queue that takes everything."""

    def __init__(self) -> None:
        self.messages = 0

    def send_message_batch(self, **arguments: Any) -> dict[str, Any]:
        self.messages += len(arguments["Entries"])
        return {"Successful": [{"Id": entry["Id"]} for entry in arguments["Entries"]]}


def measure() -> dict[str, Any]:
    """Hold messages, let a round of each shard hand over those that are due, and let one look again."""
    install()
    # Metrics need the variables of a deployed function.
    with quiet(), running() as client:
        start = time.time()
        _tables(client)
        waits = Waits(client, "ledger", _TTL)
        _fill(client, waits, start)
        holds = _measure(client, lambda: _hold(waits, start))
        queue = _Queue()
        release = _release(client, waits, queue)
        hand_over = _measure(client, lambda: _rounds(release))
        if queue.messages != DUE:
            raise ValueError(f"{queue.messages} of {DUE} messages were handed over")
        idle = _measure(client, lambda: _rounds(release))
        return {
            "waiting_messages": DUE + LATER,
            "waiting_hold": _each(holds, HELD),
            "waiting_hand_over": _each(hand_over, DUE),
            "waiting_calls_of_idle_rounds": dict(idle[0]),
        }


def _tables(client: Any) -> None:
    for table, names in (
        ("mailbox", ("id", "event_type")),
        ("contents", ("message", "version")),
        ("budgets", ("name",)),
    ):
        client.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            KeySchema=_keys(*names),
        )
    keys = {"id": "S", "event_type": "S", "waits_in": "S", "waits_at": "N"}
    client.create_table(
        TableName="ledger",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in keys.items()],
        KeySchema=_keys("id", "event_type"),
        GlobalSecondaryIndexes=[
            {
                "IndexName": INDEX,
                "KeySchema": _keys("waits_in", "waits_at"),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": [*PROJECTED]},
            }
        ],
    )


def _keys(*names: str) -> Any:
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def _fill(client: Any, waits: Waits, start: float) -> None:
    """Write items of the mailbox, and messages that wait already, without measuring that."""
    for first in range(0, DUE, BATCH):
        batch_put(
            client, "mailbox", [image_of(_item(number, start)) for number in range(first, first + BATCH)]
        )
    for first in range(HELD, DUE + LATER, BATCH):
        batch_put(client, "ledger", [waits._item(wait) for wait in _waits(first, start)])


def _hold(waits: Waits, start: float) -> None:
    """Hold messages in batches of the size that dispatch has."""
    for first in range(0, HELD, BATCH):
        if not all(waits.hold(_waits(first, start))):
            raise ValueError("a message could not be held")


def _waits(first: int, start: float) -> list[Wait]:
    due = start if first < DUE else start + 7 * 86_400
    messages = [parse(_item(number, due), _CONTRACTS) for number in range(first, first + BATCH)]
    return [Wait(message, SEND_AT, due, f"v-{message.key.id}", start - 600, new=True) for message in messages]


def _item(number: int, due: float) -> dict[str, Any]:
    return {
        "id": f"order-{number}",
        "event_type": "mail",
        "to": f"person-{number}@example.com",
        "subject": "Your order is on its way",
        "text": "It comes tomorrow. " * 20,
        "send_at": iso(due),
    }


def _release(client: Any, waits: Waits, queue: Any) -> Release:
    ledger = Ledger(client, "ledger", lease=120, ttl=_TTL, clock=time.time)
    routes = {"mail": {"normal": FUNCTION["QUEUE_URL"]}}
    validator = Validator(_CONTRACTS, routes, payloads=Payloads(client, "payloads"), callbacks=UrlPolicy())
    dispatcher = Dispatcher(routes, validator, ledger, waits, queue)
    contents, lease = Contents(client, "contents", time.time), Lease(client, "budgets", 75, time.time)
    mailbox, runs = Mailbox(client, "mailbox"), RunStates(client, "", time.time)
    return Release(dispatcher, waits, contents, mailbox, ledger, lease, {}, runs, threads=8)


def _rounds(release: Release) -> None:
    for shard in range(SHARDS):
        release.handle({"shard": shard}, lambda: 60_000)


def _measure(client: Any, work: Callable[[], object]) -> tuple[Counter[str], float, float]:
    """Return the calls of DynamoDB, the seconds of this process's processor, and the seconds on the clock."""
    calls = Counter[str]()

    def count(model: Any, **_: Any) -> None:
        calls[model.name] += 1

    client.meta.events.register("before-call.dynamodb", count, unique_id="bench")
    processor, clock = time.process_time(), time.perf_counter()
    work()
    measured = calls, time.process_time() - processor, time.perf_counter() - clock
    client.meta.events.unregister("before-call.dynamodb", unique_id="bench")
    return measured


def _each(measured: tuple[Counter[str], float, float], messages: int) -> dict[str, Any]:
    """Return what one message took."""
    calls, processor, clock = measured
    return {
        "calls": {name: round(number / messages, 3) for name, number in sorted(calls.items())},
        "cpu_ms": round(1000 * processor / messages, 2),
        "ms": round(1000 * clock / messages, 2),
    }
