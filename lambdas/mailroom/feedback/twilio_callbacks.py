"""Receives Twilio's status callbacks and the texts that people send to the stage's numbers. Requests with a
valid signature go into the feedback queue; the function refuses the others.

Source of the signature's rules: "Webhooks security" in Twilio's usage guide. The signature covers the URL,
which names the message, so a captured callback cannot be used for another message. A callback posted again
changes as little as an event that arrives twice. Neither does a text posted again: Twilio's API returns its
time, by the id that the signature covers.

STOP and START are queued as that word. Other texts are ignored, and no text's content is stored.
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
from mailroom.channels.sms.twilio_account import TwilioAccount, account_of
from mailroom.clock import Clock, milliseconds
from mailroom.environment import TwilioCallbacksSettings
from mailroom.errors import HttpError, InvalidSecret, Malformed, OutcomeUnknown, RequestFailed
from mailroom.feedback import keywords
from mailroom.feedback.keywords import Keywords, Wish
from mailroom.feedback.twilio import SOURCE
from mailroom.feedback.values import word
from mailroom.http import event as http_event
from mailroom.http.provider import ProviderApi, body_of, epoch, text_of
from mailroom.message.message import Reference, encode
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

SECRET_SECONDS = 30
"""Seconds for which the secret is cached. Twilio signs with a new auth token at once, so callbacks may be
refused for that long after a change."""
CALLBACK_FIELDS = ("MessageSid", "MessageStatus", "ErrorCode", "To", "From", "RawDlrDoneDate")
"""Fields of a status callback that are queued. A message's text is not among them."""

INBOUND_PATH = "/twilio/inbound"
NO_ANSWER = {
    "statusCode": 200,
    "headers": {"content-type": "text/xml"},
    "body": "<Response></Response>",
}
"""Response to a text, with which Twilio sends no reply. Source: "Messaging Webhooks" in Twilio's usage
guide."""
LOOK_UP_SECONDS = 4.0
"""Time-out of the look-up of a text's time. Twilio waits 15 s for the function's response."""

MAX_BODY_BYTES = 64 * 1024
"""Limit of a request's body. A callback has less than 1 KB, a text 1,600 characters."""
MAX_FIELDS = 100
"""Limit of a form's fields. A callback has some twenty."""
FORM = "application/x-www-form-urlencoded"
_PATH = re.compile(r"/callbacks/twilio/([A-Za-z0-9_.-]{1,256})", re.ASCII)
_SID = re.compile(r"[A-Za-z0-9]{34}", re.ASCII)
_QUERY = re.compile(r"[!-~]*", re.ASCII)
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+", re.ASCII)


class CallbackRequest(http_event.HttpRequest, frozen=True, kw_only=True, rename="camel"):
    """A request whose signature has not been verified yet.

    API Gateway percent-decodes the path; the paths of this API do not contain encoded characters.
    """

    raw_path: str
    raw_query_string: str = ""

    @property
    def reference(self) -> Reference | None:
        """Reference of the message that a callback is about, or None if the request brings a text. Raises
        HttpError with 404 for other paths."""
        if self.raw_path == INBOUND_PATH:
            return None
        match = _PATH.fullmatch(self.raw_path)
        try:
            return Reference.read(match[1] if match else "")
        except Malformed:
            raise HttpError(404, "the path names no message") from None

    @property
    def path(self) -> str:
        """Path and query, as Twilio signed them. Raises HttpError with 400 if the query is invalid in a
        URL."""
        if not _QUERY.fullmatch(self.raw_query_string):
            raise HttpError(400, "the query is not printable ASCII")
        return f"{self.raw_path}?{self.raw_query_string}" if self.raw_query_string else self.raw_path

    @property
    def host(self) -> str:
        """Host by which API Gateway found this API, empty if it is invalid as a host. API Gateway sets it,
        not the sender of the request."""
        # Twilio signs URL and fields as one text without separators. A host with other characters could shift
        # the border between them.
        name = self.request_context.domain_name or ""
        return name if _HOST.fullmatch(name) else ""

    def fields(self) -> dict[str, str]:
        """Return the form's fields. Raises HttpError: 415 if the body is not a form, 413 if it is too large,
        400 if it is malformed."""
        if self.media_type != FORM:
            raise HttpError(415, "not a form")
        fields = http_event.unique(http_event.urlencoded(self.text(MAX_BODY_BYTES), MAX_FIELDS))
        try:
            "".join(f"{name}{value}" for name, value in fields.items()).encode()
        except ValueError:  # lone surrogates, which UTF-8 cannot encode, so that a signature is impossible
            raise HttpError(400, "the form cannot be read") from None
        return fields


def message_created(account: TwilioAccount, base_url: str, sid: str) -> float:
    """Ask Twilio's API when a message was created, in whole epoch seconds. Raises
    RequestFailed."""
    login = b64encode(":".join(account.login).encode()).decode()
    api = ProviderApi(LOOK_UP_SECONDS, {"Authorization": f"Basic {login}"})
    owner = quote(account.account_sid, safe="")
    response = api.get(f"{base_url.rstrip('/')}/2010-04-01/Accounts/{owner}/Messages/{sid}.json")
    if response.status != 200:
        raise OutcomeUnknown(f"Twilio answered {response.status}")
    return epoch(text_of(body_of(response.status, response.text), "date_created"))


class TwilioCallbacks(Struct, frozen=True):
    """Handles the requests of an HTTP API (payload format 2.0)."""

    settings: TwilioCallbacksSettings
    secret: CachedSecret
    sqs: "SQSClient"
    clock: Clock = time.time
    created: Callable[[TwilioAccount, str, str], float] = message_created

    @classmethod
    def of(cls, settings: TwilioCallbacksSettings) -> "TwilioCallbacks":
        """Create the handler from the settings of the function `twilio_callbacks`."""
        secret = CachedSecret(clients.secretsmanager(), settings.twilio_secret_arn, time.time, SECRET_SECONDS)
        return cls(settings, secret, clients.sqs())

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Handle a request, and return the response: 204 when a callback is in the queue, NO_ANSWER for a
        text, otherwise an error's status without a body.

        500 and 503 are faults of the stage. Twilio then retries a few times within 15 s, as the sender's
        callback URL and the configured URL for texts request.
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
        except InvalidSecret as fault:
            logger.error("callbacks cannot be checked", reason=str(fault))
            return _failed(500)
        except RequestFailed as fault:
            logger.error("a START is refused: Twilio does not say when it was sent", reason=str(fault))
            return _failed(503)
        except (ClientError, BotoCoreError) as error:
            logger.error("callback not queued", error=str(error))
            return _failed(503)
        return {"statusCode": 204}

    def _check(self, request: CallbackRequest, path: str, fields: dict[str, str]) -> TwilioAccount:
        """Verify the signature, and return the stage's account. Raises HttpError with 403, or
        InvalidSecret."""
        account = self._account()
        validator = RequestValidator(account.auth_token)
        signature = request.header("x-twilio-signature").encode("utf-8", "replace")
        # A list, not a generator: every origin is compared, so that the time does not depend on the match.
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
            raise InvalidSecret(
                f"Twilio's secret cannot be read: {error}; let the function read it"
            ) from None

    def _take_text(self, fields: Mapping[str, str], account: TwilioAccount) -> None:
        """Put a STOP or START into the queue; other texts are ignored. Raises HttpError with 400,
        RequestFailed or botocore's errors."""
        sid, number, sent_to = (fields.get(name, "") for name in ("MessageSid", "From", "To"))
        # A STOP without the sender's number is queued too: as a dead letter it reaches a person.
        if not (_SID.fullmatch(sid) and sent_to):
            raise HttpError(400, "signed, but without MessageSid or To")
        # Twilio sets OptOutType if its Messaging Service has keywords of its own (Advanced Opt-Out).
        words = Keywords.of(self.settings.stop_words, self.settings.start_words)
        wish = words.wish(fields.get("Body", ""), fields.get("OptOutType", ""))
        if wish is None:
            return
        sent_ms = self._sent_ms(account, sid, wish)
        text = {"source": keywords.SOURCE, "number": number, "sent_to": sent_to, "wish": wish, "at": sent_ms}
        self.sqs.send_message(QueueUrl=self.settings.feedback_queue_url, MessageBody=encode(text))
        logger.info("text taken", message_sid=sid, wish=wish)

    def _sent_ms(self, account: TwilioAccount, sid: str, wish: Wish) -> int:
        """Return when a text was sent, in epoch milliseconds.

        Twilio has whole seconds: a STOP counts as sent in the last millisecond of its second, a START in the
        first. If Twilio's API fails, a STOP counts as sent at this moment. A START then raises
        RequestFailed, because it may be an old text, posted again after a later STOP.
        """
        try:
            second = int(self.created(account, self.settings.sms_base_url, sid)) * 1000
        except RequestFailed as error:
            if wish == "start":
                raise
            logger.warning("a STOP counts as of now: Twilio does not say its time", reason=str(error))
            return milliseconds(self.clock())
        return second + 999 if wish == "stop" else second

    def _send(self, reference: Reference, form: Mapping[str, str]) -> None:
        """Put a status callback into the queue. Raises HttpError with 400, or botocore's errors."""
        fields = {name: form[name] for name in CALLBACK_FIELDS if form.get(name)}
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
    """Return the URL's origin without a port and with a port. Twilio may have signed either, as its library
    shows."""
    parsed = urlparse(url)
    return remove_port(parsed), add_port(parsed)


def _own_origins(request: CallbackRequest) -> tuple[str, ...]:
    """Return the origins of the host by which API Gateway found this API.

    For a message sent before a change of the stage's public URL, Twilio signs the callbacks with the previous
    URL, which may be the API's own host. API Gateway finds the API by this name, so it is the API's host or
    one of its custom domains, whatever the headers contain. A forger would need the auth token for it too.
    """
    return _origins(f"https://{request.host}") if request.host else ()


def _failed(status: int) -> dict[str, Any]:
    count("TwilioCallbacksFailed")
    return {"statusCode": status}
