"""Twilio's status callbacks, as they lie in the feedback queue."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.message.message import Key
from tests.support.unit.feedback_words import NUMBER, SID, event, events, fault, twilio
from tests.support.unit.post import Log
from tests.support.unit.shared import NOW_MS


@pytest.mark.parametrize(
    ("said", "status", "fact"),
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
def test_each_status_of_twilio_has_one_here(said: str, status: str, fact: str | None) -> None:
    found = event(twilio(said))
    assert (found.key, found.attempt, found.provider) == (Key("s-1", "sms"), 1, "twilio")
    assert (found.provider_id, found.kind, found.status) == (SID, said, status)
    assert found.facts == ({} if fact is None else {fact: NOW_MS})
    assert (found.recipients, found.several, found.at) == ((NUMBER,), False, NOW_MS)
    assert found.found_by_number
    assert (found.detail, found.suppress) == (said if status == "undelivered" else "", None)


def test_the_attempt_comes_with_the_reference() -> None:
    assert event(twilio(attempt=3)).attempt == 3


@pytest.mark.parametrize(
    ("code", "suppress", "detail"),
    [
        ("30006", "bounce", "undelivered: error 30006, a landline or a carrier that cannot be reached"),
        ("21610", "stop", "undelivered: error 21610"),
        ("30005", None, "undelivered: error 30005"),
        ("30008", None, "undelivered: error 30008"),
    ],
)
def test_an_error_code_is_kept_and_a_line_without_sms_is_marked(
    code: str, suppress: str | None, detail: str
) -> None:
    found = event(twilio("undelivered", ErrorCode=code))
    assert (found.facts["error_code"], found.suppress, found.detail) == (code, suppress, detail)


@pytest.mark.parametrize("sender", ["12345", "ACME"])
def test_a_carrier_that_a_short_code_or_a_name_cannot_reach_marks_no_number(sender: str) -> None:
    found = event(twilio("undelivered", ErrorCode="30006", From=sender))
    assert (found.status, found.suppress) == ("undelivered", None)


def test_an_error_code_means_nothing_with_a_delivery() -> None:
    found = event(twilio("delivered", ErrorCode="30006"))
    assert (found.facts, found.suppress) == ({"deliveredAt": NOW_MS}, None)


def test_the_carriers_own_date_is_kept_and_is_no_time_of_ours() -> None:
    found = event(twilio(RawDlrDoneDate="2611210458"))
    assert found.facts == {"deliveredAt": NOW_MS, "carrier_done_date": "2611210458"}


@pytest.mark.parametrize("date", ["26112104580", "26-11-21", "", "٢٦١١٢١٠٤٥٨"])
def test_a_carriers_date_in_another_form_is_left_out(date: str) -> None:
    assert event(twilio(RawDlrDoneDate=date)).facts == {"deliveredAt": NOW_MS}


@pytest.mark.parametrize("to", [..., "", "MAILROOM", "+1"])
def test_a_recipient_that_is_no_number_is_left_out(to: Any) -> None:
    assert event(twilio(To=to)).recipients == ()


def test_a_number_without_its_country_belongs_to_the_stages_region() -> None:
    assert event(twilio(To="(617) 555-1234"), "US").recipients == (NUMBER,)
    assert event(twilio(To="(617) 555-1234")).recipients == ()


def test_a_status_that_is_not_known_is_logged_and_counted(
    log: Log, counted: Callable[[], dict[str, float]]
) -> None:
    assert events(twilio("teleported")) == []
    (line,) = log()
    assert (line["level"], line["kind"], counted()) == ("WARNING", "teleported", {"EventsUnknown": 1})


@pytest.mark.parametrize(
    ("changes", "named"),
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
def test_a_callback_that_is_wrong_is_malformed_and_named(changes: dict[str, Any], named: str) -> None:
    assert named in fault({**twilio(), **changes})


def test_nothing_of_a_callback_is_logged(log: Log) -> None:
    events(twilio(To="MAILROOM", MessageSid="line\nbreak"))
    assert not [each for each in (NUMBER, "MAILROOM", "line\\nbreak") if each in json.dumps(log())]
