"""The recipients of an event of SES: recipients of the mail, each with an outcome."""

import json

import pytest

from tests.support.unit.feedback_words import THREE, bounce, bounced, events, one_event, ses_example
from tests.support.unit.post import Log

SENT_AT = 1501893602012
"""2017-08-05T00:40:02.012Z"""


def test_a_bounce_of_several_recipients_becomes_one_event_per_bounce_reason() -> None:
    notification = bounce(
        bounced("jane@example.com", "smtp; 550 5.1.1 user unknown"),
        bounced("mary@example.com", "smtp; 552 mailbox full"),
        bounced("Richard@Example.com", "smtp; 550 5.1.1 user unknown"),
        destination=THREE,
    )
    unknown, full = events(notification)
    assert unknown.recipients == ("jane@example.com", "richard@example.com")
    assert unknown.facts["diagnostic_code"] == "smtp; 550 5.1.1 user unknown"
    assert (full.recipients, full.detail) == (
        ("mary@example.com",),
        "hard bounce (General): smtp; 552 mailbox full",
    )
    assert {report.several for report in (unknown, full)} == {True}


def test_the_recipients_of_an_event_are_addresses_in_lower_case_and_ascii() -> None:
    notification = bounce(bounced("Ada Lovelace <Ada@BÜCHER.example>"))
    assert one_event(notification).recipients == ("ada@xn--bcher-kva.example",)


def test_a_bounce_event_omits_addresses_that_the_mail_was_not_sent_to(log: Log) -> None:
    notification = bounce(bounced("jane@example.com"), bounced("eve@elsewhere.example"), destination=THREE)
    assert one_event(notification).recipients == ("jane@example.com",)
    (line,) = log()
    assert (line["recipients"], "elsewhere" in json.dumps(line)) == (1, False)


def test_a_bounce_that_names_only_foreign_addresses_marks_the_mail_as_sent_and_not_as_bounced() -> None:
    notification = bounce(bounced("eve@elsewhere.example"), destination=THREE)
    report = one_event(notification)
    assert (report.status, report.recipients, report.several, report.suppress) == ("sent", (), True, None)
    assert report.facts == {"sentAt": SENT_AT}


def test_a_bounce_of_a_forwarded_mail_is_attributed_to_the_mails_only_recipient() -> None:
    notification = bounce(bounced("eve@elsewhere.example", "smtp; 550"), destination=["ada@example.com"])
    report = one_event(notification)
    assert (report.status, report.recipients, report.suppress) == ("bounced", ("ada@example.com",), "bounce")


@pytest.mark.parametrize("address", ["no address", "a@b@c", '"odd local"@example.com', ""])
def test_an_event_omits_recipients_whose_address_cannot_be_parsed(address: str) -> None:
    report = one_event(bounce(bounced(address), bounced("jane@example.com"), destination=[address, *THREE]))
    assert report.recipients == ("jane@example.com",)


def test_a_bounce_is_recorded_even_if_the_only_address_cannot_be_parsed() -> None:
    report = one_event(bounce(bounced("no address")))
    assert (report.status, report.recipients, report.several) == ("bounced", (), False)


def test_a_bounce_event_has_the_bounced_recipients_if_ses_omits_the_recipients_of_the_mail() -> None:
    notification = bounce(bounced("jane@example.com"), bounced("mary@example.com"))
    del notification["mail"]["destination"]
    report = one_event(notification)
    assert (report.recipients, report.several) == (("jane@example.com", "mary@example.com"), True)


def test_two_spellings_of_an_address_become_one_recipient_of_an_event() -> None:
    notification = ses_example("delivery")
    notification["mail"]["destination"] = ["ada@example.com", "Ada@Example.com"]
    assert one_event(notification).several is False


@pytest.mark.parametrize(
    ("name", "status"), [("send", "sent"), ("reject", "undelivered"), ("open", None), ("subscription", None)]
)
def test_an_event_without_addresses_applies_to_all_recipients(name: str, status: str | None) -> None:
    notification = ses_example(name)
    notification["mail"]["destination"] = THREE
    report = one_event(notification)
    assert (report.recipients, report.several, report.status) == ((), True, status)


def test_a_bounce_without_addresses_marks_a_mail_as_bounced_only_if_it_has_one_recipient() -> None:
    report = one_event(bounce(destination=["ada@example.com"]))
    assert (report.status, report.recipients) == ("bounced", ("ada@example.com",))
    report = one_event(bounce(destination=THREE))
    assert (report.status, report.recipients, report.suppress) == ("sent", (), None)


def test_a_delivery_event_contains_only_the_recipients_that_the_mail_reached() -> None:
    notification = ses_example("delivery")
    notification["mail"]["destination"] = THREE
    notification["delivery"]["recipients"] = THREE[:2]
    report = one_event(notification)
    assert (report.status, report.recipients) == ("delivered", tuple(THREE[:2]))
