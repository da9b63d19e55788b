"""Status callbacks as Twilio posts them and as the HTTP API hands them on."""

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from twilio.request_validator import RequestValidator

from mailroom.environment import TwilioCallbacksSettings
from mailroom.message.message import Reference
from mailroom.providers.twilio.account import TwilioAccount
from mailroom.providers.twilio.callbacks import NO_ANSWER, TwilioCallbacks
from tests.support.unit.feedback_words import NUMBER, OURS, SID
from tests.support.unit.webhooks import ARN, Secrets, cached_secret

ACCOUNT = f"AC{'fedcba9876543210' * 2}"
TOKEN = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
SECRET = f'{{"account_sid": "{ACCOUNT}", "auth_token": "{TOKEN}"}}'
PUBLIC_URL = "https://api.mailroom.example"
PATH = f"/callbacks/twilio/{Reference('s-1').text}"
FORM = "application/x-www-form-urlencoded; charset=UTF-8"
FIELDS = {
    "SmsSid": SID,
    "SmsStatus": "delivered",
    "MessageStatus": "delivered",
    "To": NUMBER,
    "MessageSid": SID,
    "AccountSid": ACCOUNT,
    "From": "+12025550123",
    "ApiVersion": "2010-04-01",
    "RawDlrDoneDate": "2611210859",
}


def sign(url: str, fields: dict[str, str], token: str = TOKEN) -> str:
    """Return the value that Twilio writes into X-Twilio-Signature."""
    return str(RequestValidator(token).compute_signature(url, fields))


def callback_request(
    fields: dict[str, str] | None = None,
    *,
    path: str = PATH,
    query: str = "",
    signature: str | None = None,
    body: str | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A request in payload format 2.0, signed as Twilio signs unless `signature` says otherwise."""
    fields = FIELDS if fields is None else fields
    url = PUBLIC_URL + path + (f"?{query}" if query else "")
    event = {
        "version": "2.0",
        "routeKey": "POST /callbacks/twilio/{reference}",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {
            "content-type": FORM,
            "host": "api.mailroom.example",
            "i-twilio-idempotency-token": "d3b4c5a6-0f1e-4d3c-8b5a-697887960504",
            "user-agent": "TwilioProxy/1.1",
            "x-twilio-signature": sign(url, fields) if signature is None else signature,
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api1234567",
            "domainName": "api.mailroom.example",
            "http": {"method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
            "requestId": "request-1",
            "stage": "$default",
            "timeEpoch": 1795251600000,
        },
        "pathParameters": {"reference": path.rpartition("/")[2]},
        "body": base64.b64encode((urlencode(fields) if body is None else body).encode()).decode(),
        "isBase64Encoded": True,
    }
    return {**event, **changes}


def signed_headers(**changes: str | None) -> dict[str, str]:
    """The headers of a signed request; None takes one away."""
    known = {
        **callback_request()["headers"],
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    return {name: value for name, value in known.items() if value is not None}


def inbound_text(
    body: str = "STOP", sid: str = SID, fields: Mapping[str, Any] = MappingProxyType({}), **changes: Any
) -> dict[str, Any]:
    """A text to one of our numbers, as Twilio posts it. `fields` add to those of its documentation; `...`
    takes a field away."""
    documented = {
        "ToCountry": "US",
        "ToState": "DC",
        "SmsMessageSid": sid,
        "NumMedia": "0",
        "ToCity": "",
        "FromZip": "02101",
        "SmsSid": sid,
        "FromState": "MA",
        "SmsStatus": "received",
        "FromCity": "BOSTON",
        "Body": body,
        "FromCountry": "US",
        "To": OURS,
        "ToZip": "",
        "NumSegments": "1",
        "MessageSid": sid,
        "AccountSid": ACCOUNT,
        "From": NUMBER,
        "ApiVersion": "2010-04-01",
    }
    said = {name: value for name, value in {**documented, **fields}.items() if value is not ...}
    return callback_request(said, path="/twilio/inbound", **changes)


class Queue:
    """SQS as a client: keeps what is sent, or fails."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.trouble: Exception | None = None

    def send_message(self, *, QueueUrl: str, MessageBody: str) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == "https://sqs/feedback"
        if self.trouble is not None:
            raise self.trouble
        self.bodies.append(MessageBody)
        return {}


class CallbacksDoor:
    """The callbacks' function with a secret, a queue and a clock of its own."""

    def __init__(self, clock: Any, text: str = SECRET, public_url: str = PUBLIC_URL) -> None:
        settings = TwilioCallbacksSettings(
            twilio_secret_arn=ARN,
            public_url=public_url,
            feedback_queue_url="https://sqs/feedback",
            sms_base_url="https://twilio.example",
            stop_words=["arrêt"],
            start_words=["oui"],
        )
        self.secrets, self.queue = Secrets(text), Queue()
        kept = cached_secret(self.secrets, clock, 30)
        self.created: dict[str, float | Exception] = {}
        """Return Twilio's response about a text by its id: with its creation time, or without it."""
        self._callbacks = TwilioCallbacks(settings, kept, self.queue, clock, self._created)  # type: ignore[arg-type]

    def answers(self, event: Any) -> int:
        reply = self._callbacks.answer(event)
        # Twilio gets only the status, and the sender of a text gets no reply.
        assert reply.keys() == {"statusCode"} or reply == NO_ANSWER
        return int(reply["statusCode"])

    def _created(self, account: TwilioAccount, base_url: str, sid: str) -> float:
        assert (account.account_sid, base_url) == (ACCOUNT, "https://twilio.example")
        found = self.created[sid]
        if isinstance(found, Exception):
            raise found
        return found
