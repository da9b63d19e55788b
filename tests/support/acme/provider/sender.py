"""Client of the API of Acme."""

from collections.abc import Container

from mailroom import environment
from mailroom.channels.sms.contract import SmsRequest
from mailroom.delivery.adapter import credentials
from mailroom.environment import SmsSender
from mailroom.http.provider_api import ProviderApi, body_of, refusal, text_of
from mailroom.message.outcome import Evidence, Outcome, Sent, Unknowable


class AcmeSender(SmsSender, frozen=True, kw_only=True, rename="upper"):
    """Settings of a sender by Acme."""

    acme_url: str
    acme_secret_arn: str


class AcmeSms:
    """Client with one account's token."""

    account = "ours"

    def __init__(self, url: str, token: str, sender: str, seconds: float) -> None:
        self._url, self._sender = url, sender
        self._api = ProviderApi(seconds, {"Authorization": f"Bearer {token}"})

    @classmethod
    def of(cls, _settings: SmsSender) -> "AcmeSms":
        own = environment.read(AcmeSender)
        (token,) = credentials("Acme's secret", own.acme_secret_arn, "token")
        return cls(own.acme_url, token, own.sms_sender, own.submit_seconds)

    def submit(self, request: SmsRequest) -> Outcome:
        text = {"to": request.to, "from": self._sender, "text": request.text, "reference": request.reference}
        answer = self._api.post(f"{self._url}/texts", text)
        if answer.status == 201:
            return Sent(text_of(body_of(answer.status, answer.text), "id"), request.facts)
        return refusal(answer.status, answer.headers, f"Acme answered {answer.status}")

    def find(self, request: SmsRequest, since: float, other_ids: Container[str]) -> Evidence:
        return Unknowable()
