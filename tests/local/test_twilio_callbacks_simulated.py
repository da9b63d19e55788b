"""The simulated Twilio's status callbacks: what they say, how they are signed, where they go, how often."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from twilio.request_validator import RequestValidator

from mailroom_local.providers.http import NoAnswer, Reply, Request, SimulatorServer
from mailroom_local.providers.sms import SimulatedSms
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN
from mailroom_local.providers.twilio_callbacks import SPREAD_SECONDS, TRIES, StatusCallbacks, fields, reached
from tests.support.local.served import served
from tests.support.local.twilio import SENDER, form, number, sms

PUBLIC = "https://abc123.execute-api.us-east-1.amazonaws.com/callbacks/twilio/aGk.2"
EMULATED = "/restapis/abc123/$default/_user_request_/callbacks/twilio/aGk.2"
GET = Request("GET", "/callbacks", {}, b"")


@dataclass
class Receiver:
    """Takes every callback, and answers as its list says; 204 once the list is empty, 0 is no answer."""

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
class Bench:
    receiver: Receiver
    callbacks: StatusCallbacks
    now: list[float]

    def tell(self, *messages: SimulatedSms, seconds: float = 60) -> None:
        """Have all told, as if so much time had passed, step by step."""
        for each in messages:
            self.callbacks.accepted(each)
        for _ in range(int(seconds * 10)):
            self.now[0] += 0.1
            self.callbacks.queue.run_due()

    def statuses(self) -> list[str]:
        return [form(each.body)["MessageStatus"] for each in self.receiver.came]


@contextmanager
def bench_of(*answers: int) -> Iterator[Bench]:
    receiver, now = Receiver(list(answers)), [0.0]
    with served(SimulatorServer(0, receiver)) as url:
        yield Bench(receiver, StatusCallbacks(url, seed=3, clock=lambda: now[0]), now)


def test_each_status_of_a_message_is_called_back_signed_over_its_public_url() -> None:
    with bench_of() as bench:
        bench.tell(sms("60", PUBLIC))
        assert set(bench.statuses()) == {"queued", "sent", "delivered"}
        validator = RequestValidator(AUTH_TOKEN)
        for each in bench.receiver.came:
            assert (each.method, each.path) == ("POST", EMULATED)
            assert each.headers["content-type"].startswith("application/x-www-form-urlencoded")
            signature = each.headers["x-twilio-signature"]
            assert validator.validate(PUBLIC, form(each.body), signature)
            assert not validator.validate(PUBLIC + "x", form(each.body), signature)


def test_a_callback_has_the_fields_that_twilio_sends() -> None:
    message = sms("30", PUBLIC)
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
    delivered = fields(sms("60", service="MG" + "a" * 32), "delivered")
    assert (delivered["RawDlrDoneDate"], delivered["MessagingServiceSid"]) == ("2611210900", "MG" + "a" * 32)
    assert "ErrorCode" not in delivered


def test_many_callbacks_come_in_another_order_some_twice_and_none_is_missing() -> None:
    with bench_of() as bench:
        messages = [sms("60", PUBLIC) for _ in range(40)]
        bench.tell(*messages, seconds=SPREAD_SECONDS + 0.2)
        came = Counter(
            (form(each.body)["MessageSid"], form(each.body)["MessageStatus"]) for each in bench.receiver.came
        )
        assert set(came) == {(each.sid, status) for each in messages for status in each.statuses}
        assert set(came.values()) == {1, 2}
        orders = {
            each.sid: tuple(
                form(post.body)["MessageStatus"]
                for post in bench.receiver.came
                if form(post.body)["MessageSid"] == each.sid
            )
            for each in messages
        }
        assert len(set(orders.values())) > 6


def test_server_errors_and_no_answer_are_tried_again_and_a_refusal_is_not() -> None:
    with bench_of(503, 0) as bench:
        bench.tell(sms("33", PUBLIC))
        assert len(bench.receiver.came) == len(bench.callbacks.posted()) + 2
    with bench_of(*[403] * 9) as bench:
        bench.tell(sms("60", PUBLIC))
        assert {(each["answer"], each["tries"]) for each in bench.callbacks.posted()} == {(403, 1)}


def test_after_a_few_tries_it_gives_up() -> None:
    with bench_of(*[500] * 99) as bench:
        bench.tell(sms("34", PUBLIC))
        posted = bench.callbacks.posted()
        assert {(each["answer"], each["tries"]) for each in posted} == {(500, TRIES)}
        assert len(bench.receiver.came) == TRIES * len(posted)


def test_what_was_posted_can_be_read_without_numbers() -> None:
    with bench_of() as bench:
        message = sms("34", PUBLIC)
        bench.tell(message)
        answer = bench.callbacks.pages().handle(GET)
        assert (answer.status, number("34") in answer.body.decode()) == (200, False)
        assert {(each["sid"], each["status"]) for each in bench.callbacks.posted()} == {
            (message.sid, "queued"),
            (message.sid, "sent"),
        }
        assert bench.callbacks.pages().handle(Request("POST", "/callbacks", {}, b"")).status == 404


def test_nobody_is_told_where_nobody_asked_or_in_the_world_outside() -> None:
    with bench_of() as bench:
        bench.tell(sms("60"), sms("60", "https://example.com/callbacks"), sms("57", PUBLIC))
        assert (bench.receiver.came, bench.callbacks.posted()) == ([], [])


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (PUBLIC + "?a=1", f"http://emulator{EMULATED}?a=1"),
        ("http://127.0.0.1:4000/x", "http://127.0.0.1:4000/x"),
        ("https://127.0.0.1:4000/x", None),
        ("https://abc.execute-api.us-east-1.amazonaws.com.example.com/x", None),
        ("http://example.com/x", None),
    ],
)
def test_only_the_emulated_api_and_this_machine_are_reached(url: str, place: str | None) -> None:
    assert reached(url, "http://emulator") == place
