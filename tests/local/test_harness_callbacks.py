"""Callbacks are read by their signatures, and compared with those that must come."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from lab.harness.callbacks import ReceivedCallback, different, notice_faults, read
from lab.harness.expected import Notice
from lab.load import fax

KEY = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr"
MOST = 20
FAX = fax("7", "+14155550130", providers="", fails=2, max_attempts=MOST)
WANTED = FAX.callbacks
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
"""Long ago: a run may be judged at any time after it."""
MAIL: list[Notice] = [("sent", "Mail sent"), ("delivered", "Mail delivered")]


def received_request(webhook_id: str, payload: Any, key: str = KEY, signed: datetime = NOW) -> dict[str, Any]:
    """A request as the receiver keeps it."""
    body = json.dumps(payload)
    headers = {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(int(signed.timestamp())),
        "webhook-signature": Webhook(key).sign(webhook_id, signed, body),
    }
    return {
        "path": "/receiver/ok/callbacks/7",
        "headers": headers,
        "body": body,
        "received_at": NOW.isoformat(),
    }


def received_callback(nth: int, what: Notice, timestamp: int = 1) -> ReceivedCallback:
    payload = {"fax_id": "7", "status": what[0], "message": what[1], "timestamp": timestamp}
    return ReceivedCallback(f"msg_{nth}", "callbacks", "7", payload, verified=True)


ALL = [received_callback(nth, what, nth) for nth, what in enumerate(WANTED)]


def test_the_harness_accepts_callbacks_in_another_order_than_that_of_their_timestamps() -> None:
    assert notice_faults("7", ALL, WANTED) == notice_faults("7", ALL[::-1], WANTED) == []


@pytest.mark.parametrize(
    ("came", "fault"),
    [
        (ALL[1:], "7: no callback 'tmp_fail'."),
        (
            [received_callback(nth, what, 9 - nth) for nth, what in enumerate(WANTED)],
            "The callbacks about 7 have timestamps in another order than expected.",
        ),
        ([*ALL, received_callback(9, WANTED[0])], "7 had 4 different callbacks instead of 3."),
        (
            [received_callback(0, ("tmp_fail", "It did not work.")), *ALL[1:]],
            "7: unexpected callback 'tmp_fail': It did not work.",
        ),
    ],
)
def test_the_harness_reports_a_missing_surplus_unexpected_or_misordered_callback_of_a_message(
    came: list[ReceivedCallback], fault: str
) -> None:
    assert fault in notice_faults("7", came, WANTED)


def test_the_harness_accepts_a_missing_callback_with_the_status_sent_if_a_later_one_came() -> None:
    sent, delivered = received_callback(0, MAIL[0]), received_callback(1, MAIL[1])
    for came in ([delivered], [sent, delivered], [delivered, sent]):
        assert notice_faults("7", came, MAIL) == []
    assert notice_faults("7", [sent], MAIL) == ["7: no callback 'delivered'."]
    assert "another order" in notice_faults("7", [delivered, received_callback(0, MAIL[0], 2)], MAIL)[0]


def test_the_harness_drops_a_callback_that_repeats_a_webhook_id() -> None:
    assert different([*ALL, ALL[0]]) == ALL


def test_the_harness_rejects_a_webhook_that_was_signed_with_another_key() -> None:
    payload = {"fax_id": "7", "status": "sent"}
    right, wrong = read([received_request("a", payload), received_request("b", payload, "b" * 44)], KEY)
    assert (right.verified, right.about, right.kind, right.payload) == (True, "7", "callbacks", payload)
    assert right.at == NOW.timestamp()
    assert not wrong.verified


def test_the_harness_rejects_a_signature_whose_time_was_more_than_five_minutes_off_on_arrival() -> None:
    times = (timedelta(minutes=-6), timedelta(minutes=-4), timedelta(minutes=6))
    came = read([received_request("a", {}, signed=NOW + each) for each in times], KEY)
    assert [each.verified for each in came] == [False, True, False]


def test_the_harness_rejects_a_webhook_whose_body_was_changed_on_its_way() -> None:
    kept = received_request("a", {"status": "sent"})
    (changed,) = read([kept | {"body": kept["body"] + " "}], f"whsec_{KEY}")
    assert not changed.verified


def test_the_harness_expects_the_contracts_messages_in_the_callbacks_of_an_always_busy_fax() -> None:
    said = fax("b", "+1", providers="", fails=MOST, max_attempts=MOST, reason="busy").callbacks
    assert len(said) == MOST
    assert said[6] == ("tmp_fail", "Failed to deliver fax (attempt 7 of 20). Fax status: busy")
    assert said[-1] == ("perm_fail", "Failed to deliver fax after 20 tries. Last attempt status: busy")
