"""What a provider's event costs: CPU time with the network stubbed, and writes with DynamoDB in process.

A mail has two events at least, Send and Delivery. SNS hands them on in any order, some twice; those of one
mail that come in one batch of the function are one write.
"""

import json
import random
import sys
import time
from collections import Counter
from typing import Any

from bench.functions import answer_at_once, context, create_table, in_a_process, records, report

MAILS = 300
BATCH = 100
ROUNDS = 10
TOPIC = "arn:aws:sns:us-east-1:123456789012:feedback"
REACH = {"together": 40, "apart": MAILS}
"""How far events may be from their place, in events: a quiet hour, and a campaign in full flow."""
DOUBLED = 0.05


def measure() -> dict[str, Any]:
    """Events a second of one function's CPU, and ledger writes an event."""
    figures: dict[str, Any] = in_a_process("bench.feedback")
    return figures


def _figures() -> dict[str, Any]:
    speed = _speed(_bodies(REACH["apart"]))
    writes = {name: _writes(_bodies(reach)) for name, reach in REACH.items()}
    return {"feedback_events_per_cpu_second": speed, "feedback_writes_per_event": writes}


def _function() -> Any:
    """The function as a new process loads it, with clients of its own."""
    from mailroom.aws import clients

    for each in (clients.dynamodb, clients.sqs):
        each.cache_clear()
    sys.modules.pop("feedback", None)
    import feedback

    return feedback


def _speed(bodies: list[str]) -> int:
    """The whole function, botocore's own work included, up to the socket."""
    from mailroom.aws import clients

    feedback = _function()
    answer_at_once(clients.dynamodb(), clients.sqs())
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for start in range(0, len(bodies), BATCH):
            feedback.handler(records(*bodies[start : start + BATCH]), context())
        best = min(best, time.process_time() - started)
    return round(len(bodies) / best)


def _writes(bodies: list[str]) -> float:
    """Updates of the ledger an event, each mail having been sent before."""
    from moto import mock_aws

    with mock_aws():
        from mailroom.aws import clients

        feedback = _function()
        _make_ledger(clients.dynamodb())
        calls: Counter[str] = Counter()
        events = clients.dynamodb().meta.events
        events.register("before-call.dynamodb", lambda model, **_: calls.update([model.name]))
        for start in range(0, len(bodies), BATCH):
            answer = feedback.handler(records(*bodies[start : start + BATCH]), context())
            if answer["batchItemFailures"]:
                raise RuntimeError("events came back; the figure would be wrong")
        return round(calls["UpdateItem"] / len(bodies), 2)


def _make_ledger(client: Any) -> None:
    from mailroom.channels.mail.contract import Mail
    from mailroom.ledger.claims import Claimed
    from mailroom.ledger.ledger import Ledger

    create_table(client, "ledger", "id", "event_type")
    ledger = Ledger(client, "ledger", lease=120, ttl=1e6, clock=time.time)
    for number in range(MAILS):
        claim = ledger.claim(Mail(id=f"m-{number}", event_type="mail", to=f"p{number}@example.com"))
        if isinstance(claim, Claimed):
            ledger.complete(claim, "ses", f"ses-{number}")


def _bodies(reach: int) -> list[str]:
    """Two events a mail and some twice, each at most about `reach` places from where it belongs."""
    chance = random.Random(1)
    placed = [
        (at + chance.uniform(0, reach), _body(kind, at // 2))
        for at, kind in enumerate(("Send", "Delivery") * MAILS)
        for _ in range(2 if chance.random() < DOUBLED else 1)
    ]
    return [body for _, body in sorted(placed)]


def _body(kind: str, number: int) -> str:
    from mailroom.message.message import Reference

    at = f"2026-11-21T09:00:{number % 60:02}.000Z"
    to = [f"p{number}@example.com"]
    event = {
        "eventType": kind,
        "mail": {
            "timestamp": at,
            "source": "mailroom@example.com",
            "messageId": f"ses-{number}",
            "destination": to,
            "headersTruncated": False,
            "headers": [
                {"name": "From", "value": "Mailroom <mailroom@example.com>"},
                {"name": "X-Correlation-ID", "value": Reference(f"m-{number}").text},
            ],
            "tags": {"ses:configuration-set": ["mailroom"], "correlation": [Reference(f"m-{number}").text]},
        },
        "send": {},
        "delivery": {"timestamp": at, "recipients": to, "smtpResponse": "250 2.0.0 OK"},
    }
    return json.dumps({"Type": "Notification", "TopicArn": TOPIC, "Message": json.dumps(event)})


if __name__ == "__main__":
    report(_figures())
