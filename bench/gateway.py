"""Fax and webhooks: what a fax costs in writes and in function time, and webhooks delivered a second."""

import json
import statistics
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from bench.ledger_size import LedgerSize
from local import stage
from local.aws import LocalSession, patient
from local.state import State
from local.workspace import DOT_LOCAL, Workspace
from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.contract import Delivered, FaxRequest, FaxState, Pending
from mailroom.channels.fax.delivery import FaxDelivery
from mailroom.delivery.worker import Pace, Record, Tools
from mailroom.environment import FaxSender
from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import Outcome, Sent

FUNCTION_SECONDS = 900.0
FAX_SECONDS = {"short": 60.0, "long": 2400.0}
WEBHOOKS, RUNS = 500, 3
LONGEST = 120.0
FAX = {
    "id": "invoice-42",
    "event_type": "fax",
    "to": "+16175551234",
    "pdf_url": "https://files.example/42.pdf",
}


def measure(announce: Callable[[str], None]) -> dict[str, Any]:
    """Figures of a short and a long fax on a virtual clock, and of the webhook queue on the emulator."""
    faxes = {name: _Gateway(seconds).figures() for name, seconds in FAX_SECONDS.items()}
    by_figure = {figure: {name: faxes[name][figure] for name in faxes} for figure in faxes["short"]}
    return {**by_figure, **_webhooks(announce)}


class _Gateway:
    """One fax that takes `seconds`, followed by functions of 15 minutes with prod's numbers."""

    provider = "bench"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._now = 1_800_000_000.0
        self._ends = 0.0
        self._requests = 0
        self._billed = 0.0
        self._item: dict[str, Any] = {}
        self._size = LedgerSize()

    def figures(self) -> dict[str, float]:
        """Ledger writes and units, requests to the provider, and seconds of fax for a second of function."""
        began, invocations = self._now, 0
        while self._invoke() is not None:
            invocations += 1
        return {
            "fax_ledger_writes": self._size.writes,
            "fax_ledger_units": self._size.units,
            "fax_provider_requests": self._requests,
            "fax_invocations": invocations + 1,
            "faxes_held_per_function_second": round((self._ends - began) / self._billed, 3),
        }

    def _invoke(self) -> float | None:
        started = self._now
        tools: Any = Tools(
            Ledger(self, "ledger", lease=960, ttl=90 * 86400, clock=lambda: self._now),  # type: ignore[arg-type]
            payloads=None,  # type: ignore[arg-type]
            dynamodb=None,  # type: ignore[arg-type]
            sqs=None,  # type: ignore[arg-type]
            pace=Pace(2.0, lambda: self._now, self._sleep),
            clock=lambda: self._now,
            sleep=self._sleep,
            jitter=lambda: 0.5,
        )
        adapter = FaxAdapter(
            "bench",
            lambda: self,  # type: ignore[arg-type, return-value]
            tools.payloads,
            senders=["+12025550123"],
            media_seconds=3600,
            clock_skew_seconds=5,
        )
        delivery = FaxDelivery(_settings(), adapter, tools)
        item, fax = delivery.read(dict(FAX))
        left = lambda: int((started + FUNCTION_SECONDS - self._now) * 1000)  # noqa: E731
        wait = delivery.deliver(fax, Record(item, 1, None, left))
        self._billed += self._now - started
        self._now += wait or 0.0
        return wait

    def _sleep(self, seconds: float) -> None:
        self._now += seconds

    # The provider: one request takes a fifth of a second.

    def submit(self, _request: FaxRequest) -> Outcome:
        self._ask()
        self._ends = self._now + self._seconds
        return Sent("fx-1")

    def fetch(self, _provider_id: str) -> FaxState:
        self._ask()
        return Delivered() if self._now >= self._ends else Pending("sending")

    def _ask(self) -> None:
        self._requests += 1
        self._now += 0.2

    # DynamoDB: the one item, well enough for a claim after a hand-back.

    class exceptions:  # noqa: N801 - as boto3 has it
        """None is ever raised."""

        class ConditionalCheckFailedException(Exception):
            """A condition that fails."""

    def update_item(self, **request: Any) -> dict[str, Any]:
        """Keeps what is set, forgets what is removed; the size counts the units."""
        self._size.write(request)
        old = dict(self._item)
        removed = request["UpdateExpression"].partition(" REMOVE ")[2].partition(" ADD ")[0]
        for alias, name in request["ExpressionAttributeNames"].items():
            if f"{alias} " in f"{removed.replace(',', ' ')} ":
                self._item.pop(name, None)
            elif (value := request["ExpressionAttributeValues"].get(":" + name)) is not None:
                self._item[name] = value
        return {"Attributes": old} if request["ReturnValues"] == "ALL_OLD" else {}


def _settings() -> FaxSender:
    return FaxSender(
        ledger_table="ledger",
        ledger_ttl_seconds=90 * 86400,
        payload_bucket="payloads",
        channel="fax",
        queue_url="https://sqs/fax.fifo",
        lease_seconds=960,
        pace_seconds=2,
        on_unknown="hold",
        backoff_seconds=5,
        backoff_cap_seconds=900,
        misconfigured_seconds=10,
        submit_seconds=20,
        record_seconds=10,
        fax_provider="signalwire",
        fax_secret_arn="secret",
        fax_base_url="https://example.signalwire.com",
        fax_senders=["+12025550123"],
        fax_connection_id="",
        fax_ttl_minutes=5,
        fax_quality="fine",
        media_seconds=3600,
        poll_seconds=5,
        longest_fax_seconds=7200,
        max_attempts=20,
        last_submit_receive=40,
        clock_skew_seconds=5,
        callback_schemes=["https"],
        callback_ports=[443],
    )


def _webhooks(announce: Callable[[str], None]) -> dict[str, Any]:
    workspace = Workspace(DOT_LOCAL / "bench")
    stage.stop(workspace)
    try:
        running = stage.start(workspace, announce)
        _rate(running, 100)  # warm
        rates = [_rate(running, WEBHOOKS) for _ in range(RUNS)]
    finally:
        stage.stop(workspace)
    announce(f"{WEBHOOKS} webhooks: {statistics.median(rates):.0f} a second")
    return {
        "webhooks_per_second": round(statistics.median(rates), 1),
        "webhooks_per_second_runs": [round(each, 1) for each in rates],
    }


def _rate(running: State, count: int) -> float:
    """Callbacks delivered a second, from the first one queued to the last one received."""
    _request("DELETE", running.endpoints.received)
    sqs = LocalSession().client("sqs", endpoint_url=running.endpoints.aws, config=patient())
    url = running.outputs["WebhookQueueUrl"]
    target = f"{running.endpoints.providers}/receiver/ok/bench"
    started = time.monotonic()
    for first in range(0, count, 10):
        entries: Any = [
            {"Id": str(at), "MessageBody": _body(target, first + at), "MessageGroupId": "127.0.0.1"}
            for at in range(10)
        ]
        sqs.send_message_batch(QueueUrl=url, Entries=entries)
    while (received := len(json.loads(_request("GET", running.endpoints.received)))) < count:
        if time.monotonic() > started + LONGEST:
            raise TimeoutError(f"{received} of {count} webhooks were delivered in {LONGEST} s")
        time.sleep(0.2)
    return count / (time.monotonic() - started)


def _body(url: str, number: int) -> str:
    payload = {"id": f"m-{number}", "event_type": "mail", "status": "sent", "timestamp": 1_800_000_000}
    return json.dumps(
        {
            "webhook_id": f"msg_{number}",
            "url": url,
            "id": f"m-{number}",
            "event_type": "mail",
            "name": "sent.1",
            "payload": payload,
        }
    )


def _request(method: str, url: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as reply:
        return bytes(reply.read())
