"""Attributes that a message's first write adds: the time of its put, its template and its subject."""

from collections.abc import Callable

import pytest

from mailroom.channels.push.contract import Push
from mailroom.channels.sms.contract import Sms
from mailroom.ledger.ledger import Ledger, NewClaim
from mailroom.message.message import CampaignStart, Message
from tests.support.unit.shared import KEY, NOW, NOW_MS, Aws, FakeClock, claimed, item, mail
from tests.support.unit.waiting import hold

EARLIER = NOW - 60
START = CampaignStart("weekly", "r", 1)
FIRST: list[Callable[[Ledger], object]] = [
    lambda ledger: ledger.claim(mail(), put_at=EARLIER),
    lambda ledger: ledger.claim_new([NewClaim(mail(), None, None, "t", EARLIER)]),
    lambda ledger: hold(ledger, put_at=EARLIER),
    lambda ledger: ledger.refuse(item(), "invalid", "no", "to", EARLIER),
]
UNNOTED: list[Callable[[Ledger], object]] = [
    lambda ledger: ledger.claim(mail()),
    lambda ledger: ledger.cancel(KEY),
    lambda ledger: ledger.leave_out(KEY, "ada@example.com", "news", "opted_out", "no", START),
    lambda ledger: hold(ledger, put_at=NOW + 3600),
]


@pytest.mark.parametrize("write", FIRST)
def test_the_first_ledger_write_of_a_message_stores_when_it_was_put_into_the_mailbox(
    ledger: Ledger, aws: Aws, write: Callable[[Ledger], object]
) -> None:
    write(ledger)
    assert aws.item()["putAt"] == NOW_MS - 60_000


@pytest.mark.parametrize("write", UNNOTED)
def test_an_unknown_time_of_the_mailbox_put_is_replaced_by_the_time_of_the_first_ledger_write(
    ledger: Ledger, aws: Aws, write: Callable[[Ledger], object]
) -> None:
    write(ledger)
    assert aws.item()["putAt"] == NOW_MS


@pytest.mark.parametrize("write", FIRST[:1] + UNNOTED[:2])
def test_later_ledger_writes_keep_the_time_of_the_mailbox_put(
    ledger: Ledger, aws: Aws, clock: FakeClock, write: Callable[[Ledger], object]
) -> None:
    hold(ledger, put_at=EARLIER)
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
def test_a_claim_stores_the_template_or_the_start_of_the_subject(
    ledger: Ledger, aws: Aws, message: Message, known: dict[str, str]
) -> None:
    ledger.claim(message)
    stored = aws.item(event_type=message.event_type)
    assert {name: stored[name] for name in ("template", "subject") if name in stored} == known


def test_a_second_completion_of_a_message_with_its_subject_leaves_the_ledger_item_unchanged(
    ledger: Ledger, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claimed(ledger)
    ledger.complete(claim, "ses", "0101")
    before = aws.item()
    ledger.complete(claim, "ses", "0101", {"subject": "Welcome, Ada"})
    assert aws.item() == before
