"""Calls, writes and write units, counted on the functions' own requests: a mail's, a fax's, a campaign's."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from logging.handlers import BufferingHandler
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.functions import (
    FUNCTION,
    answer_at_once,
    context,
    create_table,
    in_a_process,
    queue_batch,
    records,
    report,
    stream_batch,
)
from mailroom import environment
from mailroom.aws.dynamo import size_of
from mailroom.channels.fax.contract import Delivered, FaxRequest, FaxState, Pending
from mailroom.message.outcome import Outcome, Sent

MAILS = 1000
PEOPLE = 5_000
CAMPAIGN = "weekly-followers"
BUCKET, FILE = "lists", "people.csv"
FUNCTION_SECONDS = 900.0
REQUEST_SECONDS = 0.2
"""Of each request to the fax provider."""
FAX_SECONDS = {"short": 60.0, "long": 2400.0}
FAX = {"event_type": "fax", "to": "+16175551234", "pdf_url": "https://files.example/42.pdf"}


def mails() -> dict[str, Any]:
    """Calls by name and a mail, ledger write units and log lines a mail."""
    counted = in_a_process("bench.counted", "mails")
    calls = counted["calls"]
    return {
        "calls_per_mail": round(sum(calls.values()) / MAILS, 3),
        "calls_by_name": {name: round(number / MAILS, 3) for name, number in sorted(calls.items())},
        "write_units_per_mail": round(counted["units"] / MAILS, 3),
        "log_lines_per_mail": round(counted["log_lines"] / MAILS, 3),
        "ledger_item_bytes": counted["item_bytes"],
    }


def campaign() -> dict[str, Any]:
    """Calls by name and a recipient, from a CSV file to the mailbox."""
    calls = in_a_process("bench.counted", "campaign")
    return {
        "campaign_calls_per_recipient": round(sum(calls.values()) / PEOPLE, 3),
        "campaign_calls_by_name": {name: round(n / PEOPLE, 4) for name, n in sorted(calls.items())},
    }


def faxes() -> dict[str, Any]:
    """What a short and a long fax cost, on a virtual clock, by figure."""
    found = in_a_process("bench.counted", "faxes")
    return {figure: {name: found[name][figure] for name in found} for figure in found["short"]}


class LedgerSize:
    """Follows items through their writes and adds up write units: the larger of old and new, per KiB."""

    def __init__(self, client: Any) -> None:
        self.units = 0
        self.largest = 0
        self._items: dict[str, dict[str, Any]] = {}
        for operation, take in (("UpdateItem", self._update), ("BatchExecuteStatement", self._insert)):
            client.meta.events.register(
                f"provide-client-params.dynamodb.{operation}", lambda params, take=take, **_: take(params)
            )

    def _update(self, request: dict[str, Any]) -> None:
        """One UpdateItem: what it sets, by attribute."""
        values, names = request["ExpressionAttributeValues"], request["ExpressionAttributeNames"].values()
        self._write(
            {**request["Key"], **{name: values[f":{name}"] for name in names if f":{name}" in values}}
        )

    def _insert(self, request: dict[str, Any]) -> None:
        """INSERTs, each attribute of which is a parameter."""
        for each in request["Statements"]:
            self._write(
                dict(zip(re.findall(r"'(\w+)': \?", each["Statement"]), each["Parameters"], strict=True))
            )

    def _write(self, sets: dict[str, Any]) -> None:
        item = self._items.setdefault(sets["id"]["S"], {})
        item |= sets
        size = size_of(item)
        self.largest = max(self.largest, size)
        self.units += -(-size // 1024)


def _count_mails() -> dict[str, Any]:
    """Take mails through dispatch and sender."""
    from mailroom.aws import clients
    from mailroom.telemetry import logger

    lines = BufferingHandler(sys.maxsize)
    logger.addHandler(lines)
    calls: Counter[str] = Counter()
    dynamodb = clients.dynamodb()
    size = LedgerSize(dynamodb)
    answer_at_once(
        dynamodb, clients.sqs(), clients.sesv2(10.0), clients.s3(), clients.scheduler(), calls=calls
    )
    import dispatch
    import send_mail

    for first in range(0, MAILS, 100):
        dispatch.handler(stream_batch(first), context())
    for first in range(0, MAILS, 10):
        send_mail.handler(queue_batch(first), context())
    written = len(lines.buffer)
    return {"calls": calls, "units": size.units, "item_bytes": size.largest, "log_lines": written}


def _count_faxes() -> dict[str, Any]:
    """Let each fax be followed to its end."""
    from moto import mock_aws

    with mock_aws():
        from mailroom.aws import clients

        create_table(clients.dynamodb(), "ledger", "id", "event_type")
        return {
            name: _Fax(seconds, clients.dynamodb()).figures({**FAX, "id": f"invoice-{name:.2}"})
            for name, seconds in FAX_SECONDS.items()
        }


class _Fax:
    """One fax that takes `seconds`, followed by functions of 15 minutes. It is its own provider."""

    provider = account = "bench"

    def __init__(self, seconds: float, dynamodb: Any) -> None:
        self._seconds = seconds
        self._dynamodb = dynamodb
        self._size = LedgerSize(dynamodb)
        self._now = 1_800_000_000.0
        self._ends = 0.0
        self._billed = 0.0

    def figures(self, item: dict[str, Any]) -> dict[str, float]:
        """Ledger units, invocations, and seconds of fax for a second of function."""
        began, invocations = self._now, 1
        while self._invoke(item) is not None:
            invocations += 1
        return {
            "fax_ledger_units": self._size.units,
            "fax_invocations": invocations,
            "faxes_held_per_function_second": round((self._ends - began) / self._billed, 3),
        }

    def _invoke(self, fax: dict[str, Any]) -> float | None:
        from mailroom.channels.fax.adapter import FaxAdapter
        from mailroom.channels.fax.delivery import FaxDelivery
        from mailroom.delivery.worker import Pace, QueueRecord, Tools
        from mailroom.ledger.ledger import Ledger
        from mailroom.message.message import key_of

        started: float = self._now
        absent: Any = None
        variables = {**FUNCTION, "CHANNEL": "fax", "PACE_SECONDS": "2", "SUBMIT_SECONDS": "20"}
        settings = environment.read(environment.FaxSender, {**variables, "RECORD_SECONDS": "10"})
        tools = Tools(
            Ledger(self._dynamodb, "ledger", lease=960, ttl=90 * 86400, clock=self._clock),
            payloads=absent,
            dynamodb=absent,
            sqs=absent,
            pace=Pace(settings.pace_seconds, self._clock, self._sleep),
            clock=self._clock,
            sleep=self._sleep,
            jitter=lambda: 0.5,
        )
        opened: Any = lambda: self  # noqa: E731
        delivery = FaxDelivery(settings, FaxAdapter(settings, opened, absent), tools)
        item, message = delivery.read(dict(fax))
        left = lambda: int((started + FUNCTION_SECONDS - self._now) * 1000)  # noqa: E731
        wait = delivery.deliver(message, QueueRecord(item, key_of(item), 1, None, left))
        self._billed += self._now - started
        self._now += wait or 0.0
        return wait

    def _clock(self) -> float:
        return self._now

    def _sleep(self, seconds: float) -> None:
        self._now += seconds

    def submit(self, _request: FaxRequest) -> Outcome:
        self._now += REQUEST_SECONDS
        self._ends = self._now + self._seconds
        return Sent("fx-1")

    def fetch(self, _provider_id: str) -> FaxState:
        self._now += REQUEST_SECONDS
        return Delivered() if self._now >= self._ends else Pending("sending")


def _count_campaign() -> dict[str, int]:
    """Take people through collect and compose, over a CSV file and moto."""
    from moto import mock_aws

    with mock_aws(), TemporaryDirectory() as folder:
        from mailroom.aws import clients

        calls: Counter[str] = Counter()
        made: list[Any] = [clients.dynamodb(), clients.sqs(), clients.s3()]
        collect, audience = _make(*made)
        for client in made:
            client.meta.events.register("before-call", lambda model, **_: calls.update([model.name]))
        collecting, composing = _functions(Path(folder) / "campaigns.json", collect, audience)
        start = json.dumps({"campaign": CAMPAIGN, "scheduled_at": "2026-11-21T14:00:00Z"})
        clients.sqs().send_message(QueueUrl=collect, MessageBody=start)
        calls.clear()
        _take_all(clients.sqs(), calls, collect, collecting)
        _take_all(clients.sqs(), calls, audience, composing)
        found = clients.dynamodb().scan(TableName="mailbox", Select="COUNT")["Count"]
        calls["Scan"] -= 1
    if found != PEOPLE:
        raise RuntimeError(f"{found} of {PEOPLE} were composed; the figures would be wrong")
    return +calls


def _take_all(
    sqs: Any, calls: Counter[str], url: str, handle: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Hand a function what is in its queue, as Lambda's pollers do, whose own calls do not count here."""
    while messages := sqs.receive_message(QueueUrl=url).get("Messages"):
        if handle(records(*(each["Body"] for each in messages)))["batchItemFailures"]:
            raise RuntimeError("a record came back; the figures would be wrong")
        for each in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        calls.subtract({"ReceiveMessage": 1, "DeleteMessage": len(messages)})
    calls["ReceiveMessage"] -= 1


def _make(dynamodb: Any, sqs: Any, s3: Any) -> list[str]:
    for name in ("mailbox", "ledger"):
        create_table(dynamodb, name, "id", "event_type")
    create_table(dynamodb, "preferences", "recipient", "topic")
    create_table(dynamodb, "campaign-runs", "campaign", "run")
    lines = [f"u-{n},person-{n}@example.com,Person {n}" for n in range(PEOPLE)]
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key=FILE, Body="\n".join(["user,email,first_name", *lines]).encode())
    return [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("collect", "audience")]


def _functions(campaigns: Path, collect: str, audience: str) -> tuple[Any, Any]:
    from mailroom.campaigns.collector import Collector
    from mailroom.campaigns.composer import Composer

    source = {"kind": "csv", "location": f"s3://{BUCKET}/{FILE}", "key": "user", "columns": ["email"]}
    attributes = {"template": CAMPAIGN}
    definition = {"name": CAMPAIGN, "channel": "mail", "topic": "followers", "attributes": attributes}
    campaigns.write_text(json.dumps({CAMPAIGN: {**definition, "audience": source}}))
    variables = {
        **FUNCTION,
        "CAMPAIGNS": str(campaigns),
        "LEASE_SECONDS": "60",
        "AUDIENCE_QUEUE_URL": audience,
    }
    collector = Collector.of(
        environment.read(environment.CollectSettings, {**variables, "QUEUE_URL": collect})
    )
    composer = Composer.of(
        environment.read(environment.ComposeSettings, {**variables, "QUEUE_URL": audience})
    )
    return collector.handle, lambda event: composer.handle(event, lambda: 60_000)


if __name__ == "__main__":
    report({"mails": _count_mails, "faxes": _count_faxes, "campaign": _count_campaign}[sys.argv[1]]())
