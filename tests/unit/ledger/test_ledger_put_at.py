"""When a message was put, and what lists show of it: written with what is written anyway."""

from collections.abc import Callable

import pytest

from mailroom.channels.push.contract import Push
from mailroom.channels.sms.contract import Sms
from mailroom.ledger.ledger import Ledger, NewClaim
from mailroom.message.message import Message
from tests.support.unit.shared import KEY, NOW, NOW_MS, Aws, FakeClock, claimed, item, mail

EARLIER = NOW - 60
FIRST: list[Callable[[Ledger], object]] = [
    lambda ledger: ledger.claim(mail(), put_at=EARLIER),
    lambda ledger: ledger.claim_new([NewClaim(mail(), None, None, "t", EARLIER)]),
    lambda ledger: ledger.schedule(mail(), NOW + 3600, put_at=EARLIER),
    lambda ledger: ledger.refuse(item(), "invalid", "no", "to", EARLIER),
]
UNNOTED: list[Callable[[Ledger], object]] = [
    lambda ledger: ledger.claim(mail()),
    lambda ledger: ledger.cancel(KEY),
    lambda ledger: ledger.leave_out(KEY, "ada@example.com", "news", "opted_out", "no"),
    lambda ledger: ledger.schedule(mail(), NOW + 3600, "outside_window", "waits", NOW + 3600),
]


@pytest.mark.parametrize("write", FIRST)
def test_the_write_that_makes_an_item_says_when_the_message_was_put(
    ledger: Ledger, aws: Aws, write: Callable[[Ledger], object]
) -> None:
    write(ledger)
    assert aws.item()["putAt"] == NOW_MS - 60_000


@pytest.mark.parametrize("write", UNNOTED)
def test_where_nobody_noted_it_a_message_was_put_when_it_was_first_written_of(
    ledger: Ledger, aws: Aws, write: Callable[[Ledger], object]
) -> None:
    write(ledger)
    assert aws.item()["putAt"] == NOW_MS


@pytest.mark.parametrize("write", FIRST[:1] + UNNOTED[:2])
def test_no_later_write_moves_it(
    ledger: Ledger, aws: Aws, clock: FakeClock, write: Callable[[Ledger], object]
) -> None:
    ledger.schedule(mail(), NOW + 3600, put_at=EARLIER)
    clock.advance(7200)
    write(ledger)
    assert aws.item()["putAt"] == NOW_MS - 60_000


@pytest.mark.parametrize(
    ("message", "known"),
    [
        (mail(), {"subject": "Hello"}),
        (mail(subject="é" * 300), {"subject": "é" * 200}),
        (mail(text=None, template="welcome"), {"template": "welcome"}),
        (mail(text=None), {"template": "default"}),
        (mail(text=None, payload_ref="s3://b/k"), {}),
        (Sms(id="m-1", event_type="sms", to="+16175551234", template="code"), {"template": "code"}),
        (Sms(id="m-1", event_type="sms", to="+16175551234", text="Hi"), {}),
        (Push(id="m-1", event_type="push", to="t" * 64, title="Hi"), {"subject": "Hi"}),
    ],
)
def test_a_claim_keeps_the_template_and_the_subject(
    ledger: Ledger, aws: Aws, message: Message, known: dict[str, str]
) -> None:
    ledger.claim(message)
    found = aws.item(event_type=message.event_type)
    assert {name: found[name] for name in ("template", "subject") if name in found} == known


def test_the_subject_of_a_rendered_mail_comes_with_the_record_that_it_was_sent(
    ledger: Ledger, aws: Aws
) -> None:
    claim = claimed(ledger, mail(text=None, template="welcome"))
    ledger.complete(claim, "ses", "0101", {"subject": "Welcome, Ada"})
    assert aws.item()["subject"] == "Welcome, Ada"


def test_a_subject_is_worth_no_write_of_its_own(
    ledger: Ledger, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claimed(ledger)
    ledger.complete(claim, "ses", "0101")
    before = aws.item()
    ledger.complete(claim, "ses", "0101", {"subject": "Welcome, Ada"})
    assert aws.item() == before
