"""Senders of a restricted stage: messages to recipients outside its setting are suppressed or redirected."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.channels.sms.adapter import text_delivery
from mailroom.delivery.delivery import Delivery, to_people
from mailroom.delivery.worker import Worker
from mailroom.environment import PushSender, Sender
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Message
from mailroom.message.outcome import DayUsedUp, NotFound, Rejected, Sent
from mailroom.recipients.choices import Preferences, Suppression, Suppressions
from tests.support.unit import push, sms
from tests.support.unit.fakes import FakeAdapter
from tests.support.unit.fax import BUSY, LINE, OTHER_LINE, FakeLine, entry, fax_body
from tests.support.unit.fax_post import FaxMake
from tests.support.unit.post import SETTINGS, TABLES, Counted, Log, Make, WorkerPost, tools_of
from tests.support.unit.shared import (
    BUCKET,
    LEASE,
    NOW_MS,
    PREFERENCES,
    Aws,
    FakeClock,
    item,
    mail,
)

ADA, EVE, BOB = "ada@example.com", "eve@corp.example", "bob@corp.example"
TESTERS, PHONE = "testers@example.org", "+12025550199"
REFUSED = {
    "code": "not_allowed_here",
    "message": "this stage sends only to recipients in its setting recipients.only",
}


class Sending(WorkerPost):
    """Worker of any channel."""

    def __init__(
        self, aws: Aws, clock: FakeClock, settings: Sender, adapter: Any, delivery: Callable[..., Any]
    ) -> None:
        super().__init__(aws)
        tools = tools_of(settings, aws, clock, self._sqs)
        self._worker = Worker(settings.queue_url, tools, delivery(settings, adapter, tools))


def texting(aws: Aws, clock: FakeClock, provider: sms.FakeSms, **changes: Any) -> Sending:
    adapter = sms.sms_adapter_of(provider, aws)
    return Sending(aws, clock, sms.sms_settings(**changes), adapter, text_delivery)


def pushing(aws: Aws, clock: FakeClock, client: push.Sns, **changes: Any) -> Sending:
    settings = PushSender(
        **{**SETTINGS, **TABLES, "channel": "push", **changes},
        platform_applications=push.APPLICATIONS,
        topics=[push.TOPIC],
    )
    return Sending(aws, clock, settings, push.push_adapter(client), to_people)


def test_a_mail_to_a_recipient_outside_the_stages_allowed_recipients_is_suppressed(
    make_post: Make, list_: Suppressions, aws: Aws, counted: Counted, log: Log
) -> None:
    worker = make_post(suppressions=list_, recipients_only=["corp.example"])
    assert worker.handle(item(to=ADA)) == {}
    assert worker.submitted == []
    assert (aws.item()["status"], aws.item()["error"]) == ("suppressed", REFUSED)
    assert "failed_as" not in aws.item()
    assert counted() == {"Suppressed": 1}
    assert "example.com" not in str(log())


def test_a_mail_to_several_recipients_is_sent_only_to_the_stages_allowed_recipients(
    make_post: Make, list_: Suppressions, aws: Aws, counted: Counted
) -> None:
    list_.mark(Suppression(BOB, "mail", "bounce", NOW_MS))
    worker = make_post(suppressions=list_, recipients_only=["corp.example"])
    worker.handle(item(to=[ADA, EVE], cc="Carl <carl@example.com>", bcc=BOB))
    (sent,) = worker.adapter.submitted
    assert (sent.to, sent.cc, sent.bcc, sent.headers) == ([EVE], [], [], {})
    entries = aws.item()["recipients"]
    assert entries[ADA]["error"] == entries["carl@example.com"]["error"] == REFUSED["message"]
    assert entries[BOB]["error"].startswith("on the suppression list")
    assert entries[EVE] == {}
    assert counted() == {"Sent": 1, "SuppressedInPart": 1}


def test_a_redirected_mail_lists_its_original_recipients_in_a_header(
    make_post: Make, list_: Suppressions, aws: Aws
) -> None:
    worker = make_post(suppressions=list_, recipients_only=["corp.example"], redirect_to=TESTERS)
    worker.handle(item(to=["Ada <ADA@example.com>", EVE], cc="carl@example.com"))
    (sent,) = worker.adapter.submitted
    assert (sent.to, sent.email, sent.cc, sent.bcc) == (TESTERS, None, None, None)
    assert sent.headers == {"X-Original-To": f"{ADA}, {EVE}, carl@example.com"}
    ledger = aws.item()
    assert (ledger["status"], ledger["redirected_to"]) == ("sent", TESTERS)
    assert ledger["to"] == ["Ada <ADA@example.com>", EVE]
    assert set(ledger["recipients"]) == {ADA, EVE, "carl@example.com"}


def test_a_mail_to_allowed_recipients_is_not_redirected(
    make_post: Make, list_: Suppressions, aws: Aws
) -> None:
    worker = make_post(suppressions=list_, recipients_only=["corp.example"], redirect_to=TESTERS)
    worker.handle(item(id="m-1", to=EVE), item(id="m-2", to=TESTERS))
    assert [request.to for request in worker.adapter.submitted] == [EVE, TESTERS]
    assert "redirected_to" not in aws.item("m-1").keys() | aws.item("m-2").keys()


def test_a_redirected_mail_obeys_the_opt_outs_of_its_original_recipients_and_not_of_its_new_one(
    make_post: Make, list_: Suppressions, aws: Aws, clock: FakeClock
) -> None:
    preferences = Preferences(aws.dynamodb, PREFERENCES, clock)
    preferences.opt_out(ADA, "news", "page")
    preferences.opt_out(TESTERS, "news", "one-click")
    worker = make_post(suppressions=list_, recipients_only=[], redirect_to=TESTERS)
    worker.handle(item(id="m-1", to=ADA, topic="news"), item(id="m-2", to=[ADA, EVE], topic="news"))
    assert aws.item("m-1")["error"]["code"] == "opted_out"
    (sent,) = worker.adapter.submitted
    assert (sent.id, sent.to, sent.headers) == ("m-2", TESTERS, {"X-Original-To": EVE})


def test_a_redirected_message_is_suppressed_if_its_new_recipient_is_suppressed(
    make_post: Make, list_: Suppressions, aws: Aws
) -> None:
    list_.mark(Suppression(TESTERS, "mail", "complaint", NOW_MS))
    worker = make_post(suppressions=list_, recipients_only=[], redirect_to=TESTERS)
    worker.handle(item(to=ADA, topic="news"))
    assert worker.submitted == []
    assert aws.item()["error"]["code"] == "suppressed"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(Rejected("no such", gone=True), "failed"), (Rejected("21610", opted_out=True), "suppressed")],
)
def test_a_redirected_message_that_is_rejected_does_not_add_a_recipient_to_the_suppression_list(
    make_post: Make, list_: Suppressions, aws: Aws, outcome: Rejected, status: str
) -> None:
    make_post(outcome, suppressions=list_, recipients_only=[], redirect_to=TESTERS).handle(item(to=ADA))
    assert aws.item()["status"] == status
    assert list_.find("mail", [ADA, TESTERS]) == {}


def test_a_redirected_message_of_unknown_outcome_is_held_if_the_redirect_was_removed_meanwhile(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    lost = ConnectionResetError("gone")
    first = make_post(lost, recipients_only=[], redirect_to=TESTERS, on_unknown="hold")
    second = make_post(evidence=NotFound(), on_unknown="hold")
    first.adapter.account = second.adapter.account = "p/1"
    first.handle(item(to=ADA))
    clock.advance(LEASE)
    second.handle(item(to=ADA))
    assert (second.submitted, aws.item()["error"]["code"]) == ([], "outcome_unknown")


def test_the_ledger_item_of_a_redirected_message_that_waits_has_its_original_recipients(
    make_post: Make, list_: Suppressions, aws: Aws
) -> None:
    worker = make_post(DayUsedUp("454"), suppressions=list_, recipients_only=[], redirect_to=TESTERS)
    worker.handle(item(to=[ADA, EVE]))
    waiting = aws.item()
    assert (waiting["status"], waiting["to"], waiting["wait"]["recipients"]) == ("scheduled", [ADA, EVE], 2)


def test_a_message_resent_after_the_redirect_was_removed_is_sent_to_its_original_recipient(
    make_post: Make, list_: Suppressions, aws: Aws, ledger: Ledger
) -> None:
    make_post(suppressions=list_, recipients_only=[], redirect_to=TESTERS).handle(item(to=ADA))
    assert aws.item()["redirected_to"] == TESTERS
    ledger.reopen(mail().key, aws.item())
    worker = make_post(suppressions=list_)
    worker.handle(item(to=ADA, attempt=2))
    (sent,) = worker.adapter.submitted
    assert (sent.to, sent.headers) == (ADA, {})
    assert "redirected_to" not in aws.item()


class Room(Message, frozen=True, kw_only=True):
    """Message of an own channel, without recipients."""


@pytest.mark.parametrize(("only", "status"), [(None, "sent"), ([], "suppressed")])
def test_a_message_without_recipients_is_suppressed_only_in_a_stage_that_restricts_recipients(
    aws: Aws, clock: FakeClock, only: list[str] | None, status: str
) -> None:
    adapter: Any = FakeAdapter(Sent("p-1"))
    adapter.contract = Room
    settings = Sender(**{**SETTINGS, "channel": "room"}, recipients_only=only)
    Sending(aws, clock, settings, adapter, Delivery).handle({"id": "r-1", "event_type": "room"})
    assert aws.item("r-1", "room")["status"] == status


def test_a_text_is_sent_only_to_the_stages_allowed_numbers(aws: Aws, clock: FakeClock) -> None:
    provider = sms.FakeSms()
    worker = texting(aws, clock, provider, recipients_only=["+1555555"])
    worker.handle(sms.sms_item(id="s-1"), sms.sms_item(id="s-2", to="+16175551234"))
    assert [request.to for request in provider.submitted] == [sms.TO]
    assert aws.item("s-2", "sms")["error"] == REFUSED


def test_a_look_up_for_a_redirected_text_searches_by_the_number_it_was_redirected_to(
    aws: Aws, clock: FakeClock
) -> None:
    redirect = {"recipients_only": [], "redirect_to": PHONE}
    payload = f"s3://{BUCKET}/text.json"
    aws.s3.put_object(Bucket=BUCKET, Key="text.json", Body=b'{"text": "Your table is ready"}')
    text = sms.sms_item(text=..., payload_ref=payload)
    lost = sms.FakeSms(TimeoutError("no answer"))
    texting(aws, clock, lost, **redirect).handle(text)
    clock.advance(LEASE + 1)
    provider = sms.FakeSms(finds=Sent("SM9"))
    texting(aws, clock, provider, **redirect).handle(text)
    assert [request.to for request in lost.submitted] == [PHONE]
    assert [request.to for request, *_ in provider.searches] == [PHONE]
    ledger = aws.item("s-1", "sms")
    assert (ledger["provider_id"], ledger["line"]) == ("SM9", PHONE)
    assert (ledger["to"], ledger["redirected_to"]) == (sms.TO, PHONE)


@pytest.mark.parametrize(
    ("only", "to"),
    [
        (f"push:{push.ENDPOINT}", push.ENDPOINT),
        (f"push:{push.TOPIC}", push.TOPIC),
        (f"push:android#{push.TOKEN}", push.TOKEN),
    ],
)
def test_a_push_is_sent_only_to_the_stages_allowed_endpoints_tokens_and_topics(
    aws: Aws, clock: FakeClock, only: str, to: str
) -> None:
    platform = "android" if to == push.TOKEN else ...
    for number, allowed in enumerate([[only], []]):
        client, id_ = push.Sns(), f"p-{number}"
        worker = pushing(aws, clock, client, recipients_only=allowed)
        worker.handle(push.push_item(id=id_, to=to, platform=platform))
        assert bool(client.calls) == bool(allowed)
        assert aws.item(id_, "push")["status"] == ("sent" if allowed else "suppressed")


@pytest.mark.parametrize("to", [push.IOS_ENDPOINT, push.TOPIC, push.TOKEN])
def test_a_push_to_any_kind_of_target_is_redirected_to_the_configured_endpoint(
    aws: Aws, clock: FakeClock, to: str
) -> None:
    client = push.Sns()
    worker = pushing(aws, clock, client, recipients_only=[], redirect_to=push.ENDPOINT)
    worker.handle(push.push_item(to=to, platform="ios" if to == push.TOKEN else ...))
    ((name, arguments),) = client.calls
    assert (name, arguments["TargetArn"]) == ("publish", push.ENDPOINT)
    assert "GCM" in arguments["Message"]
    assert aws.item("p-1", "push")["redirected_to"] == push.ENDPOINT


def test_a_fax_is_sent_only_to_the_stages_allowed_numbers(fax_post: FaxMake, aws: Aws) -> None:
    worker = fax_post(recipients_only=[LINE])
    assert worker.handle(fax_body(to=OTHER_LINE), group=OTHER_LINE) is None
    assert (worker.line.calls, entry(aws)["status"], entry(aws)["error"]) == ([], "suppressed", REFUSED)
    again = fax_post(recipients_only=[LINE[:6]])
    assert again.handle(fax_body(fax_id="f-2")) is None
    assert again.line.submits == 1


def test_a_fax_whose_line_was_busy_is_suppressed_if_its_number_is_no_longer_allowed(
    fax_post: FaxMake, aws: Aws
) -> None:
    fax_post(FakeLine(BUSY)).handle(fax_body())
    second = fax_post(recipients_only=["+9999"])
    assert second.handle(fax_body(attempt=2)) is None
    assert (second.line.submits, entry(aws)["status"]) == (0, "suppressed")
