"""Messages of a later start of a campaign's run."""

from typing import Any

import pytest

from mailroom.campaigns.composer import _next_step
from mailroom.message.message import CampaignStart

START = CampaignStart("weekly", "r", 5)
EARLIER, OWN, LATER = ({"campaign_start": {"campaign": "weekly", "run": "r", "start": n}} for n in (4, 5, 6))
STOPPED = {"status": "cancelled", "completedAt": 1, "error": {"code": "stopped"}}
CLAIMED = {"status": "sending", "startedAt": 1, "unsettled_tries": ["1 ses"]}
IN_DOUBT = {"status": "sending", "unsettled_tries": ["1 ses"]}
SUBMITTED = {"status": "sending", "provider_id": "p-1"}
DEAD = {"dead_lettered_at": 1}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "the ledger lacks an item": ({}, "restart"),
    "it waits": ({"status": "scheduled", **EARLIER}, "restart"),
    "its claim was released": ({"status": "sending", "trouble": {"code": "retry"}, **EARLIER}, "restart"),
    "an earlier start has prepared its next attempt": ({"status": "retrying", **EARLIER}, "restart"),
    "it is a dead letter that was not sent": ({"status": "sending", **DEAD, **EARLIER}, "restart"),
    "it was cancelled by the stop": ({**STOPPED, **EARLIER}, "restart"),
    "a later attempt was cancelled by the stop": ({**STOPPED, **EARLIER, "attempts": 3}, "restart"),
    "this start has prepared its attempt": ({"status": "retrying", **OWN}, "queue"),
    "a worker has it": ({**CLAIMED, **EARLIER}, "wait"),
    "a worker has the attempt that an earlier start has prepared": (
        {"status": "sending", "startedAt": 1, **EARLIER},
        "wait",
    ),
    "it may have been sent": ({**IN_DOUBT, **EARLIER}, "wait"),
    "its provider has it": ({**SUBMITTED, **EARLIER}, "wait"),
    "it may have been sent and is a dead letter": ({**IN_DOUBT, **DEAD, **EARLIER}, "leave"),
    "its worker has crashed and it is a dead letter": ({**CLAIMED, **DEAD, **EARLIER}, "leave"),
    "a worker has the attempt of this start": ({**CLAIMED, **OWN}, "leave"),
    "the attempt of this start may have been sent": ({**IN_DOUBT, **OWN}, "leave"),
    "the attempt of this start waits": ({"status": "scheduled", **OWN}, "leave"),
    "the attempt of this start goes back to its queue": ({"status": "sending", **OWN}, "leave"),
    "the attempt of this start was cancelled by a later stop": ({**STOPPED, **OWN}, "leave"),
    "a later start has prepared its attempt": ({"status": "retrying", **LATER}, "leave"),
    "a worker has the attempt of a later start": ({**CLAIMED, **LATER}, "leave"),
    "the attempt of a later start was cancelled": ({**STOPPED, **LATER}, "leave"),
    "it was sent": ({"status": "sent", "completedAt": 1, **EARLIER}, "leave"),
    "it was delivered, and a worker had claimed it": (
        {"status": "delivered", "completedAt": 1, "startedAt": 1, **EARLIER},
        "leave",
    ),
    "it has failed": ({"status": "failed", "completedAt": 1, "error": {"code": "rejected"}}, "leave"),
    "its outcome stays unknown": (
        {"status": "failed", "completedAt": 1, "error": {"code": "outcome_unknown"}, **EARLIER},
        "leave",
    ),
    "its recipient has opted out": (
        {"status": "suppressed", "completedAt": 1, "error": {"code": "opted_out"}},
        "leave",
    ),
    "an operator has cancelled it": (
        {"status": "cancelled", "completedAt": 1, "error": {"code": "cancelled"}, **EARLIER},
        "leave",
    ),
    "its recipient was erased": ({**STOPPED, **EARLIER, "erased_at": 1}, "leave"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_later_start_of_a_run_treats_each_message_according_to_its_ledger_item(case: str) -> None:
    item, step = CASES[case]
    assert _next_step(item, START) == step
