"""The Resend simulator over real HTTP, with the real adapter as its client; its webhooks go to the real
function, and what that queues is read as feedback reads it."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.contract import Mail
from mailroom.channels.mail.rendering import MailRenderer
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.errors import OutcomeUnknown
from mailroom.feedback.reader import read
from mailroom.message.message import parse
from mailroom.message.outcome import (
    Conflict,
    DayUsedUp,
    Event,
    Misconfigured,
    Outcome,
    Rejected,
    Repeatable,
    Retry,
    Sent,
)
from mailroom.providers.resend.sender import Resend, ResendMail
from mailroom_local.providers.http import Reply, Request, SimulatorServer
from mailroom_local.providers.inbox import InboxStore
from mailroom_local.providers.resend_mail import KEY_SECONDS, SECRET, WEBHOOK_SECRET, ResendSimulator
from tests.support.local.served import served
from tests.support.unit.resend_mail import ResendDoor
from tests.support.unit.shared import BUCKET, SENDER, FakeClock
from tests.support.unit.shelf import OURS


class ResendBench:
    """The simulator, an adapter that asks it, and the function that its webhooks come to."""

    prefix = "/api"

    def __init__(self) -> None:
        self.clock, self.inbox = FakeClock(), InboxStore()
        self.refuses = 0
        """So many webhooks are not taken at first."""
        text = f'{{"api_key": "{SECRET["api_key"]}", "webhook_secret": "{WEBHOOK_SECRET}"}}'
        self.door = ResendDoor(time.time, text)
        self.simulator = ResendSimulator(self.inbox, clock=self.clock)
        self.url = ""

    def handle(self, request: Request) -> Reply:
        """Answer as the stage's API."""
        if self.refuses:
            self.refuses -= 1
            return Reply(503, b"")
        assert request.path == "/api/callbacks/resend"
        event = {
            "headers": dict(request.headers),
            "body": request.body.decode(),
            "requestContext": {"http": {"method": "POST"}},
        }
        return Reply(self.door.answers(event), b"")

    @property
    def adapter(self) -> ResendMail:
        renderer = MailRenderer(
            Templates(OURS),
            Payloads(None, BUCKET),  # type: ignore[arg-type]
            senders=[SENDER],
            max_attachment_bytes=1000,
        )
        return ResendMail(lambda: Resend(SECRET["api_key"], f"{self.url}/resend", 5), renderer, BUCKET)

    def send(self, to: Any, **more: Any) -> Outcome:
        return self.adapter.open().submit(self.adapter.prepare(mail_to(to, **more)))

    def events(self) -> list[Event]:
        """Return all messages that the function has queued, by time, after every webhook was sent."""
        for _ in range(10):
            self.clock.advance(1)
            self.simulator.queue.run_due()
        found = [each for body in self.door.queue.bodies for each in read(body, ())]
        return sorted((each for each in found if isinstance(each, Event)), key=lambda each: each.at)


def mail_to(to: Any, **more: Any) -> Mail:
    item = {"id": "m-1", "event_type": "mail", "to": to, "subject": "Hello", "text": "Hi", **more}
    message = parse(item, CONTRACTS)
    assert isinstance(message, Mail)
    return message


@pytest.fixture
def resend_bench() -> Iterator[ResendBench]:
    made = ResendBench()
    with served(SimulatorServer(0, made.simulator, made)) as made.url:
        yield made


def test_an_accepted_mail_is_in_the_inbox_with_its_request(resend_bench: ResendBench) -> None:
    outcome = resend_bench.send("Ada <ada@example.com>", cc="eve@example.com", headers={"X-Team": "a"})
    (kept,) = resend_bench.inbox.all()
    assert isinstance(outcome, Sent)
    assert (kept.channel, kept.to, kept.provider_id) == ("mail", "Ada <ada@example.com>", outcome.provider_id)
    assert (kept.content["cc"], kept.content["headers"]["X-Team"]) == (["eve@example.com"], "a")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("throttled", Retry),
        ("used-up", DayUsedUp),
        ("rejected", Rejected),
        ("unverified", Misconfigured),
        ("forbidden", Misconfigured),
    ],
)
def test_each_refusal_of_resend_becomes_its_outcome_and_the_mail_is_not_in_the_inbox(
    resend_bench: ResendBench, name: str, kind: type
) -> None:
    assert isinstance(resend_bench.send(f"{name}@resend.dev"), kind)
    assert resend_bench.inbox.all() == []


def test_an_address_with_the_word_once_is_refused_only_at_the_first_submit(resend_bench: ResendBench) -> None:
    assert isinstance(resend_bench.send("throttled-once+7@resend.dev"), Retry)
    assert isinstance(resend_bench.send("throttled-once+7@resend.dev"), Sent)


def test_the_identical_request_after_a_lost_response_gets_the_first_response(
    resend_bench: ResendBench,
) -> None:
    with pytest.raises(OutcomeUnknown):
        resend_bench.send("lost-answer@resend.dev")
    (kept,) = resend_bench.inbox.all()
    message = mail_to("lost-answer@resend.dev")
    evidence = resend_bench.adapter.open().look_up(message, 0, ())
    assert isinstance(evidence, Repeatable)
    assert resend_bench.adapter.open().submit(evidence.prepare(message)) == Sent(
        kept.provider_id, {"subject": "Hello"}
    )
    assert len(resend_bench.inbox.all()) == 1


def test_the_resend_simulator_refuses_another_request_under_an_idempotency_key_until_it_expires(
    resend_bench: ResendBench,
) -> None:
    resend_bench.send("ada@example.com")
    assert isinstance(resend_bench.send("ada@example.com", text="Other"), Conflict)
    resend_bench.clock.advance(KEY_SECONDS)
    assert isinstance(resend_bench.send("ada@example.com", text="Other"), Sent)
    assert len(resend_bench.inbox.all()) == 2


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("delivered", ["sent", "delivered"]),
        ("bounced", ["sent", "bounced"]),
        ("complained", ["sent", "delivered", "complained"]),
        ("suppressed", ["sent", "bounced"]),
        ("soft", ["sent", None, "undelivered"]),
        ("failed", ["sent", "undelivered"]),
    ],
)
def test_the_address_of_a_mail_determines_the_events_that_are_posted_as_signed_webhooks(
    resend_bench: ResendBench, name: str, statuses: list[str | None]
) -> None:
    resend_bench.simulator.queue.disorder.doubled = 0
    outcome = resend_bench.send(f"{name}@resend.dev")
    assert isinstance(outcome, Sent)
    found = resend_bench.events()
    assert [each.status for each in found] == statuses
    assert {(each.key.id, each.provider_id) for each in found} == {("m-1", outcome.provider_id)}


def test_the_resend_simulator_reports_only_the_event_sent_for_a_mail_to_several_recipients(
    resend_bench: ResendBench,
) -> None:
    resend_bench.send(["bounced@resend.dev", "ada@example.com"])
    found = resend_bench.events()
    assert {(each.status, each.several, each.suppress) for each in found} == {("sent", True, None)}


def test_the_resend_simulator_repeats_a_webhook_that_the_stage_has_refused(resend_bench: ResendBench) -> None:
    resend_bench.simulator.queue.disorder.doubled, resend_bench.refuses = 0, 2
    resend_bench.send("ada@example.com")
    assert [each.status for each in resend_bench.events()] == ["sent", "delivered"]


def test_a_later_mail_to_a_bounced_recipient_gets_the_event_suppressed(
    resend_bench: ResendBench,
) -> None:
    resend_bench.simulator.queue.disorder.doubled = 0
    resend_bench.send("bounced@resend.dev")
    resend_bench.events()
    resend_bench.door.queue.bodies.clear()
    resend_bench.send("bounced@resend.dev", id="m-2")
    assert [each.kind for each in resend_bench.events()] == ["email.sent", "email.suppressed"]


@pytest.mark.parametrize(
    ("kind", "sent"), [("text/csv", False), ("text/plain; charset=utf-8", True), (None, True)]
)
def test_the_resend_simulator_accepts_and_does_not_send_a_mail_with_a_wrong_attachment_type(
    resend_bench: ResendBench, kind: str | None, sent: bool
) -> None:
    request = resend_bench.adapter.prepare(mail_to("ada@example.com"))
    attachment = {"filename": "data.txt", "content": "YQ==", **({"content_type": kind} if kind else {})}
    body = json.dumps({**json.loads(request.body), "attachments": [attachment]}).encode()
    outcome = resend_bench.adapter.open().submit(structs.replace(request, body=body))
    assert isinstance(outcome, Sent)
    assert (bool(resend_bench.inbox.all()), bool(resend_bench.events())) == (sent, sent)


@pytest.mark.parametrize("field", ["from", "to", "cc", "bcc", "reply_to"])
def test_an_address_with_more_than_320_characters_is_refused_in_the_words_of_resend(
    resend_bench: ResendBench, field: str
) -> None:
    request = resend_bench.adapter.prepare(mail_to("ada@example.com"))
    long = f"{'N' * 303} <ada@example.com>"
    body = json.dumps({**json.loads(request.body), field: long if field == "from" else [long]}).encode()
    outcome = resend_bench.adapter.open().submit(structs.replace(request, body=body))
    assert isinstance(outcome, Misconfigured)
    assert "The email address length is more than 320 characters long." in outcome.reason
