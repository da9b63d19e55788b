"""The simulated Twilio's status callbacks: what they say, how they are signed, how often they come."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from twilio.request_validator import RequestValidator

from mailroom_local.providers.http import NoAnswer, Reply, Request, SimulatorServer
from mailroom_local.providers.sms import SimulatedSms
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN
from mailroom_local.providers.twilio_callbacks import TRIES, StatusCallbacks, fields
from tests.support.local.served import served
from tests.support.local.twilio import SENDER, accepted_sms, form, number

PATH = "/api/callbacks/twilio/aGk.2"


@dataclass
class Receiver:
    """Receiver that answers each callback with the next status of its list, and with 204 after the last. It
    breaks the connection for 0."""

    answers: list[int] = field(default_factory=list)
    came: list[Request] = field(default_factory=list)
    prefix: str = ""

    def handle(self, request: Request) -> Reply:
        self.came.append(request)
        answer = self.answers.pop(0) if self.answers else 204
        if not answer:
            raise NoAnswer
        return Reply(answer, b"")


@dataclass
class CallbacksBench:
    receiver: Receiver
    callbacks: StatusCallbacks
    now: list[float]
    url: str

    def tell(self, *messages: SimulatedSms) -> None:
        """Have all told, as if a minute had passed, step by step."""
        for each in messages:
            self.callbacks(each)
        for _ in range(600):
            self.now[0] += 0.1
            self.callbacks.queue.run_due()

    def statuses(self) -> list[str]:
        return [form(each.body)["MessageStatus"] for each in self.receiver.came]


@contextmanager
def bench_of(*answers: int) -> Iterator[CallbacksBench]:
    receiver, now = Receiver(list(answers)), [0.0]
    with served(SimulatorServer(0, receiver)) as url:
        callbacks = StatusCallbacks(clock=lambda: now[0])
        callbacks.queue.disorder.doubled = 0
        yield CallbacksBench(receiver, callbacks, now, url + PATH)


def test_each_status_of_a_message_is_posted_as_a_callback_signed_for_its_url() -> None:
    with bench_of() as bench:
        bench.tell(accepted_sms("60", bench.url))
        assert sorted(bench.statuses()) == ["delivered", "queued", "sent"]
        validator = RequestValidator(AUTH_TOKEN)
        for each in bench.receiver.came:
            assert (each.method, each.path) == ("POST", PATH)
            assert each.headers["content-type"].startswith("application/x-www-form-urlencoded")
            signature = each.headers["x-twilio-signature"]
            assert validator.validate(bench.url, form(each.body), signature)
            assert not validator.validate(bench.url + "x", form(each.body), signature)


def test_a_callback_has_the_fields_that_twilio_sends() -> None:
    message = accepted_sms("30")
    assert fields(message, "sent") == {
        "AccountSid": ACCOUNT_SID,
        "ApiVersion": "2010-04-01",
        "From": SENDER,
        "MessageSid": message.sid,
        "MessageStatus": "sent",
        "SmsSid": message.sid,
        "SmsStatus": "sent",
        "To": number("30"),
    }
    ended = fields(message, "undelivered")
    assert (ended["ErrorCode"], ended["RawDlrDoneDate"]) == ("30003", "2611210900")
    delivered = fields(accepted_sms("60", service="MG" + "a" * 32), "delivered")
    assert (delivered["RawDlrDoneDate"], delivered["MessagingServiceSid"]) == ("2611210900", "MG" + "a" * 32)
    assert "ErrorCode" not in delivered


@pytest.mark.parametrize(("answers", "tries"), [([503, 0], 4), ([403] * 9, 2), ([500] * 99, 2 * TRIES)])
def test_a_callback_is_retried_after_a_server_error_or_lost_response_but_not_after_a_refusal(
    answers: list[int], tries: int
) -> None:
    with bench_of(*answers) as bench:
        bench.tell(accepted_sms("34", bench.url))
        assert {*bench.statuses()} == {"queued", "sent"}
        assert len(bench.receiver.came) == tries


def test_a_callback_is_not_posted_without_a_url_to_another_machine_or_for_a_number_ending_in_57() -> None:
    with bench_of() as bench:
        bench.tell(
            accepted_sms("60"),
            accepted_sms("60", "https://example.com/callbacks"),
            accepted_sms("57", bench.url),
        )
        assert (bench.receiver.came, bench.callbacks.queue.waiting) == ([], 0)
