"""The report of `mailroom rehearse --json`: what a stranger may read, and what makes it worth reading."""

import json
import re
from datetime import date
from importlib.metadata import version

import msgspec

from mailroom.client import MessageStatus
from mailroom_ops.deploying.rehearsal import Step, step_of
from mailroom_ops.deploying.rehearse import report_of

TIMES = {
    "putAt": "2026-11-27T08:00:00.000Z",
    "startedAt": "2026-11-27T08:00:00.250Z",
    "completedAt": "2026-11-27T08:00:00.400Z",
    "deliveredAt": "2026-11-27T08:00:02.000Z",
}
ACCEPTED = MessageStatus(
    "rehearsal-1", "mail", "delivered", provider="ses", provider_id="0100-abc", times=TIMES
)
REFUSED = MessageStatus(
    "rehearsal-1",
    "mail",
    "failed",
    times=TIMES,
    error={
        "code": "rejected",
        "message": "success@simulator.amazonses.com: arn:aws:ses:us-east-1:123456789012:identity/a unknown",
    },
)


def test_a_rehearsal_reports_the_seconds_to_the_claim_acceptance_and_delivery_of_a_message() -> None:
    step = step_of("a mail", "delivered", ACCEPTED)
    assert step.ok
    assert step.provider == "ses"
    assert step.seconds == {"claimed": 0.25, "accepted": 0.4, "delivered": 2.0}


def test_a_rehearsal_reports_the_error_code_of_an_unaccepted_message_and_omits_its_latencies() -> None:
    assert step_of("a mail", "delivered", REFUSED) == Step("a mail", "delivered", "failed", {}, "rejected")


def test_a_rehearsal_reports_a_message_without_a_ledger_item_and_omits_its_latencies() -> None:
    ready = MessageStatus("rehearsal-1", "mail", "ready", times={})
    assert step_of("a mail", "delivered", ready) == Step("a mail", "delivered", "ready")


def test_the_report_of_a_rehearsal_has_versions_region_and_steps_but_not_addresses_or_account_ids() -> None:
    steps = [step_of("a mail", "delivered", status) for status in (ACCEPTED, REFUSED, None)]
    text = msgspec.json.encode(report_of(steps, "eu-west-1", date(2026, 11, 27))).decode()
    report = json.loads(text)
    assert report.keys() == {"day", "versions", "region", "ok", "steps"}
    assert (report["day"], report["region"], report["ok"]) == ("2026-11-27", "eu-west-1", False)
    assert report["versions"].keys() == {"mailroom", "python", "cdk", "boto3"}
    assert report["versions"]["cdk"] == version("aws-cdk-lib")
    assert [(step["expected"], step["outcome"]) for step in report["steps"]] == [
        ("delivered", "delivered"),
        ("delivered", "failed"),
        ("delivered", "not there"),
    ]
    assert "@" not in text
    assert not re.search(r"\d{12}", text)
