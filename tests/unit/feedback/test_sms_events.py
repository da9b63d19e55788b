"""Events of AWS End User Messaging, in the form of its user guide."""

from typing import Any

import pytest
from botocore.session import Session

from mailroom.message.message import Key, Reference
from tests.support.unit.feedback_words import events, malformed_words, one_event, sms_event, sns
from tests.support.unit.post import Counted

AT, REQUESTED = 1686975103470, 1686975103170
LOST = (
    *("TEXT_INVALID", "TEXT_INVALID_MESSAGE", "TEXT_UNREACHABLE", "TEXT_CARRIER_UNREACHABLE", "TEXT_BLOCKED"),
    *("TEXT_CARRIER_BLOCKED", "TEXT_SPAM", "TEXT_UNKNOWN", "TEXT_TTL_EXPIRED", "TEXT_PROTECT_BLOCKED"),
    *("MEDIA_FILE_INACCESSIBLE", "MEDIA_FILE_TYPE_UNSUPPORTED", "MEDIA_FILE_SIZE_EXCEEDED", "MEDIA_INVALID"),
    *("RCS_FAILED", "RCS_TTL_EXPIRED", "RCS_PROTECT_BLOCKED"),
)


@pytest.mark.parametrize(
    ("kind", "final", "status"),
    [
        ("TEXT_QUEUED", False, "sent"),
        ("TEXT_PENDING", False, "sent"),
        ("TEXT_SENT", False, "sent"),
        ("MEDIA_QUEUED", False, "sent"),
        ("TEXT_SUCCESSFUL", False, "sent"),
        ("TEXT_SUCCESSFUL", True, "delivered"),
        ("MEDIA_SUCCESSFUL", True, "delivered"),
        ("TEXT_DELIVERED", True, "delivered"),
        ("TEXT_DELIVERED", False, "delivered"),
        ("MEDIA_DELIVERED", True, "delivered"),
        ("RCS_QUEUED", False, "sent"),
        ("RCS_SENT", False, "sent"),
        ("RCS_FALLEN_BACK_TO_SMS", False, "sent"),
        ("RCS_DELIVERED", False, "delivered"),
        *((kind, True, "undelivered") for kind in LOST),
    ],
)
def test_each_type_of_aws_sms_event_is_read_with_its_status(kind: str, final: bool, status: str) -> None:
    sent = one_event(sns(sms_event(kind, isFinal=final)))
    assert (sent.key, sent.attempt, sent.provider) == (Key("s-1", "sms"), 1, "aws")
    assert (sent.kind, sent.status, sent.at) == (kind, status, AT)
    assert sent.provider_id == "862a8790-60c0-4430-9b2b-658bdexample"
    assert sent.found_by_number
    assert (sent.recipients, sent.several, sent.suppress) == (("+14255550156",), False, None)
    facts: dict[str, dict[str, Any]] = {
        "sent": {},
        "delivered": {"deliveredAt": AT},
        "undelivered": {"undeliveredAt": AT, "error_code": kind},
    }
    assert sent.facts == {"sentAt": REQUESTED, **facts[status]}


def test_an_rcs_message_that_the_recipient_read_gets_the_status_delivered() -> None:
    sent = one_event(sms_event("RCS_READ"))
    assert (sent.status, sent.facts) == ("delivered", {"sentAt": REQUESTED, "readAt": AT})


def test_every_type_of_sms_event_in_the_api_model_of_aws_can_be_read() -> None:
    """An unknown type would be dropped, and its message's status would stay as before."""
    model: Any = Session().get_service_model("pinpoint-sms-voice-v2")
    shapes = model.shape_for("EventType").enum
    kinds = [kind for kind in shapes if not kind.startswith("VOICE_") and not kind.endswith("ALL")]
    assert {one_event(sms_event(kind)).kind for kind in kinds} == {*kinds}
    assert len(kinds) > 30


def test_the_detail_of_an_undelivered_text_masks_phone_numbers() -> None:
    description = "Blocked for +1 6175551234: see +16175551234"
    assert (
        one_event(sms_event("TEXT_BLOCKED", messageStatusDescription=description)).detail
        == "TEXT_BLOCKED: Blocked for +1 …34: see +…34"
    )
    words = "The recipient's device or carrier is blocking messages to that recipient."
    assert (
        one_event(sms_event("TEXT_BLOCKED", messageStatusDescription=None)).detail == f"TEXT_BLOCKED: {words}"
    )
    assert one_event(sms_event("TEXT_A_NEW_ONE", messageStatusDescription=None)).detail == "TEXT_A_NEW_ONE"
    assert one_event(sms_event("TEXT_DELIVERED")).detail == ""


def test_the_attempt_is_read_from_the_context_of_an_aws_sms_event() -> None:
    assert one_event(sms_event(context={"reference": Reference("s-1", 2).text, "other": 1})).attempt == 2


@pytest.mark.parametrize(
    "context",
    [
        *(..., None, {}, {"account": "bar"}),
        *({"reference": reference} for reference in ("order 66!", "", 7, None)),
    ],
)
def test_an_event_about_another_programs_sms_is_counted_and_dropped(context: Any, counted: Counted) -> None:
    assert events(sms_event(context=context)) == []
    assert counted() == {"EventsUncorrelated": 1}


def test_an_event_about_another_programs_sms_is_dropped_even_if_its_time_is_missing(counted: Counted) -> None:
    assert events(sms_event(context=None, eventTimestamp=...)) == []
    assert counted() == {"EventsUncorrelated": 1}


def test_an_sms_event_with_a_hidden_or_missing_number_is_read_without_recipients() -> None:
    assert one_event(sms_event(destinationPhoneNumber="VAJZNBLLDX")).recipients == ()
    assert one_event(sms_event(destinationPhoneNumber=...)).recipients == ()


def test_an_sms_event_may_lack_the_request_time_the_message_id_and_the_final_flag() -> None:
    sent = one_event(sms_event(messageRequestTimestamp=..., messageId=..., isFinal=...))
    assert (sent.facts, sent.provider_id) == ({"deliveredAt": AT}, None)


@pytest.mark.parametrize("kind", ["VOICE_COMPLETED", "REGISTRATION_STATUS_CHANGE"])
def test_an_event_about_a_call_or_a_registration_is_counted_and_dropped(kind: str, counted: Counted) -> None:
    assert events(sms_event(kind)) == []
    assert counted() == {"EventsUnknown": 1}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"eventTimestamp": ...}, "eventTimestamp"),
        ({"eventTimestamp": "now"}, "eventTimestamp"),
        ({"eventTimestamp": -1}, "eventTimestamp"),
        ({"messageRequestTimestamp": 10**15}, "messageRequestTimestamp"),
        ({"isFinal": "yes"}, "isFinal"),
    ],
)
def test_an_sms_event_with_an_invalid_field_is_malformed_and_the_error_names_the_field(
    changes: dict[str, Any], field: str
) -> None:
    assert field in malformed_words(sms_event(**changes))
