"""What a provider's event costs: CPU time with the network stubbed, and writes with DynamoDB in process.

A mail has two events at least, Send and Delivery. SNS hands them on in any order, some twice; those of one
mail that come in one batch of the function are one write.
"""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from bench import REPOSITORY
from bench.environment import clean
from bench.events import Context
from bench.stubs import answer_at_once

MAILS = 300
BATCH = 100
ROUNDS = 10
TOPIC = "arn:aws:sns:us-east-1:123456789012:feedback"
REACH = {"together": 40, "apart": MAILS}
"""How far events may be from their place, in events: a quiet hour, and a campaign in full flow."""
DOUBLED = 0.05


def measure() -> dict[str, Any]:
    """Events a second of one function's CPU, and ledger writes an event."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.feedback"],
        cwd=REPOSITORY,
        env=clean(),
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    return figures


def main() -> None:
    """Measure in this process; the figures go to standard error."""
    from mailroom.aws import clients

    clients.dynamodb()
    told = _told(REACH["apart"])
    figures = {"feedback_events_per_cpu_second": _speed(told)}
    clients.dynamodb.cache_clear()
    sys.modules.pop("feedback")
    writes = {name: _writes(_told(reach)) for name, reach in REACH.items()}
    print(json.dumps({**figures, "feedback_writes_per_event": writes}), file=sys.stderr)


def _speed(told: list[str]) -> int:
    """The whole function, botocore's own work included, up to the socket."""
    from mailroom.aws import clients

    for client in (clients.dynamodb(), clients.sqs()):
        answer_at_once(client)
    import feedback

    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for start in range(0, len(told), BATCH):
            feedback.handler(_batch(told[start : start + BATCH]), Context())
        best = min(best, time.process_time() - started)
    return round(len(told) / best)


def _writes(told: list[str]) -> float:
    """Updates of the ledger an event, each mail having been sent before."""
    from moto import mock_aws

    with mock_aws():
        from mailroom.aws import clients

        clients.dynamodb.cache_clear()
        clients.sqs.cache_clear()
        client = clients.dynamodb()
        _make_ledger(client)
        calls: Counter[str] = Counter()
        client.meta.events.register("before-call.dynamodb", lambda model, **_: calls.update([model.name]))
        import feedback

        for start in range(0, len(told), BATCH):
            answer = feedback.handler(_batch(told[start : start + BATCH]), Context())
            if answer["batchItemFailures"]:
                raise RuntimeError("events came back; the figure would be wrong")
        sys.modules.pop("feedback")
        clients.dynamodb.cache_clear()
        return round(calls["UpdateItem"] / len(told), 2)


def _make_ledger(client: Any) -> None:
    from mailroom.channels.mail.contract import Mail
    from mailroom.ledger.items import Claimed
    from mailroom.ledger.ledger import Ledger

    keys = {"id": "HASH", "event_type": "RANGE"}
    client.create_table(
        TableName="ledger",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in keys],
    )
    ledger = Ledger(client, "ledger", lease=120, ttl=1e6, clock=time.time)
    for number in range(MAILS):
        claim = ledger.claim(Mail(id=f"m-{number}", event_type="mail", to=f"p{number}@example.com"))
        if isinstance(claim, Claimed):
            ledger.complete(claim, "ses", f"ses-{number}")


def _told(reach: int) -> list[str]:
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


def _batch(bodies: list[str]) -> dict[str, Any]:
    return {
        "Records": [
            {"messageId": f"m-{at}", "receiptHandle": f"r-{at}", "body": body}
            for at, body in enumerate(bodies)
        ]
    }


if __name__ == "__main__":
    main()
