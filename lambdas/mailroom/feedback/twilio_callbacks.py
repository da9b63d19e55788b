"""Takes Twilio's status callbacks: what is signed goes into the feedback queue, everything else nowhere.

The rules of the signature: "Webhooks security" in Twilio's usage guide. A callback that was captured cannot
be turned against another message, for the URL is signed and names the message. Posted again to its own URL it
is taken again and changes nothing, like any event that comes twice.
"""

import hmac
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from botocore.exceptions import BotoCoreError, ClientError
from twilio.request_validator import RequestValidator, add_port, remove_port

from mailroom.aws import clients
from mailroom.aws.secret import Secret
from mailroom.channels.provider import Unconfigured
from mailroom.channels.sms.twilio_account import TwilioAccount, account_of
from mailroom.clock import Clock, milliseconds
from mailroom.environment import TwilioCallbacks as Settings
from mailroom.feedback.bounded import word
from mailroom.feedback.twilio_request import Said, read
from mailroom.feedback.twilio_status import SOURCE
from mailroom.http.event import Refused
from mailroom.message.body import encode
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

SECRET_SECONDS = 30
"""Twilio signs with a new auth token from one moment to the next."""
KEPT = ("MessageSid", "MessageStatus", "ErrorCode", "To", "RawDlrDoneDate")
"""The fields that go on: never a message's text."""


class TwilioCallbacks:
    """Answers the requests of an HTTP API (payload format 2.0)."""

    def __init__(
        self, settings: Settings, secret: Secret, sqs: "SQSClient", clock: Clock = time.time
    ) -> None:
        self._secret = secret
        self._sqs = sqs
        self._queue_url = settings.feedback_queue_url
        self._clock = clock
        self._origins = _origins(settings.public_url)

    @classmethod
    def of(cls, settings: Settings) -> "TwilioCallbacks":
        """What a function's settings describe."""
        secret = Secret(clients.secretsmanager(), settings.twilio_secret_arn, time.time, SECRET_SECONDS)
        return cls(settings, secret, clients.sqs())

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The response: 204 once the callback lies in the queue; who is refused is told nothing but that.

        500 and 503 say that the fault is ours: after these Twilio tries again, a few times within 15 s, as
        the sender asks it to.
        """
        try:
            said = read(event)
            self._check(said)
            self._send(said)
        except Refused as fault:
            logger.warning("callback refused", status=fault.status, reason=str(fault))
            count("TwilioCallbacksRefused")
            return {"statusCode": fault.status}
        except Unconfigured as fault:
            logger.error("callbacks cannot be checked", reason=str(fault))
            return _failed(500)
        except (ClientError, BotoCoreError) as error:
            logger.error("callback not queued", error=str(error))
            return _failed(503)
        return {"statusCode": 204}

    def _check(self, said: Said) -> None:
        """Raise Refused for what Twilio has not signed, or signed for another account."""
        account = self._account()
        validator = RequestValidator(account.auth_token)
        signature = said.signature.encode("utf-8", "replace")
        # All are always compared, and in constant time.
        matches = [
            hmac.compare_digest(
                validator.compute_signature(origin + said.path, said.fields).encode(), signature
            )
            for origin in (*self._origins, *_own_origins(said))
        ]
        if not any(matches):
            raise Refused(403, "the signature is missing or wrong")
        if said.fields.get("AccountSid") != account.account_sid:
            raise Refused(403, "it is about another account")

    def _account(self) -> TwilioAccount:
        try:
            return account_of(self._secret.current().text)
        except (ClientError, BotoCoreError, LookupError) as error:
            raise Unconfigured(f"Twilio's secret cannot be read: {error}; let the function read it") from None

    def _send(self, said: Said) -> None:
        """Raises Refused for one that tells nothing, and botocore's errors."""
        fields = {name: said.fields[name] for name in KEPT if said.fields.get(name)}
        if not {"MessageSid", "MessageStatus"} <= fields.keys():
            raise Refused(400, "signed, but without MessageSid or MessageStatus")
        callback = {
            "source": SOURCE,
            "reference": said.reference.text,
            "received_at": milliseconds(self._clock()),
            "fields": fields,
        }
        self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=encode(callback))
        logger.info(
            "callback taken",
            id=said.reference.id,
            event_type="sms",
            message_sid=word(fields["MessageSid"]),
            message_status=word(fields["MessageStatus"]),
        )
        count("TwilioCallbacks")


def _origins(url: str) -> tuple[str, str]:
    """As Twilio's own library does, without a port and with one: which of the two was signed has differed."""
    parsed = urlparse(url)
    return remove_port(parsed), add_port(parsed)


def _own_origins(said: Said) -> tuple[str, ...]:
    """Those of the host by which the callback came to this API.

    A message that was sent before the stage's public URL became another one has its callbacks signed for the
    API's own host. API Gateway finds the API by this name, so none but the API's own or a custom domain of
    it can stand here, whatever the headers say; and it opens to nobody without the token.
    """
    return _origins(f"https://{said.host}") if said.host else ()


def _failed(status: int) -> dict[str, Any]:
    count("TwilioCallbacksFailed")
    return {"statusCode": status}
