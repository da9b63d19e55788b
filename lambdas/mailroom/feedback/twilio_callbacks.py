"""Takes Twilio's status callbacks, and the texts that people send to our numbers: what is signed goes into
the feedback queue, everything else nowhere.

The rules of the signature: "Webhooks security" in Twilio's usage guide. A callback that was captured cannot
be turned against another message, for the URL is signed and names the message. Posted again to its own URL it
is taken again and changes nothing, like any event that comes twice. Nor does a text: its time is asked of
Twilio, by the id that is signed.

Of texts only STOP and START go on, as that word; nobody here reads what else people write.
"""

import hmac
import re
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlparse

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct
from twilio.request_validator import RequestValidator, add_port, remove_port

from mailroom.aws import clients
from mailroom.aws.secret import CachedSecret
from mailroom.channels.provider import Unconfigured
from mailroom.channels.sms.twilio_account import TwilioAccount, account_of
from mailroom.clock import Clock, milliseconds
from mailroom.environment import TwilioCallbacksSettings
from mailroom.errors import Malformed, Unsendable
from mailroom.feedback import keywords
from mailroom.feedback.keywords import Keywords, Wish
from mailroom.feedback.twilio import SOURCE
from mailroom.feedback.values import word
from mailroom.http import event as http_event
from mailroom.http.event import HttpError
from mailroom.http.https import NotSent, Unclear
from mailroom.http.provider import ProviderApi, body_of, epoch, text_of
from mailroom.message.message import Reference, encode
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

SECRET_SECONDS = 30
"""Twilio signs with a new auth token from one moment to the next."""
KEPT = ("MessageSid", "MessageStatus", "ErrorCode", "To", "From", "RawDlrDoneDate")
"""The fields that go on: never a message's text."""

INBOUND_PATH = "/twilio/inbound"
NO_ANSWER = {
    "statusCode": 200,
    "headers": {"content-type": "text/xml"},
    "body": "<Response></Response>",
}
"""How Twilio is told to send nothing back: "Messaging Webhooks" in its usage guide."""
LOOK_UP_SECONDS = 4.0
"""Twilio waits 15 s for our answer."""

MAX_BODY_BYTES = 64 * 1024
"""A callback has less than 1 KB, a text 1,600 characters."""
MAX_FIELDS = 100
"""A callback has some twenty."""
FORM = "application/x-www-form-urlencoded"
_PATH = re.compile(r"/callbacks/twilio/([A-Za-z0-9_.-]{1,256})", re.ASCII)
_SID = re.compile(r"[A-Za-z0-9]{34}", re.ASCII)
_QUERY = re.compile(r"[!-~]*", re.ASCII)
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+", re.ASCII)


class CallbackRequest(http_event.HttpRequest, frozen=True, kw_only=True, rename="camel"):
    """What a request says, nothing of which is proved. The API hands the path on decoded; no path that is
    taken here has anything to decode."""

    raw_path: str
    raw_query_string: str = ""

    @property
    def reference(self) -> Reference | None:
        """The message that a callback is about; None: it is a text to us. Raises HttpError with 404 for a
        path of neither."""
        if self.raw_path == INBOUND_PATH:
            return None
        found = _PATH.fullmatch(self.raw_path)
        try:
            return Reference.read(found[1] if found else "")
        except Malformed:
            raise HttpError(404, "the path names no message") from None

    @property
    def path(self) -> str:
        """Path and query as they were signed. Raises HttpError with 400 for a query that no URL has."""
        if not _QUERY.fullmatch(self.raw_query_string):
            raise HttpError(400, "the query is not printable ASCII")
        return f"{self.raw_path}?{self.raw_query_string}" if self.raw_query_string else self.raw_path

    @property
    def host(self) -> str:
        """Not the request's own word but API Gateway's, who found this API by it; "": it names none."""
        # What is signed is one text, without marks between its parts: nothing but a name may pass for one.
        name = self.request_context.domain_name or ""
        return name if _HOST.fullmatch(name) else ""

    def fields(self) -> dict[str, str]:
        """What was posted. Raises HttpError: 415 no form, 413 too large, 400 one that cannot be read."""
        if self.media_type != FORM:
            raise HttpError(415, "not a form")
        fields = http_event.unique(http_event.urlencoded(self.text(MAX_BODY_BYTES), MAX_FIELDS))
        try:
            "".join(f"{name}{value}" for name, value in fields.items()).encode()
        except ValueError:  # characters that UTF-8 has none for: no signature is made of them
            raise HttpError(400, "the form cannot be read") from None
        return fields


class SentTimeUnknown(RuntimeError):
    """Twilio did not say when a text was sent."""


def message_created(account: TwilioAccount, base_url: str, sid: str) -> float:
    """When Twilio made a message, in whole epoch seconds. Raises NotSent, Unclear or Unsendable."""
    login = b64encode(":".join(account.login).encode()).decode()
    api = ProviderApi(LOOK_UP_SECONDS, {"Authorization": f"Basic {login}"})
    owner = quote(account.account_sid, safe="")
    answer = api.get(f"{base_url.rstrip('/')}/2010-04-01/Accounts/{owner}/Messages/{sid}.json")
    if answer.status != 200:
        raise Unclear(f"Twilio answered {answer.status}")
    return epoch(text_of(body_of(answer.status, answer.text), "date_created"))


class TwilioCallbacks(Struct, frozen=True):
    """Answers the requests of an HTTP API (payload format 2.0)."""

    settings: TwilioCallbacksSettings
    secret: CachedSecret
    sqs: "SQSClient"
    clock: Clock = time.time
    created: Callable[[TwilioAccount, str, str], float] = message_created

    @classmethod
    def of(cls, settings: TwilioCallbacksSettings) -> "TwilioCallbacks":
        """What a function's settings describe."""
        secret = CachedSecret(clients.secretsmanager(), settings.twilio_secret_arn, time.time, SECRET_SECONDS)
        return cls(settings, secret, clients.sqs())

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The response: 204 once the callback is in the queue; for a text to us, that nothing is to be sent
        back. A refusal has no body.

        500 and 503 say that the fault is ours: after these Twilio tries again, a few times within 15 s, as
        the sender asks it to, and the URL that it has for texts.
        """
        try:
            request = http_event.read(event, CallbackRequest)
            reference, path, fields = request.reference, request.path, request.fields()
            account = self._check(request, path, fields)
            if reference is None:
                self._take_text(fields, account)
                return NO_ANSWER
            self._send(reference, fields)
        except HttpError as fault:
            logger.warning("callback refused", status=fault.status, reason=str(fault))
            count("TwilioCallbacksRefused")
            return {"statusCode": fault.status}
        except Unconfigured as fault:
            logger.error("callbacks cannot be checked", reason=str(fault))
            return _failed(500)
        except SentTimeUnknown as fault:
            logger.error("a START is refused: Twilio does not say when it was sent", reason=str(fault))
            return _failed(503)
        except (ClientError, BotoCoreError) as error:
            logger.error("callback not queued", error=str(error))
            return _failed(503)
        return {"statusCode": 204}

    def _check(self, request: CallbackRequest, path: str, fields: dict[str, str]) -> TwilioAccount:
        """Our account. Raises HttpError for what Twilio has not signed, or signed for another account."""
        account = self._account()
        validator = RequestValidator(account.auth_token)
        signature = request.header("x-twilio-signature").encode("utf-8", "replace")
        # All are always compared, and in constant time.
        matches = [
            hmac.compare_digest(validator.compute_signature(origin + path, fields).encode(), signature)
            for origin in (*_origins(self.settings.public_url), *_own_origins(request))
        ]
        if not any(matches):
            raise HttpError(403, "the signature is missing or wrong")
        if fields.get("AccountSid") != account.account_sid:
            raise HttpError(403, "it is about another account")
        return account

    def _account(self) -> TwilioAccount:
        try:
            return account_of(self.secret.current().text)
        except (ClientError, BotoCoreError, LookupError) as error:
            raise Unconfigured(f"Twilio's secret cannot be read: {error}; let the function read it") from None

    def _take_text(self, fields: Mapping[str, str], account: TwilioAccount) -> None:
        """Queue STOP or START. Raises HttpError if it is no text, SentTimeUnknown and botocore's errors."""
        sid, number, sent_to = (fields.get(name, "") for name in ("MessageSid", "From", "To"))
        # A STOP without a number goes on too: it becomes a dead letter, and is not lost.
        if not (_SID.fullmatch(sid) and sent_to):
            raise HttpError(400, "signed, but without MessageSid or To")
        # The type is what a Messaging Service with words of its own (Advanced Opt-Out) takes the text for.
        words = Keywords.of(self.settings.stop_words, self.settings.start_words)
        wish = words.wish(fields.get("Body", ""), fields.get("OptOutType", ""))
        if wish is None:
            return
        at = self._sent_at(account, sid, wish)
        text = {"source": keywords.SOURCE, "number": number, "sent_to": sent_to, "wish": wish, "at": at}
        self.sqs.send_message(QueueUrl=self.settings.feedback_queue_url, MessageBody=encode(text))
        logger.info("text taken", message_sid=sid, wish=wish)

    def _sent_at(self, account: TwilioAccount, sid: str, wish: Wish) -> int:
        """When a text was sent, in epoch milliseconds. Twilio counts seconds: a STOP is of the last moment of
        its second and a START of the first. Where Twilio cannot say, a STOP is of now. A START is refused: it
        might be an old one, posted again after a later STOP. Raises SentTimeUnknown."""
        try:
            second = int(self.created(account, self.settings.sms_base_url, sid)) * 1000
        except (NotSent, Unclear, Unsendable) as trouble:
            if wish == "start":
                raise SentTimeUnknown(str(trouble)) from None
            logger.warning("a STOP counts as of now: Twilio does not say its time", reason=str(trouble))
            return milliseconds(self.clock())
        return second + 999 if wish == "stop" else second

    def _send(self, reference: Reference, said: Mapping[str, str]) -> None:
        """Raises HttpError for a callback without a status, and botocore's errors."""
        fields = {name: said[name] for name in KEPT if said.get(name)}
        if not {"MessageSid", "MessageStatus"} <= fields.keys():
            raise HttpError(400, "signed, but without MessageSid or MessageStatus")
        callback = {
            "source": SOURCE,
            "reference": reference.text,
            "received_at": milliseconds(self.clock()),
            "fields": fields,
        }
        self.sqs.send_message(QueueUrl=self.settings.feedback_queue_url, MessageBody=encode(callback))
        logger.info(
            "callback taken",
            id=reference.id,
            event_type="sms",
            message_sid=word(fields["MessageSid"]),
            message_status=word(fields["MessageStatus"]),
        )
        count("TwilioCallbacks")


def _origins(url: str) -> tuple[str, str]:
    """A URL's origin without a port and with one, as in Twilio's own library: either may have been signed."""
    parsed = urlparse(url)
    return remove_port(parsed), add_port(parsed)


def _own_origins(request: CallbackRequest) -> tuple[str, ...]:
    """The origins of the host by which the callback came to this API.

    A message that was sent before the stage's public URL became another one has its callbacks signed for the
    API's own host. API Gateway finds the API by this name, so it is the API's own or a custom domain of
    it, whatever the headers say; and without the token a signature for it proves nothing.
    """
    return _origins(f"https://{request.host}") if request.host else ()


def _failed(status: int) -> dict[str, Any]:
    count("TwilioCallbacksFailed")
    return {"statusCode": status}
