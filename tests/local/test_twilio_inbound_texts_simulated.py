"""Texts to the stage at the simulated Twilio: what they say, how they are signed, and what Twilio keeps."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from twilio.base.exceptions import TwilioRestException
from twilio.request_validator import RequestValidator

from mailroom_local.providers.http import Reply, Request, SimulatorServer
from mailroom_local.providers.twilio import ACCOUNT_SID, AUTH_TOKEN
from mailroom_local.providers.twilio_texts import OURS, pages
from tests.support.local.served import served
from tests.support.local.twilio import Bench, form, number, running_twilio_bench

BENCH = running_twilio_bench


class Api:
    """The stage's API: keeps what it is asked."""

    prefix = "/api"

    def __init__(self) -> None:
        self.came: list[Request] = []

    def handle(self, request: Request) -> Reply:
        self.came.append(request)
        return Reply(200, b"<Response></Response>", {"Content-Type": "text/xml"})


class Phone:
    """Sends texts by the page."""

    def __init__(self, url: str, api: Api) -> None:
        self.url = url
        self.api = api

    def texts(self, body: str, sender: str = number("60"), **more: str) -> dict[str, object]:
        said = urlencode({"From": sender, "Body": body, **more}).encode()
        with urllib.request.urlopen(f"{self.url}/texts", data=said, timeout=5) as answer:
            shown: dict[str, object] = json.load(answer)
        return shown


@pytest.fixture
def phone(bench: Bench) -> Iterator[Phone]:
    api = Api()
    with served(SimulatorServer(0, pages(bench.network), api)) as url:
        yield Phone(url, api)


def test_the_twilio_simulator_posts_an_inbound_text_to_the_stage_signed_for_its_public_url(
    phone: Phone,
) -> None:
    assert phone.texts("Stop")["answer"] == 200
    (came,) = phone.api.came
    said = form(came.body)
    assert (said["From"], said["To"], said["Body"]) == (number("60"), OURS, "Stop")
    assert said["AccountSid"] == ACCOUNT_SID
    signature = came.headers["x-twilio-signature"]
    assert RequestValidator(AUTH_TOKEN).validate(f"{phone.url}/api/twilio/inbound", said, signature)


def test_the_twilio_simulator_returns_an_inbound_text_with_its_numbers_and_its_time(
    phone: Phone, bench: Bench
) -> None:
    found = bench.twilio(phone.texts("Hello", To="+12025550124")["sid"]).fetch()
    assert (found.direction, found.status, found.body) == ("inbound", "received", "Hello")
    assert (found.from_, found.to) == (number("60"), "+12025550124")
    assert found.date_created.timestamp() == int(bench.clock())


def test_messages_to_a_number_that_texted_stop_are_refused_until_it_texts_start(
    phone: Phone, bench: Bench
) -> None:
    phone.texts(" stop ")
    with pytest.raises(TwilioRestException) as caught:
        bench.send(number("60"))
    assert (caught.value.status, caught.value.code) == (400, 21610)
    assert bench.send(number("61")).status == "queued"
    phone.texts("Start")
    assert bench.send(number("60")).status == "queued"


def test_an_inbound_text_is_refused_if_its_sender_is_not_a_number(phone: Phone) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400"):
        phone.texts("STOP", sender="me")
    assert phone.api.came == []
