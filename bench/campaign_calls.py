"""AWS calls of a campaign, counted on collect's and compose's own requests, over a CSV file and moto."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import REPOSITORY
from bench.environment import clean

PEOPLE = 5_000
CAMPAIGN = "weekly-followers"
TABLES = {
    "mailbox": ("id", "event_type"),
    "ledger": ("id", "event_type"),
    "preferences": ("recipient", "topic"),
    "runs": ("campaign", "run"),
}
BUCKET, FILE = "lists", "people.csv"
DEFINITION = {
    "name": CAMPAIGN,
    "channel": "mail",
    "topic": "followers",
    "attributes": {"template": CAMPAIGN},
    "audience": {
        "kind": "csv",
        "location": f"s3://{BUCKET}/{FILE}",
        "key": "user",
        "columns": ["email"],
    },
}


def measure() -> dict[str, Any]:
    """Calls by name and a recipient."""
    command = [sys.executable, "-m", "bench.campaign_calls"]
    done = subprocess.run(command, cwd=REPOSITORY, env=clean(), capture_output=True, text=True, check=True)
    calls: dict[str, int] = json.loads(done.stderr.splitlines()[-1])
    return {
        "campaign_calls_per_recipient": round(sum(calls.values()) / PEOPLE, 3),
        "campaign_calls_by_name": {name: round(n / PEOPLE, 4) for name, n in sorted(calls.items())},
    }


def main() -> None:
    """Take people through collect and compose in this process; the counts go to standard error."""
    from moto import mock_aws

    with mock_aws(), TemporaryDirectory() as folder:
        from mailroom.aws import clients

        calls: Counter[str] = Counter()
        made: list[Any] = [clients.dynamodb(), clients.sqs(), clients.s3()]
        queues = _make(*made)
        for client in made:
            client.meta.events.register("before-call", lambda model, **_: calls.update([model.name]))
        collect, compose = _functions(Path(folder), *queues)
        taken = _Taken(clients.sqs(), calls)
        start = json.dumps({"campaign": CAMPAIGN, "scheduled_at": "2026-11-21T14:00:00Z"})
        clients.sqs().send_message(QueueUrl=queues[0], MessageBody=start)
        calls.clear()
        taken.all(queues[0], collect)
        taken.all(queues[1], compose)
        found = clients.dynamodb().scan(TableName="mailbox", Select="COUNT")["Count"]
        calls["Scan"] -= 1
    if found != PEOPLE:
        raise RuntimeError(f"{found} of {PEOPLE} were composed; the figures would be wrong")
    print(json.dumps(+calls), file=sys.stderr)


class _Taken:
    """What Lambda's pollers do, whose own calls do not count here."""

    def __init__(self, sqs: Any, calls: Counter[str]) -> None:
        self._sqs = sqs
        self._calls = calls

    def all(self, queue: str, handle: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Until the queue is empty."""
        while messages := self._sqs.receive_message(QueueUrl=queue).get("Messages"):
            self._calls["ReceiveMessage"] -= 1
            records = [
                {"messageId": each["MessageId"], "receiptHandle": each["ReceiptHandle"], "body": each["Body"]}
                for each in messages
            ]
            if handle({"Records": records})["batchItemFailures"]:
                raise RuntimeError("a record came back; the figures would be wrong")
            for each in messages:
                self._sqs.delete_message(QueueUrl=queue, ReceiptHandle=each["ReceiptHandle"])
                self._calls["DeleteMessage"] -= 1
        self._calls["ReceiveMessage"] -= 1


def _make(dynamodb: Any, sqs: Any, s3: Any) -> tuple[str, str]:
    for name, keys in TABLES.items():
        dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[
                {"AttributeName": key, "KeyType": kind}
                for key, kind in zip(keys, ("HASH", "RANGE"), strict=True)
            ],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        )
    lines = [f"u-{n},person-{n}@example.com,Person {n}" for n in range(PEOPLE)]
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key=FILE, Body="\n".join(["user,email,first_name", *lines]).encode())
    collect, audience = (sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("collect", "audience"))
    return collect, audience


def _functions(folder: Path, collect: str, audience: str) -> tuple[Any, Any]:
    from mailroom.campaigns.wiring import collector_of, composer_of
    from mailroom.environment import Collect, Compose

    campaigns = folder / "campaigns.json"
    campaigns.write_text(json.dumps({CAMPAIGN: DEFINITION}))
    collecting = Collect(
        queue_url=collect,
        audience_queue_url=audience,
        runs_table="runs",
        run_ttl_seconds=7_776_000,
        lease_seconds=60,
        campaigns=str(campaigns),
    )
    composing = Compose(
        ledger_table="ledger",
        ledger_ttl_seconds=7_776_000,
        payload_bucket="payloads",
        queue_url=audience,
        mailbox_table="mailbox",
        preferences_table="preferences",
        runs_table="runs",
        run_ttl_seconds=7_776_000,
        campaigns=str(campaigns),
    )
    composer = composer_of(composing)
    return collector_of(collecting).handle, lambda event: composer.handle(event, lambda: 60_000)


if __name__ == "__main__":
    main()
