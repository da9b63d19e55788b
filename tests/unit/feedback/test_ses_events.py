"""Each of SES's ten event types and three notices, as its developer guide shows them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from mailroom.message.message import Key
from tests.support.fuzz.work import assert_linear
from tests.support.unit.feedback_words import (
    MORE_NOTICES,
    NOTICES,
    PUBLISHED,
    SES_MESSAGE_ID,
    bounce,
    bounced,
    event,
    events,
    fault,
    ses,
    sns,
)


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


SENT_AT = {
    "send": ms("2016-10-14T05:02:16.645"),
    "delivery": ms("2016-10-19T23:20:52.240"),
    "bounce": ms("2017-08-05T00:40:02.012"),
    "complaint": ms("2017-08-05T00:40:01.123"),
    "reject": ms("2016-10-14T17:38:15.211"),
    "rendering_failure": ms("2018-01-22T18:43:06.197"),
    "delivery_delay": ms("2020-06-16T00:15:40.641"),
    "open": ms("2017-08-09T21:59:49.927"),
    "click": ms("2017-08-09T23:50:05.795"),
    "subscription": ms("2022-01-12T01:00:14.340"),
}
AT = {
    **SENT_AT,
    "delivery": ms("2016-10-19T23:21:04.133"),
    "bounce": ms("2017-08-05T00:41:02.669"),
    "complaint": ms("2017-08-05T00:41:02.669"),
    "delivery_delay": ms("2020-06-16T00:25:40.095"),
    "open": ms("2017-08-09T22:00:19.652"),
    "click": ms("2017-08-09T23:51:25.570"),
    "subscription": ms("2022-01-12T01:00:17.910"),
}
MEANING: dict[str, tuple[Any, ...]] = {
    "send": ("Send", "sent", {}, None, ""),
    "delivery": ("Delivery", "delivered", {"deliveredAt": AT["delivery"]}, None, ""),
    "bounce": (
        "Bounce",
        "bounced",
        {
            "bouncedAt": AT["bounce"],
            "bounce_type": "Permanent",
            "bounce_subtype": "General",
            "diagnostic_code": "smtp; 550 5.1.1 user unknown",
        },
        "bounce",
        "hard bounce (General): smtp; 550 5.1.1 user unknown",
    ),
    "complaint": (
        "Complaint",
        "complained",
        {"complainedAt": AT["complaint"], "complaint_type": "abuse"},
        "complaint",
        "complaint (abuse)",
    ),
    "reject": (
        "Reject",
        "undelivered",
        {"undeliveredAt": AT["reject"], "error_code": "Reject"},
        None,
        "rejected by SES: Bad content",
    ),
    "rendering_failure": (
        "Rendering Failure",
        "undelivered",
        {"undeliveredAt": AT["rendering_failure"], "error_code": "Rendering Failure"},
        None,
        "template not rendered by SES: Attribute 'attributeName' is not present in the rendering data.",
    ),
    "delivery_delay": (
        "DeliveryDelay",
        None,
        {"delayedAt": AT["delivery_delay"], "delay_type": "TransientCommunicationFailure"},
        None,
        "delayed (TransientCommunicationFailure)",
    ),
    "open": ("Open", None, {"openedAt": AT["open"]}, None, ""),
    "click": ("Click", None, {"clickedAt": AT["click"]}, None, ""),
    "subscription": ("Subscription", None, {}, None, ""),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_published_type_is_understood(name: str) -> None:
    found = event(sns(ses(name)))
    assert (found.key, found.attempt) == (Key("m-1", "mail"), 1)
    assert (found.provider, found.provider_id) == ("ses", SES_MESSAGE_ID)
    kind, status, facts, suppress, detail = MEANING[name]
    assert (found.kind, found.status, found.suppress, found.detail) == (kind, status, suppress, detail)
    assert found.facts == {"sentAt": SENT_AT[name], **facts}
    assert (found.at, found.recipients, found.several) == (AT[name], ("ada@example.com",), False)


@pytest.mark.parametrize(
    ("name", "status", "recipients"),
    [
        ("notice_of_delivery", "delivered", ("jane@example.com",)),
        ("notice_of_bounce", "bounced", ("jane@example.com",)),
        ("notice_of_complaint", "complained", ("richard@example.com",)),
        ("notice_of_bounce_without_dsn", "bounced", ("jane@example.com", "richard@example.com")),
        ("notice_of_complaint_without_report", "complained", ("richard@example.com",)),
    ],
)
def test_each_notice_of_an_identity_is_understood(
    name: str, status: str, recipients: tuple[str, ...]
) -> None:
    assert name in NOTICES + MORE_NOTICES
    found = event(sns(ses(name)))
    assert (found.key, found.status, found.recipients) == (Key("m-1", "mail"), status, recipients)
    assert found.several is (name != "notice_of_delivery")
    assert (found.facts["sentAt"], found.at) == (ms("2016-01-27T14:59:08.237"), ms("2016-01-27T14:59:38.237"))


def test_a_bounce_without_a_delivery_status_notification_has_no_code() -> None:
    found = event(ses("notice_of_bounce_without_dsn"))
    assert "diagnostic_code" not in found.facts
    assert (found.detail, found.suppress) == ("hard bounce (General)", "bounce")


def test_a_complaint_without_a_report_has_no_type() -> None:
    found = event(ses("notice_of_complaint_without_report"))
    assert (found.detail, found.suppress) == ("complaint (no type)", "complaint")
    assert "complaint_type" not in found.facts


def test_a_complaints_time_is_the_reports_own_and_not_the_mails_arrival() -> None:
    words = ses("complaint")
    assert words["complaint"]["arrivalDate"] != words["complaint"]["timestamp"]
    assert event(words).facts["complainedAt"] == ms("2017-08-05T00:41:02.669")


def test_a_report_of_not_spam_is_no_complaint_and_marks_nobody() -> None:
    words = ses("complaint")
    words["complaint"]["complaintFeedbackType"] = "not-spam"
    found = event(words)
    assert (found.status, found.suppress) == (None, None)
    assert found.facts == {"sentAt": SENT_AT["complaint"], "complaint_type": "not-spam"}


def test_a_complaint_by_the_accounts_own_list_keeps_its_subtype() -> None:
    words = ses("complaint")
    words["complaint"]["complaintSubType"] = "OnAccountSuppressionList"
    assert event(words).facts["complaint_subtype"] == "OnAccountSuppressionList"
    words["complaint"]["complaintSubType"] = None
    assert "complaint_subtype" not in event(words).facts


@pytest.mark.parametrize("subtype", ["General", "MailboxFull", "MessageTooLarge", "ContentRejected"])
def test_a_transient_bounce_is_undelivered_and_marks_nobody(subtype: str) -> None:
    found = event(bounce(bounced("ada@example.com"), bounceType="Transient", bounceSubType=subtype))
    assert (found.status, found.suppress, found.detail) == ("undelivered", None, f"soft bounce ({subtype})")
    assert found.facts["undeliveredAt"] == AT["bounce"]
    assert "bouncedAt" not in found.facts


def test_an_undetermined_bounce_is_a_bounce_and_marks_nobody() -> None:
    words = bounce(bounced("ada@example.com"), bounceType="Undetermined", bounceSubType="Undetermined")
    found = event(words)
    assert (found.status, found.suppress, found.detail) == ("bounced", None, "bounce (Undetermined)")


@pytest.mark.parametrize("subtype", ["NoEmail", "Suppressed", "OnAccountSuppressionList"])
def test_every_permanent_bounce_marks_its_recipient(subtype: str) -> None:
    found = event(bounce(bounced("ada@example.com"), bounceSubType=subtype))
    assert (found.status, found.suppress) == ("bounced", "bounce")
    assert found.facts["bounce_subtype"] == subtype


def test_words_of_a_server_are_one_bounded_line_without_whole_addresses() -> None:
    code = f"smtp; 550\r\n 5.1.1 <jane@example.com>... {'x' * 5000}"
    found = event(bounce(bounced("jane@example.com", code)))
    told = str(found.facts["diagnostic_code"])
    assert told.startswith("smtp; 550 5.1.1 <j***@example.com>... xxx")
    assert (len(told), len(found.detail)) == (300, 300)
    assert len(str(event(bounce(bounced("a@b.example"), bounceType="T" * 999)).facts["bounce_type"])) == 64


def test_a_time_in_another_zone_and_one_without_are_understood() -> None:
    words = ses("delivery")
    words["delivery"]["timestamp"] = "2016-10-20T01:21:04.133+02:00"
    words["mail"]["timestamp"] = "2016-10-19T23:20:52"
    found = event(words)
    assert (found.at, found.facts["sentAt"]) == (AT["delivery"], ms("2016-10-19T23:20:52"))


def test_no_millisecond_is_lost() -> None:
    words = ses("delivery")
    words["delivery"]["timestamp"] = "2038-09-14T21:19:24.924Z"  # a hair short of it as a float
    assert event(words).at % 1000 == 924


def test_where_an_event_has_no_time_of_its_own_the_mails_counts() -> None:
    words = ses("delivery")
    del words["delivery"]["timestamp"]
    assert event(words).at == SENT_AT["delivery"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("mail",), []),
        (("mail", "timestamp"), None),
        (("mail", "timestamp"), "yesterday"),
        (("mail", "timestamp"), "0001-01-01T00:00:00+99:99"),
        (("mail", "headers"), "none"),
        (("mail", "tags"), {"correlation": "bS0x"}),
        (("mail", "destination"), [1]),
        (("bounce",), None),
        (("bounce", "timestamp"), "soon"),
        (("bounce", "bouncedRecipients"), [{"emailAddress": 1}]),
    ],
)
def test_an_event_that_is_wrong_is_malformed_and_named(path: tuple[str, ...], value: Any) -> None:
    words = ses("bounce")
    target = words
    for each in path[:-1]:
        target = target[each]
    target[path[-1]] = value
    assert path[0] in fault(words) or "timestamp" in fault(words)


@pytest.mark.parametrize("name", ["delivery", "bounce", "complaint"])
def test_what_says_nothing_without_its_object_is_malformed_without_it(name: str) -> None:
    words = ses(name)
    del words[name]
    assert f"`{name}`" in fault(words)


def test_a_send_needs_no_object_of_its_own() -> None:
    words = ses("send")
    del words["send"]
    assert event(words).status == "sent"


@pytest.mark.parametrize("id_", ["", "x" * 201, "line\nbreak", None])
def test_a_message_id_that_cannot_be_one_is_left_out(id_: str | None) -> None:
    words = ses("send")
    words["mail"]["messageId"] = id_
    assert event(words).provider_id is None


def test_a_time_that_no_clock_has_is_malformed() -> None:
    """Kept in the suppression list, it would be a fault of ours for each later mail to the recipient."""
    words = ses("bounce")
    words["bounce"]["timestamp"] = "0001-01-01T00:00:00+23:59"
    assert fault(words) == "`timestamp` is no time in epoch milliseconds"


def test_an_event_of_very_many_recipients_is_read_in_proportion_to_their_number() -> None:
    def work(size: int) -> Callable[[], object]:
        there = [f"n{at}@example.com" for at in range(size // 32)]
        body = json.dumps(bounce(*map(bounced, there)))
        return lambda: events(body)

    assert_linear(work, 64_000)
