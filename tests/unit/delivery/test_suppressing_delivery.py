"""Senders and the suppression list: a recipient on the list gets no message."""

from typing import Any

import pytest

from mailroom.ledger.ledger import Ledger
from mailroom.message.outcome import Rejected, Sent
from mailroom.recipients.choices import Suppression, Suppressions
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Counted, Log, Make
from tests.support.unit.shared import NOW_MS, SUPPRESSIONS, Aws, FakeClock, crash, item

ADA, EVE, BOB = "ada@example.com", "eve@example.com", "bob@example.com"
SENTENCE = "on the suppression list since 2026-11-21: it bounced (no such user); an operator can remove it"


def _bounced(recipient: str, channel: str = "mail") -> Suppression:
    return Suppression(recipient, channel, "bounce", NOW_MS, "no such user", "m-0")


def test_a_mail_to_a_recipient_on_the_suppression_list_is_suppressed_with_the_reason(
    make_post: Make, list_: Suppressions, aws: Aws, log: Log, counted: Counted
) -> None:
    list_.mark(_bounced(ADA))
    worker = make_post(suppressions=list_)
    assert worker.handle(item(to="Ada <ADA@example.com>")) == {}
    assert worker.submitted == []
    stored = aws.item()
    assert (stored["status"], stored["error"]) == ("suppressed", {"code": "suppressed", "message": SENTENCE})
    assert "completedAt" in stored
    assert "failed_as" not in stored  # the message did not fail
    assert counted() == {"Suppressed": 1}
    assert "example.com" not in str(log())


def test_suppressed_recipients_are_left_out_of_a_mail_to_several_recipients(
    make_post: Make, list_: Suppressions, aws: Aws, counted: Counted
) -> None:
    list_.mark(_bounced(ADA))
    list_.mark(_bounced(BOB))
    worker = make_post(suppressions=list_)
    worker.handle(item(to=[ADA, EVE], cc="Carl <carl@example.com>", bcc=BOB))
    (mail,) = worker.adapter.submitted
    assert (mail.to, mail.cc, mail.bcc) == ([EVE], ["Carl <carl@example.com>"], [])
    stored = aws.item()
    assert stored["status"] == "sent"
    assert {recipient: entry.get("status") for recipient, entry in stored["recipients"].items()} == {
        ADA: "suppressed",
        BOB: "suppressed",
        EVE: None,
        "carl@example.com": None,
    }
    assert stored["recipients"][ADA]["error"] == SENTENCE
    assert counted() == {"Sent": 1, "SuppressedInPart": 1}


def test_a_mail_whose_recipients_are_all_on_the_suppression_list_is_suppressed(
    make_post: Make, list_: Suppressions, aws: Aws
) -> None:
    for recipient in (ADA, EVE, BOB):
        list_.mark(_bounced(recipient))
    worker = make_post(suppressions=list_)
    worker.handle(item(to=[ADA, EVE], bcc=BOB))
    assert worker.submitted == []
    assert aws.item()["status"] == "suppressed"


def test_a_change_of_the_suppression_list_applies_from_the_next_batch_on(
    make_post: Make, list_: Suppressions
) -> None:
    worker = make_post(suppressions=list_)
    worker.handle(item(id="m-1", to=ADA))
    list_.mark(_bounced(ADA))
    worker.handle(item(id="m-2", to=ADA))
    list_.lift(ADA, "mail")
    worker.handle(item(id="m-3", to=ADA))
    assert worker.submitted == ["m-1", "m-3"]


def test_while_the_suppression_list_cannot_be_read_messages_are_retried_and_not_sent(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    away = client_error("InternalServerError", status=500)
    client: Any = Meddler(aws.dynamodb, batch_get_item=failing(*[away] * 3))
    worker = make_post(suppressions=Suppressions(client, SUPPRESSIONS, clock))
    assert worker.handle(item(id="m-1"), item(id="m-2")).keys() == {"r-0", "r-1"}
    assert worker.submitted == []
    assert "startedAt" not in aws.item("m-1")  # proved unsent: the next delivery need not wait for a lease
    assert worker.handle(item(id="m-1"), item(id="m-2")) == {}
    assert worker.submitted == ["m-1", "m-2"]


def test_a_message_that_the_provider_already_sent_is_recorded_as_sent_despite_a_suppression(
    make_post: Make, list_: Suppressions, aws: Aws, clock: FakeClock, ledger: Ledger
) -> None:
    crash(ledger, clock)
    list_.mark(_bounced("vincent@example.com"))
    worker = make_post(suppressions=list_, evidence=Sent("p-0"))
    worker.handle(item())
    assert (aws.item()["status"], aws.item()["provider_id"]) == ("sent", "p-0")


def test_a_recipient_that_the_provider_reports_as_gone_is_added_to_the_suppression_list(
    make_post: Make, list_: Suppressions, aws: Aws
) -> None:
    worker = make_post(Rejected("the endpoint is disabled", gone=True), suppressions=list_)
    assert worker.handle(item(to=ADA)) == {}
    assert aws.item()["status"] == "failed"
    assert list_.find("mail", [ADA]) == {
        ADA: Suppression(ADA, "mail", "gone", NOW_MS, "the endpoint is disabled", "m-1")
    }


def test_an_opt_out_at_the_provider_suppresses_the_message_and_its_recipient(
    make_post: Make, list_: Suppressions, aws: Aws, counted: Counted
) -> None:
    worker = make_post(Rejected("it answered 21610", opted_out=True), suppressions=list_)
    assert worker.handle(item(to=ADA)) == {}
    stored = aws.item()
    assert (stored["status"], stored["error"]) == (
        "suppressed",
        {"code": "suppressed", "message": "it answered 21610"},
    )
    assert "failed_as" not in stored  # the message did not fail
    assert list_.find("mail", [ADA]) == {
        ADA: Suppression(ADA, "mail", "stop", NOW_MS, "it answered 21610", "m-1")
    }
    assert counted() == {"Suppressed": 1}


def test_a_message_rejected_for_its_content_does_not_add_its_recipient_to_the_suppression_list(
    make_post: Make, list_: Suppressions
) -> None:
    make_post(Rejected("too long"), suppressions=list_).handle(item(to=ADA))
    assert list_.find("mail", [ADA]) == {}


@pytest.mark.parametrize(
    ("outcome", "reason", "status"),
    [
        (Rejected("disabled", gone=True), "gone", "failed"),
        (Rejected("disabled", opted_out=True), "stop", "suppressed"),
    ],
)
def test_a_message_is_retried_if_its_recipient_could_not_be_added_to_the_suppression_list(
    make_post: Make, aws: Aws, clock: FakeClock, outcome: Rejected, reason: str, status: str
) -> None:
    away = client_error("InternalServerError", status=500)
    client: Any = Meddler(aws.dynamodb, update_item=failing(away))
    list_ = Suppressions(client, SUPPRESSIONS, clock)
    worker = make_post(outcome, suppressions=list_)
    assert worker.handle(item(to=ADA)).keys() == {"r-0"}
    assert aws.item()["trouble"] == {"code": "unmarked", "message": "disabled"}
    assert worker.handle(item(to=ADA)) == {}
    assert aws.item()["status"] == status
    assert list_.find("mail", [ADA])[ADA].reason == reason
