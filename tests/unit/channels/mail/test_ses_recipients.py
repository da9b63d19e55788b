"""Whom an event of SES is about: the mail's own recipients, each with an outcome of its own."""

import json

import pytest

from tests.support.unit.feedback_words import THREE, bounce, bounced, event, events, ses
from tests.support.unit.post import Log

SENT_AT = 1501893602012
"""2017-08-05T00:40:02.012Z"""


def test_a_bounce_of_several_is_told_once_for_each_reason() -> None:
    words = bounce(
        bounced("jane@example.com", "smtp; 550 5.1.1 user unknown"),
        bounced("mary@example.com", "smtp; 552 mailbox full"),
        bounced("Richard@Example.com", "smtp; 550 5.1.1 user unknown"),
        destination=THREE,
    )
    unknown, full = events(words)
    assert unknown.recipients == ("jane@example.com", "richard@example.com")
    assert unknown.facts["diagnostic_code"] == "smtp; 550 5.1.1 user unknown"
    assert (full.recipients, full.detail) == (
        ("mary@example.com",),
        "hard bounce (General): smtp; 552 mailbox full",
    )
    assert {each.several for each in (unknown, full)} == {True}


def test_recipients_come_bare_in_lower_case_and_in_ascii() -> None:
    words = bounce(bounced("Ada Lovelace <Ada@BÜCHER.example>"))
    assert event(words).recipients == ("ada@xn--bcher-kva.example",)


def test_whom_a_mail_was_not_sent_to_is_not_believed_to_have_bounced(log: Log) -> None:
    words = bounce(bounced("jane@example.com"), bounced("eve@elsewhere.example"), destination=THREE)
    assert event(words).recipients == ("jane@example.com",)
    (line,) = log()
    assert (line["recipients"], "elsewhere" in json.dumps(line)) == (1, False)


def test_a_bounce_of_nobody_who_is_known_proves_only_that_several_were_sent_to() -> None:
    words = bounce(bounced("eve@elsewhere.example"), destination=THREE)
    found = event(words)
    assert (found.status, found.recipients, found.several, found.suppress) == ("sent", (), True, None)
    assert found.facts == {"sentAt": SENT_AT}


def test_a_bounce_after_a_forwarding_is_about_the_one_mailbox_that_was_sent_to() -> None:
    words = bounce(bounced("eve@elsewhere.example", "smtp; 550"), destination=["ada@example.com"])
    found = event(words)
    assert (found.status, found.recipients, found.suppress) == ("bounced", ("ada@example.com",), "bounce")


@pytest.mark.parametrize("address", ["no address", "a@b@c", '"odd local"@example.com', ""])
def test_an_address_that_cannot_be_read_is_left_out(address: str) -> None:
    found = event(bounce(bounced(address), bounced("jane@example.com"), destination=[address, *THREE]))
    assert found.recipients == ("jane@example.com",)


def test_a_mail_whose_only_recipient_cannot_be_read_is_still_told_of() -> None:
    found = event(bounce(bounced("no address")))
    assert (found.status, found.recipients, found.several) == ("bounced", (), False)


def test_a_mail_whose_recipients_are_not_told_takes_the_event_at_its_word() -> None:
    words = bounce(bounced("jane@example.com"), bounced("mary@example.com"))
    del words["mail"]["destination"]
    found = event(words)
    assert (found.recipients, found.several) == (("jane@example.com", "mary@example.com"), True)


def test_the_same_mailbox_twice_is_one_recipient() -> None:
    words = ses("delivery")
    words["mail"]["destination"] = ["ada@example.com", "Ada@Example.com"]
    assert event(words).several is False


@pytest.mark.parametrize(
    ("name", "status"), [("send", "sent"), ("reject", "undelivered"), ("open", None), ("subscription", None)]
)
def test_what_names_nobody_is_about_all_of_several(name: str, status: str | None) -> None:
    words = ses(name)
    words["mail"]["destination"] = THREE
    found = event(words)
    assert (found.recipients, found.several, found.status) == ((), True, status)


def test_a_bounce_that_names_nobody_is_about_the_only_recipient_and_about_none_of_several() -> None:
    found = event(bounce(destination=["ada@example.com"]))
    assert (found.status, found.recipients) == ("bounced", ("ada@example.com",))
    found = event(bounce(destination=THREE))
    assert (found.status, found.recipients, found.suppress) == ("sent", (), None)


def test_a_delivery_to_some_of_several_names_them() -> None:
    words = ses("delivery")
    words["mail"]["destination"] = THREE
    words["delivery"]["recipients"] = THREE[:2]
    found = event(words)
    assert (found.status, found.recipients) == ("delivered", tuple(THREE[:2]))
