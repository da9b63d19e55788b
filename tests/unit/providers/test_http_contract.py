"""The contract of every client of an HTTP API: what its provider's responses prove about a submitted message.

A further provider is a row in CLIENTS. What only one provider has is tested in the file of that provider.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from mailroom.channels.fax.contract import FaxRequest
from mailroom.delivery.adapter import ProviderClient, ProviderSession
from mailroom.errors import NotSent, OutcomeUnknown
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry
from mailroom.providers.signalwire.sender import SignalWire
from mailroom.providers.telnyx.sender import Telnyx
from mailroom.providers.twilio.account import TwilioAccount
from mailroom.providers.twilio.sender import TwilioSms
from tests.support.acme.provider.sender import AcmeSms
from tests.support.unit import resend_mail
from tests.support.unit.fax import fax_sender_at
from tests.support.unit.scripted_server import Answer, Break, Step, closed, scripted
from tests.support.unit.shared import NOW, mail
from tests.support.unit.sms import REQUEST, sms_settings

FAX = FaxRequest("+15555550100", "+15555550199", "https://example.com/a.pdf", "ref")
PRIVATE = "+15555550100"
ADDRESS = "ada.lovelace@example.com"
Submit = Callable[[str], Outcome]
"""Function that submits a message to a server with this URL."""


def session(provider: str, client: ProviderClient[Any]) -> ProviderSession[Any, Any]:
    """Return a session of a client. Its adapter has only what a submit uses."""
    adapter: Any = SimpleNamespace(provider=provider, forget=lambda: None)
    return ProviderSession(adapter, client)


def twilio_client(url: str) -> TwilioSms:
    return TwilioSms(TwilioAccount("AC1", "token"), sms_settings(sms_base_url=url))


def signalwire(url: str) -> SignalWire:
    return SignalWire("p-1", "token", fax_sender_at(url))


def telnyx(url: str) -> Telnyx:
    return Telnyx("key", fax_sender_at(url))


def outcome_at_resend(url: str) -> Outcome:
    sender = resend_mail.resend_adapter(url)
    return sender.open().submit(sender.prepare(mail()))


@dataclass(frozen=True)
class Client:
    """A client, and the form of its provider's responses."""

    submit: Submit
    title: str
    error: Callable[[Any, str], Any]
    """Function that returns the body of an error with this code and these words."""
    own: Any
    """Code that means that the message itself is at fault."""
    unclear: tuple[Answer, ...]
    """Responses that leave the outcome unknown, besides those that do so at any provider."""
    private: str = PRIVATE
    """Text in a provider's words that no log may have."""


def coded(code: Any, words: str) -> Any:
    return {"code": code, "message": words}


CLIENTS = {
    "twilio": Client(
        lambda url: session("twilio", twilio_client(url)).submit(REQUEST),
        "Twilio",
        coded,
        21211,
        unclear=(
            *(Answer(status, coded(21211, "proves nothing")) for status in (408, 500)),
            Answer(503, coded(20429, "proves nothing")),
            *(Answer(202, {"sid": "SM1"}), Answer(201, {"status": "queued"})),
        ),
    ),
    "resend": Client(
        outcome_at_resend,
        "Resend",
        lambda name, words: {"name": name, "message": words},
        "invalid_attachment",
        unclear=(Answer(409, {"name": "concurrent_idempotent_requests", "message": "no"}),),
        private=ADDRESS,
    ),
    "signalwire": Client(
        lambda url: session("signalwire", signalwire(url)).submit(FAX),
        "SignalWire",
        coded,
        "21211",
        unclear=(Answer(201, {"status": "queued"}),),
    ),
    "telnyx": Client(
        lambda url: session("telnyx", telnyx(url)).submit(FAX),
        "Telnyx",
        lambda code, words: {"errors": [{"code": code, "detail": words, "source": {"pointer": "/to"}}]},
        "10016",
        unclear=(Answer(202, {"data": []}), Answer(202, {"data": {"status": "queued"}})),
    ),
    "acme": Client(
        lambda url: session("acme", AcmeSms(url, "token", "SHOP", 5)).submit(REQUEST), "Acme", coded, None, ()
    ),
}
NOTHING: tuple[Step, ...] = (
    *(Answer(500, {}), Answer(503, b"<html>"), Answer(408, {}), Answer(302, {}), Break()),
    *(Answer(200, b"<html>"), Answer(201, b""), Answer(201, {})),
)
"""Steps of a server that leave the outcome unknown at any provider."""
QUESTIONS: dict[str, Callable[[str], object]] = {
    "twilio's list": lambda url: twilio_client(url).find(REQUEST, NOW, ()),
    "signalwire's list": lambda url: signalwire(url).find(FAX.to, FAX.reference, NOW, ()),
    "telnyx's list": lambda url: telnyx(url).find(FAX.to, FAX.reference, NOW, ()),
    "signalwire's fax": lambda url: signalwire(url).fetch("fax-1"),
    "telnyx's fax": lambda url: telnyx(url).fetch("fax-1"),
}
"""Functions that ask the API at a URL about earlier messages."""
every = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
every_question = pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)


def outcome_of_one_request(client: Client, step: Step) -> Outcome:
    """Submit a message to a server that responds by `step`, and return the outcome of the one request."""
    with scripted(step) as server:
        try:
            return client.submit(server.url)
        finally:
            assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("client", "step"),
    [(client, step) for client in CLIENTS.values() for step in (*NOTHING, *client.unclear)],
)
def test_a_submit_without_a_clear_response_has_an_unknown_outcome_and_is_not_repeated(
    client: Client, step: Step
) -> None:
    with pytest.raises(OutcomeUnknown):
        outcome_of_one_request(client, step)


@every
def test_a_message_is_to_be_retried_if_its_provider_cannot_be_reached(client: Client) -> None:
    assert client.submit(closed()) == Retry(f"{client.title.lower()} cannot be reached: Connection refused")


@every
def test_a_throttled_message_waits_as_long_as_the_provider_requests(client: Client) -> None:
    for headers in ({"Retry-After": "7"}, {"x-ratelimit-reset": "7"}):
        outcome = outcome_of_one_request(
            client, Answer(429, client.error(99999, "Too many requests"), headers)
        )
        assert isinstance(outcome, Retry)
        assert outcome.after == 7


@every
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_providers_refusal_without_a_known_error_code_is_a_misconfiguration(
    client: Client, status: int
) -> None:
    bodies: list[Any] = [client.error("99999", "no"), client.error(True, "no"), b"<html>", b"", []]
    for body in (*bodies, {"errors": "?"}):
        assert isinstance(outcome_of_one_request(client, Answer(status, body)), Misconfigured)


@every
def test_the_reason_of_a_refusal_quotes_the_response_without_phone_numbers_and_addresses(
    client: Client,
) -> None:
    outcome = outcome_of_one_request(
        client, Answer(422, client.error(client.own, f"{client.private} is invalid"))
    )
    if client.own is None:
        assert isinstance(outcome, Misconfigured)
        return
    assert isinstance(outcome, Rejected)
    assert outcome.reason.startswith(f"{client.title} answered 422")
    assert "is invalid" in outcome.reason
    assert client.private not in outcome.reason


@every
def test_the_reason_of_an_unknown_outcome_hides_phone_numbers_and_addresses(client: Client) -> None:
    with pytest.raises(OutcomeUnknown) as unknown:
        outcome_of_one_request(client, Answer(500, client.error(client.own, f"about {client.private}")))
    assert client.private not in str(unknown.value)


@every_question
@pytest.mark.parametrize(
    "step", [Answer(401), Answer(404), Answer(500), Answer(200, b"?"), Answer(200, {}), Break()]
)
def test_a_failed_look_up_of_a_message_raises_an_error_that_leaves_its_outcome_unknown(
    question: Callable[[str], object], step: Step
) -> None:
    with scripted(step) as server, pytest.raises(OutcomeUnknown):
        question(server.url)


@every_question
def test_a_look_up_of_a_message_without_a_connection_to_its_provider_raises_an_error(
    question: Callable[[str], object],
) -> None:
    with pytest.raises(NotSent):
        question(closed())


@every_question
def test_the_error_of_a_failed_look_up_of_a_message_hides_phone_numbers(
    question: Callable[[str], object],
) -> None:
    words = f"about {PRIVATE}"
    body = {"code": "1", "message": words, "errors": [{"code": "1", "detail": words}]}
    with scripted(Answer(500, body)) as server, pytest.raises(OutcomeUnknown, match="about") as unknown:
        question(server.url)
    assert PRIVATE[3:] not in str(unknown.value)
