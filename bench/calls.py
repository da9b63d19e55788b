"""AWS calls, write units and cost of a mail, counted on the functions' own requests."""

import json
import subprocess
import sys
from collections import Counter
from typing import Any

from bench import REPOSITORY
from bench.environment import clean
from bench.events import Context, queue_batch, stream_batch
from bench.ledger_size import LedgerSize
from bench.stubs import answer_at_once
from ops.estimates import prices

MAILS = 1000

SENDER_SECONDS = 0.1
"""Assumed of one mail in the sender: SES's answer and two writes; not measured, for there is no account."""
MEMORY_GB = 0.25


def measure() -> dict[str, Any]:
    """Calls by name and a mail, ledger write units a mail, dollars per million mails."""
    command = [sys.executable, "-m", "bench.calls"]
    done = subprocess.run(command, cwd=REPOSITORY, env=clean(), capture_output=True, text=True, check=True)
    counted: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    calls = counted["calls"]
    units = counted["ledger_units"] / MAILS
    return {
        "calls_per_mail": round(sum(calls.values()) / MAILS, 3),
        "calls_by_name": {name: round(number / MAILS, 3) for name, number in sorted(calls.items())},
        "write_units_per_mail": round(units, 3),
        "ledger_item_bytes": counted["item_bytes"],
        "dollars_per_million": _dollars(units),
    }


def _dollars(ledger_units: float) -> dict[str, float]:
    """What a million mails cost in US dollars, by part. Lambda's pollers receive and delete in tens, as
    dispatch sends."""
    parts = {
        "mailbox and ledger writes": (1 + ledger_units) * prices.WRITE_UNIT,
        "queue requests": 3 / prices.QUEUED * prices.SQS_REQUEST,
        "invocations": (1 / prices.DISPATCHED + 1 / prices.QUEUED) * prices.LAMBDA_REQUEST,
        "sender's time": SENDER_SECONDS * MEMORY_GB * prices.LAMBDA_GB_SECOND,
        "SES": prices.SES_MAIL,
    }
    dollars = {name: round(price * 1e6, 2) for name, price in parts.items()}
    return dollars | {"all but SES": round(sum(parts.values()) * 1e6 - dollars["SES"], 2)}


def main() -> None:
    """Take mails through dispatch and sender in this process; the counts go to standard error."""
    from mailroom.aws import clients

    calls: Counter[str] = Counter()
    ledger = LedgerSize()
    for client in (clients.dynamodb(), clients.sqs(), clients.sesv2(10.0), clients.s3(), clients.scheduler()):
        answer_at_once(client, calls)
    clients.dynamodb().meta.events.register(
        "provide-client-params.dynamodb.UpdateItem", lambda params, **_: ledger.write(params)
    )
    import dispatch
    import send_mail

    for first in range(0, MAILS, 100):
        dispatch.handler(stream_batch(first), Context())
    for first in range(0, MAILS, 10):
        send_mail.handler(queue_batch(first), Context())
    counts = {"calls": calls, "ledger_units": ledger.units, "item_bytes": ledger.largest}
    print(json.dumps(counts), file=sys.stderr)


if __name__ == "__main__":
    main()
