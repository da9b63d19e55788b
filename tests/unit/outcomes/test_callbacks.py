"""Callbacks: each outcome of a message with a callback URL has one, and other changes have none."""

from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.ledger.change import LedgerChange
from mailroom.outcomes import Callback, callback_of
from tests.support.unit.fax import LINE, TOLD
from tests.support.unit.shared import NOW

BUSY = {"code": "busy", "message": "Fax status: busy"}
SEVENTH = "Failed to deliver fax (attempt 7 of 20). Fax status: busy"
UNCOUNTED = "Failed to deliver fax (this attempt does not count). Fax status: busy"
LAST = "Failed to deliver fax after 20 tries. Last attempt status: busy"
FAX = {
    "id": "abc123",
    "event_type": "fax",
    "status": "sending",
    "to": LINE,
    "callback_url": TOLD,
    "callbacks": {},
}
MAIL = {**FAX, "id": "m-1", "event_type": "mail", "to": "vincent@example.com"}


def ledger_change(old: dict[str, Any] = FAX, **changes: Any) -> LedgerChange:
    new = {**old, "updatedAt": iso(NOW + 0.9), **changes}
    return LedgerChange(old, {name: value for name, value in new.items() if value is not ...})


def callback_after(old: dict[str, Any] = FAX, **changes: Any) -> Callback:
    callback = callback_of(ledger_change(old, **changes), max_attempts=20)
    assert callback is not None
    return callback


def test_the_attempt_number_in_the_callback_of_a_fax_leaves_out_attempts_that_do_not_count() -> None:
    before = {**FAX, "attempts": 8, "uncounted_attempts": 2}
    assert callback_after(before, status="retrying", attempts=9, error=BUSY).payload["message"] == SEVENTH


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"status": "sent", "attempts": 1}, "sent", "Fax sent successfully"),
        ({"status": "delivered", "attempts": 1, "pages": 3}, "sent", "Fax sent successfully"),
        ({"status": "sent", "attempts": 7, "error": BUSY}, "sent", "Fax sent successfully"),
        ({"status": "retrying", "attempts": 7, "error": BUSY}, "tmp_fail", SEVENTH),
        ({"status": "retrying", "attempts": 4, "retry_count": 3, "error": BUSY}, "tmp_fail", SEVENTH),
        (
            {"status": "retrying", "attempts": 9, "uncounted_attempts": 2, "error": BUSY},
            "tmp_fail",
            UNCOUNTED,
        ),
        ({"status": "failed", "attempts": 1, "retry_count": 19, "error": BUSY}, "perm_fail", LAST),
        ({"status": "failed", "attempts": 20, "error": BUSY}, "perm_fail", LAST),
        (
            {
                "status": "failed",
                "attempts": 1,
                "error": {"code": "failed", "message": "Fax status: failed (x)"},
            },
            "perm_fail",
            "Failed to deliver fax after 1 try. Last attempt status: failed",
        ),
        (
            {"status": "failed", "error": {"code": "invalid", "message": "to: is missing; give one"}},
            "perm_fail",
            "Failed to deliver fax: to: is missing; give one",
        ),
        (
            {
                "status": "failed",
                "attempts": 3,
                "error": {"code": "expired", "message": "expires_at: it is past"},
            },
            "perm_fail",
            "Failed to deliver fax: expires_at: it is past",
        ),
        (
            {"status": "cancelled", "error": {"code": "cancelled", "message": "the item was deleted"}},
            "perm_fail",
            "Fax cancelled: the item was deleted",
        ),
    ],
)
def test_the_callback_of_a_fax_has_the_format_of_the_fax_gateway(
    changes: dict[str, Any], status: str, message: str
) -> None:
    callback = callback_after(**changes)
    assert callback.payload == {
        "fax_id": "abc123",
        "status": status,
        "message": message,
        "timestamp": int(NOW),
        "timestamp_ms": int(NOW) * 1000 + 900,
    }
    assert type(callback.payload["timestamp"]) is int
    assert (callback.url, callback.id, callback.event_type) == (TOLD, "abc123", "fax")


def test_nineteen_busy_attempts_are_reported_as_temporary_failures_and_the_twentieth_as_permanent() -> None:
    callbacks = [callback_after(status="retrying", attempts=attempt, error=BUSY) for attempt in range(1, 20)]
    callbacks.append(callback_after(status="failed", attempts=20, error=BUSY))
    assert [callback.payload["status"] for callback in callbacks] == ["tmp_fail"] * 19 + ["perm_fail"]
    names = [*(f"retrying.{attempt}" for attempt in range(1, 20)), "failed.20"]
    assert [callback.name for callback in callbacks] == names
    assert len({callback.webhook_id for callback in callbacks}) == 20


@pytest.mark.parametrize(
    ("event_type", "changes", "message"),
    [
        ("mail", {"status": "sent"}, "Mail sent successfully"),
        ("mail", {"status": "delivered", "error": BUSY}, "Mail delivered"),
        ("mail", {"status": "bounced"}, "Mail bounced"),
        (
            "mail",
            {"status": "bounced", "error": {"code": "x", "message": "no such box"}},
            "Mail bounced: no such box",
        ),
        ("mail", {"status": "complained"}, "The recipient complained about the mail"),
        ("sms", {"status": "failed", "error": {"code": "x", "message": "no"}}, "Failed to send sms: no"),
        ("sms", {"status": "undelivered"}, "SMS could not be delivered"),
        ("webhook", {"status": "failed"}, "Failed to send webhook"),
        ("mail", {"status": "odd"}, "mail: odd"),
    ],
)
def test_the_callback_of_a_message_other_than_a_fax_has_the_messages_key_and_status(
    event_type: str, changes: dict[str, Any], message: str
) -> None:
    callback = callback_after({**MAIL, "event_type": event_type}, **changes)
    assert callback.payload["message"].casefold() == message.casefold()
    assert {name: callback.payload[name] for name in ("id", "event_type", "status", "timestamp")} == {
        "id": "m-1",
        "event_type": event_type,
        "status": changes["status"],
        "timestamp": int(NOW),
    }
    assert "fax_id" not in callback.payload


@pytest.mark.parametrize(
    ("old", "changes"),
    [
        (FAX, {"status": "sent", "callback_url": ...}),
        (FAX, {"status": "sent", "callback_url": ""}),
        ({}, {**FAX}),
        ({**FAX, "status": "retrying"}, {"status": "sending"}),
        ({}, {**FAX, "status": "scheduled"}),
        ({**FAX, "status": "failed"}, {"status": "retrying", "generation": 1}),
        ({**FAX, "status": "sent"}, {"callbacks": {"sent.1": {"status": "delivered"}}}),
        ({**FAX, "status": "retrying", "attempts": 1}, {"callbacks": {"retrying.1": {"status": "failed"}}}),
        (FAX, {"provider_id": "p-1", "submittedAt": 7}),
        ({**FAX, "status": "failed"}, {"dead_lettered_at": 7}),
    ],
)
def test_a_ledger_change_without_an_outcome_or_a_callback_url_causes_no_callback(
    old: dict[str, Any], changes: dict[str, Any]
) -> None:
    assert callback_of(ledger_change(old, **changes), 20) is None


def test_an_invalid_message_causes_a_callback_even_if_its_ledger_item_is_new() -> None:
    callback = callback_after(
        {}, **{**FAX, "status": "failed", "error": {"code": "invalid", "message": "to: no"}}
    )
    assert (callback.name, callback.payload["message"]) == ("failed.0", "Failed to deliver fax: to: no")


def test_a_repeated_stream_record_causes_the_same_callback() -> None:
    assert callback_after(status="sent", attempts=1) == callback_after(status="sent", attempts=1)


def test_callbacks_of_different_messages_statuses_attempts_or_resends_have_different_webhook_ids() -> None:
    reopened = {**FAX, "generation": 1}
    callbacks = [
        callback_after(status="sent", attempts=1),
        callback_after(status="sent", attempts=2),
        callback_after(status="failed", attempts=1),
        callback_after(status="retrying", attempts=1, error=BUSY),
        callback_after(status="retrying", attempts=11, error=BUSY),
        callback_after(reopened, status="sent", attempts=1, generation=1),
        callback_after({**reopened, "generation": 2}, status="sent", attempts=1, generation=2),
        callback_after({**FAX, "id": "abc124"}, status="sent", attempts=1),
        callback_after({**FAX, "event_type": "mail"}, status="sent", attempts=1),
    ]
    assert len({callback.webhook_id for callback in callbacks}) == len(callbacks)
    assert len({callback.name for callback in callbacks}) == len(callbacks) - 2


def test_the_name_of_a_callback_after_a_resend_includes_the_number_of_resends() -> None:
    old = {**FAX, "generation": 1, "attempts": 20}
    assert callback_after(old, status="sent", attempts=21, generation=1).name == "sent.21.1"


def test_a_webhook_id_has_at_most_64_characters_and_contains_no_dot() -> None:
    id_ = callback_after(status="sent").webhook_id
    assert id_.startswith("msg_")
    assert len(id_) <= 64
    assert "." not in id_  # Standard Webhooks signs `id.timestamp.body`


@pytest.mark.parametrize(
    ("url", "group"),
    [
        ("https://app.example/faxes", "app.example"),
        ("https://APP.example:8443/x?y=z#a", "app.example"),
        ("https://user:word@app.example/", "app.example"),
        ("http://127.0.0.1:8080/", "127.0.0.1"),
        ("https://" + "a" * 300 + ".example/", "a" * 128),
        ("https://[::1/", "unknown"),
        ("nonsense", "unknown"),
    ],
)
def test_callbacks_to_the_same_host_have_the_same_message_group(url: str, group: str) -> None:
    assert callback_after({**FAX, "callback_url": url}, status="sent").group == group


def test_the_callback_of_an_invalid_message_names_the_invalid_attribute() -> None:
    error = {"code": "invalid", "message": "to: is missing", "field": "to"}
    assert callback_after(status="failed", error=error).payload["field"] == "to"
    assert "field" not in callback_after(status="sent", error=error).payload


def test_a_callback_names_the_template_and_version_if_a_published_version_was_used() -> None:
    published = callback_after({**MAIL, "template": "welcome", "template_version": 7}, status="sent").payload
    assert (published["template"], published["template_version"]) == ("welcome", 7)
    assert "template" not in callback_after({**MAIL, "template": "welcome"}, status="sent").payload


def test_the_callback_of_a_message_cancelled_by_its_unless_names_the_message_that_fulfilled_it() -> None:
    other = {"id": "code-17", "event_type": "sms", "status": "delivered"}
    error = {"code": "unless", "message": "unless: sms code-17 is delivered"}
    payload = callback_after(MAIL, status="cancelled", error=error, unless_fulfilled=other).payload
    assert (payload["unless"], payload["message"]) == (
        other,
        "Mail cancelled: unless: sms code-17 is delivered",
    )
    assert "unless" not in callback_after(MAIL, status="cancelled").payload
    assert "unless" not in callback_after(MAIL, status="sent", unless_fulfilled=other).payload
