"""Baseline without idempotency: a mail sender that sends every message, with Mailroom's adapter."""

import json
from typing import Any

from lab.bench.adapter import adapter
from mailroom.channels.mail.contract import Mail
from mailroom.message.message import parse
from mailroom.message.outcome import Sent


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    failed = []
    for record in event["Records"]:
        mail = parse(json.loads(record["body"]), {"mail": Mail})
        if not isinstance(adapter.submit(adapter.prepare(mail)), Sent):
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}
