"""Twilio's status callbacks in the feedback queue."""

import json
from typing import Any

import pytest

from mailroom.message.message import Key
from tests.support.unit.feedback_words import NUMBER, SID, events, malformed_words, one_event, twilio_event
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import NOW_MS


@pytest.mark.parametrize(
    ("reported", "status", "fact"),
    [
        ("accepted", "sent", None),
        ("scheduled", "sent", None),
        ("queued", "sent", None),
        ("sending", "sent", None),
        ("partially_delivered", "sent", None),
        ("sent", "sent", "sentAt"),
        ("delivered", "delivered", "deliveredAt"),
        ("read", "delivered", "readAt"),
        ("undelivered", "undelivered", "undeliveredAt"),
        ("failed", "undelivered", "undeliveredAt"),
        ("canceled", "undelivered", "undeliveredAt"),
    ],
)
def test_each_twilio_status_is_read_as_a_ledger_status(reported: str, status: str, fact: str | None) -> None:
    sent = one_event(twilio_event(reported))
    assert (sent.key, sent.attempt, sent.provider) == (Key("s-1", "sms"), 1, "twilio")
    assert (sent.provider_id, sent.kind, sent.status) == (SID, reported, status)
    assert sent.facts == ({} if fact is None else {fact: NOW_MS})
    assert (sent.recipients, sent.several, sent.at) == ((NUMBER,), False, NOW_MS)
    assert sent.found_by_number
    assert (sent.detail, sent.suppress) == (reported if status == "undelivered" else "", None)


def test_the_attempt_is_read_from_the_reference_in_a_callback() -> None:
    assert one_event(twilio_event(attempt=3)).attempt == 3


@pytest.mark.parametrize(
    ("code", "suppress", "detail"),
    [
        ("30006", "bounce", "undelivered: error 30006, Landline or unreachable carrier"),
        ("21610", "stop", "undelivered: error 21610, Attempt to send to unsubscribed recipient"),
        ("30005", None, "undelivered: error 30005, Unknown destination handset"),
        ("30008", None, "undelivered: error 30008, Unknown error"),
        ("99999", None, "undelivered: error 99999"),
    ],
)
def test_an_error_code_is_recorded_and_suppresses_landlines_and_opted_out_numbers(
    code: str, suppress: str | None, detail: str
) -> None:
    sent = one_event(twilio_event("undelivered", ErrorCode=code))
    assert (sent.facts["error_code"], sent.suppress, sent.detail) == (code, suppress, detail)


@pytest.mark.parametrize("sender", ["12345", "ACME"])
def test_an_unreachable_carrier_does_not_suppress_the_number_of_a_text_from_a_short_code_or_a_name(
    sender: str,
) -> None:
    sent = one_event(twilio_event("undelivered", ErrorCode="30006", From=sender))
    assert (sent.status, sent.suppress) == ("undelivered", None)


def test_the_error_code_of_a_delivered_text_is_ignored() -> None:
    sent = one_event(twilio_event("delivered", ErrorCode="30006"))
    assert (sent.facts, sent.suppress) == ({"deliveredAt": NOW_MS}, None)


def test_the_carriers_date_and_the_time_of_the_callback_are_both_recorded() -> None:
    sent = one_event(twilio_event(RawDlrDoneDate="2611210458"))
    assert sent.facts == {"deliveredAt": NOW_MS, "carrier_done_date": "2611210458"}


@pytest.mark.parametrize("date", ["26112104580", "26-11-21", "", "٢٦١١٢١٠٤٥٨"])
def test_a_carriers_date_in_an_unknown_format_is_not_recorded(date: str) -> None:
    assert one_event(twilio_event(RawDlrDoneDate=date)).facts == {"deliveredAt": NOW_MS}


@pytest.mark.parametrize("to", [..., "", "MAILROOM", "+1"])
def test_a_callback_whose_recipient_is_not_a_number_is_read_without_recipients(to: Any) -> None:
    assert one_event(twilio_event(To=to)).recipients == ()


def test_a_number_without_a_country_code_is_read_as_a_number_of_the_stages_phone_region() -> None:
    assert one_event(twilio_event(To="(617) 555-1234"), "US").recipients == (NUMBER,)
    assert one_event(twilio_event(To="(617) 555-1234")).recipients == ()


def test_a_callback_with_an_unknown_status_is_logged_and_counted(log: Log, counted: Counted) -> None:
    assert events(twilio_event("teleported")) == []
    (line,) = log()
    assert (line["level"], line["kind"], counted()) == ("WARNING", "teleported", {"EventsUnknown": 1})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"reference": "!"}, "reference"),
        ({"reference": None}, "reference"),
        ({"received_at": "now"}, "received_at"),
        ({"received_at": -1}, "received_at"),
        ({"received_at": 10**15}, "received_at"),
        ({"fields": {"MessageStatus": 1}}, "fields"),
        ({"fields": {"MessageSid": SID}}, "MessageStatus"),
        ({"fields": None}, "fields"),
    ],
)
def test_a_callback_with_an_invalid_field_is_malformed_and_the_error_names_the_field(
    changes: dict[str, Any], field: str
) -> None:
    assert field in malformed_words({**twilio_event(), **changes})


def test_the_content_of_a_twilio_callback_is_not_logged(log: Log) -> None:
    events(twilio_event(To="MAILROOM", MessageSid="line\nbreak"))
    assert not [text for text in (NUMBER, "MAILROOM", "line\\nbreak") if text in json.dumps(log())]
