"""The ten event types and three notices of SES, in the form of its developer guide."""

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
    events,
    malformed_words,
    one_event,
    ses_example,
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
        "reported as spam by the recipient",
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
def test_each_event_type_that_ses_publishes_is_read(name: str) -> None:
    sent = one_event(sns(ses_example(name)))
    assert (sent.key, sent.attempt) == (Key("m-1", "mail"), 1)
    assert (sent.provider, sent.provider_id) == ("ses", SES_MESSAGE_ID)
    kind, status, facts, suppress, detail = MEANING[name]
    assert (sent.kind, sent.status, sent.suppress, sent.detail) == (kind, status, suppress, detail)
    assert sent.facts == {"sentAt": SENT_AT[name], **facts}
    assert (sent.at, sent.recipients, sent.several) == (AT[name], ("ada@example.com",), False)


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
def test_each_feedback_notification_of_an_ses_identity_is_read(
    name: str, status: str, recipients: tuple[str, ...]
) -> None:
    assert name in NOTICES + MORE_NOTICES
    sent = one_event(sns(ses_example(name)))
    assert (sent.key, sent.status, sent.recipients) == (Key("m-1", "mail"), status, recipients)
    assert sent.several is (name != "notice_of_delivery")
    assert (sent.facts["sentAt"], sent.at) == (ms("2016-01-27T14:59:08.237"), ms("2016-01-27T14:59:38.237"))


def test_a_bounce_without_a_delivery_status_notification_is_read_without_an_error_code() -> None:
    sent = one_event(ses_example("notice_of_bounce_without_dsn"))
    assert "diagnostic_code" not in sent.facts
    assert (sent.detail, sent.suppress) == ("hard bounce (General)", "bounce")


def test_a_complaint_without_a_feedback_report_is_read_without_a_complaint_type() -> None:
    sent = one_event(ses_example("notice_of_complaint_without_report"))
    assert (sent.detail, sent.suppress) == ("complaint (no type)", "complaint")
    assert "complaint_type" not in sent.facts


def test_a_not_spam_report_neither_changes_the_status_nor_suppresses_the_recipient() -> None:
    complaint = ses_example("complaint")
    complaint["complaint"]["complaintFeedbackType"] = "not-spam"
    sent = one_event(complaint)
    assert (sent.status, sent.suppress) == (None, None)
    assert sent.facts == {"sentAt": SENT_AT["complaint"], "complaint_type": "not-spam"}


def test_the_subtype_of_a_complaint_is_recorded_if_ses_reports_one() -> None:
    complaint = ses_example("complaint")
    complaint["complaint"]["complaintSubType"] = "OnAccountSuppressionList"
    assert one_event(complaint).facts["complaint_subtype"] == "OnAccountSuppressionList"
    complaint["complaint"]["complaintSubType"] = None
    assert "complaint_subtype" not in one_event(complaint).facts


@pytest.mark.parametrize("subtype", ["General", "MailboxFull", "MessageTooLarge", "ContentRejected"])
def test_a_transient_bounce_makes_the_mail_undelivered_and_does_not_suppress_its_recipient(
    subtype: str,
) -> None:
    sent = one_event(bounce(bounced("ada@example.com"), bounceType="Transient", bounceSubType=subtype))
    assert (sent.status, sent.suppress, sent.detail) == ("undelivered", None, f"soft bounce ({subtype})")
    assert sent.facts["undeliveredAt"] == AT["bounce"]
    assert "bouncedAt" not in sent.facts


def test_a_mail_with_an_undetermined_bounce_is_bounced_and_its_recipient_is_not_suppressed() -> None:
    sent = one_event(
        bounce(bounced("ada@example.com"), bounceType="Undetermined", bounceSubType="Undetermined")
    )
    assert (sent.status, sent.suppress, sent.detail) == ("bounced", None, "bounce (Undetermined)")


@pytest.mark.parametrize("subtype", ["NoEmail", "Suppressed", "OnAccountSuppressionList"])
def test_every_permanent_bounce_suppresses_its_recipient(subtype: str) -> None:
    sent = one_event(bounce(bounced("ada@example.com"), bounceSubType=subtype))
    assert (sent.status, sent.suppress) == ("bounced", "bounce")
    assert sent.facts["bounce_subtype"] == subtype


def test_the_mail_servers_text_in_a_bounce_is_shortened_to_one_line_with_masked_addresses() -> None:
    code = f"smtp; 550\r\n 5.1.1 <jane@example.com>... {'x' * 5000}"
    sent = one_event(bounce(bounced("jane@example.com", code)))
    line = str(sent.facts["diagnostic_code"])
    assert line.startswith("smtp; 550 5.1.1 <j***@example.com>... xxx")
    assert (len(line), len(sent.detail)) == (300, 300)
    assert (
        len(str(one_event(bounce(bounced("a@b.example"), bounceType="T" * 999)).facts["bounce_type"])) == 64
    )


def test_the_time_of_an_ses_event_may_have_any_time_zone_or_lack_one() -> None:
    delivery = ses_example("delivery")
    delivery["delivery"]["timestamp"] = "2016-10-20T01:21:04.133+02:00"
    delivery["mail"]["timestamp"] = "2016-10-19T23:20:52"
    sent = one_event(delivery)
    assert (sent.at, sent.facts["sentAt"]) == (AT["delivery"], ms("2016-10-19T23:20:52"))


def test_the_time_of_an_ses_event_keeps_its_milliseconds() -> None:
    delivery = ses_example("delivery")
    # The float of this number is a little less.
    delivery["delivery"]["timestamp"] = "2038-09-14T21:19:24.924Z"
    assert one_event(delivery).at % 1000 == 924


def test_an_event_without_a_time_gets_the_time_of_its_mail() -> None:
    delivery = ses_example("delivery")
    del delivery["delivery"]["timestamp"]
    assert one_event(delivery).at == SENT_AT["delivery"]


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
def test_an_ses_event_with_an_invalid_field_is_malformed_and_the_error_names_the_field(
    path: tuple[str, ...], value: Any
) -> None:
    content = ses_example("bounce")
    parent = content if len(path) == 1 else content[path[0]]
    parent[path[-1]] = value
    assert path[0] in malformed_words(content) or "timestamp" in malformed_words(content)


@pytest.mark.parametrize("name", ["delivery", "bounce", "complaint"])
def test_an_ses_event_that_lacks_the_object_of_its_event_type_is_malformed(name: str) -> None:
    content = ses_example(name)
    del content[name]
    assert f"`{name}`" in malformed_words(content)


def test_a_send_event_is_read_even_without_the_object_send() -> None:
    send = ses_example("send")
    del send["send"]
    assert one_event(send).status == "sent"


@pytest.mark.parametrize("id_", ["", "x" * 201, "line\nbreak", None])
def test_an_event_with_an_invalid_ses_message_id_is_read_without_the_id(id_: str | None) -> None:
    send = ses_example("send")
    send["mail"]["messageId"] = id_
    assert one_event(send).provider_id is None


def test_an_ses_event_whose_time_exceeds_the_range_of_epoch_milliseconds_is_malformed() -> None:
    """In the suppression list, such a time would make every later mail to the recipient fail."""
    content = ses_example("bounce")
    content["bounce"]["timestamp"] = "0001-01-01T00:00:00+23:59"
    assert malformed_words(content) == "`timestamp` is not a time in epoch milliseconds"


def test_an_ses_event_with_many_recipients_is_read_in_linear_time() -> None:
    def work(size: int) -> Callable[[], object]:
        recipients = [f"n{number}@example.com" for number in range(size // 32)]
        body = json.dumps(bounce(*map(bounced, recipients)))
        return lambda: events(body)

    assert_linear(work, 64_000)
