"""Receives Twilio's status callbacks, and the texts that people send to the stage's numbers. Verifies the
signatures, and puts the contents of valid requests into the feedback queue.

Source of the signature's rules: "Webhooks security" in Twilio's usage guide. The signature covers the URL,
which contains the message's reference, so a captured callback cannot be used for another message. A replay of
a captured callback is harmless, because an event that arrives twice changes the ledger only once. A replay of
a captured text is harmless too: the signature covers the text's id, and the time of the text is fetched from
Twilio's API by this id.

For a STOP or START, only the keyword is queued. All other texts are ignored, and their content is not stored.
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
from mailroom.clock import Clock, milliseconds
from mailroom.environment import TwilioCallbacksSettings
from mailroom.errors import HttpError, InvalidSecret, Malformed, OutcomeUnknown, RequestFailed
from mailroom.http import event as http_event
from mailroom.http.provider_api import ProviderApi, body_of, epoch, text_of
from mailroom.message.message import Reference, encode
from mailroom.providers.keywords import Keywords, Wish
from mailroom.providers.twilio.account import TwilioAccount, account_of
from mailroom.providers.twilio.events import SOURCE, TEXT_SOURCE
from mailroom.providers.values import word
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

SECRET_SECONDS = 30
"""Seconds for which Twilio's secret is cached. Twilio signs with a new auth token at once, so valid callbacks
may be refused for as many seconds after a change of the token."""
CALLBACK_FIELDS = ("MessageSid", "MessageStatus", "ErrorCode", "To", "From", "RawDlrDoneDate")
"""Fields of a status callback that are put into the queue. The message's text is not one of them."""

INBOUND_PATH = "/twilio/inbound"
NO_ANSWER = {
    "statusCode": 200,
    "headers": {"content-type": "text/xml"},
    "body": "<Response></Response>",
}
"""Response to a request that contains a person's text. After this response Twilio does not send a reply to
the person. Source: "Messaging Webhooks" in Twilio's usage guide."""
LOOK_UP_SECONDS = 4.0
"""Time-out in seconds for fetching a text's time from Twilio's API. Twilio waits 15 s for this function's
response."""

MAX_BODY_BYTES = 64 * 1024
"""Maximum number of bytes of a request's body. A callback has less than 1 KB, and a text has up to 1,600
characters."""
MAX_FIELDS = 100
"""Maximum number of form fields in a request. A callback has about twenty fields."""
FORM = "application/x-www-form-urlencoded"
_PATH = re.compile(r"/callbacks/twilio/([A-Za-z0-9_.-]{1,256})", re.ASCII)
_SID = re.compile(r"[A-Za-z0-9]{34}", re.ASCII)
_QUERY = re.compile(r"[!-~]*", re.ASCII)
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+", re.ASCII)


class CallbackRequest(http_event.HttpRequest, frozen=True, kw_only=True, rename="camel"):
    """A request whose signature has not been verified yet, so that it may be forged.

    API Gateway percent-decodes the path. This does not change valid requests, because the paths of this API
    do not contain encoded characters.
    """

    raw_path: str
    raw_query_string: str = ""

    @property
    def reference(self) -> Reference | None:
        """Reference in the path of a status callback, or None if the request contains a person's text. Raises
        HttpError with 404 for other paths."""
        if self.raw_path == INBOUND_PATH:
            return None
        match = _PATH.fullmatch(self.raw_path)
        try:
            return Reference.read(match[1] if match else "")
        except Malformed:
            raise HttpError(404, "the path does not contain a valid reference") from None

    @property
    def path(self) -> str:
        """Path and query, as Twilio signed them. Raises HttpError with 400 if the query has characters that
        are invalid in a URL."""
        if not _QUERY.fullmatch(self.raw_query_string):
            raise HttpError(400, "the query is not printable ASCII")
        return f"{self.raw_path}?{self.raw_query_string}" if self.raw_query_string else self.raw_path

    @property
    def host(self) -> str:
        """Host under which API Gateway received the request, or "" if the host is invalid. The value comes
        from API Gateway, so the sender of the request cannot forge it."""
        # Twilio signs the URL and the fields as one text without separators. With other characters in the
        # host, a part of the URL could be taken for a field.
        name = self.request_context.domain_name or ""
        return name if _HOST.fullmatch(name) else ""

    def fields(self) -> dict[str, str]:
        """Return the form fields in the body, by name. Raises HttpError with 415 if the body is not a form,
        413 if the body is too large, or 400 if the form is malformed."""
        if self.media_type != FORM:
            raise HttpError(415, "the body is not a form")
        fields = http_event.unique(http_event.urlencoded(self.text(MAX_BODY_BYTES), MAX_FIELDS))
        try:
            "".join(f"{name}{value}" for name, value in fields.items()).encode()
        except ValueError:  # lone surrogates: UTF-8 cannot encode them, so Twilio cannot have signed them
            raise HttpError(400, "the form is not valid UTF-8") from None
        return fields


def message_created(account: TwilioAccount, base_url: str, sid: str) -> float:
    """Fetch from Twilio's API the time at which a message was created, in whole epoch seconds. Raises
    RequestFailed."""
    login = b64encode(":".join(account.login).encode()).decode()
    api = ProviderApi(LOOK_UP_SECONDS, {"Authorization": f"Basic {login}"})
    owner = quote(account.account_sid, safe="")
    response = api.get(f"{base_url.rstrip('/')}/2010-04-01/Accounts/{owner}/Messages/{sid}.json")
    if response.status != 200:
        raise OutcomeUnknown(f"Twilio answered {response.status}")
    return epoch(text_of(body_of(response.status, response.text), "date_created"))


class TwilioCallbacks(Struct, frozen=True):
    """Handles requests of an API Gateway HTTP API (payload format 2.0)."""

    settings: TwilioCallbacksSettings
    secret: CachedSecret
    sqs: "SQSClient"
    clock: Clock = time.time
    created: Callable[[TwilioAccount, str, str], float] = message_created

    @classmethod
    def of(cls, settings: TwilioCallbacksSettings) -> "TwilioCallbacks":
        """Build the handler of Twilio's requests from the settings of the function `twilio_callbacks`."""
        secret = CachedSecret(clients.secretsmanager(), settings.twilio_secret_arn, time.time, SECRET_SECONDS)
        return cls(settings, secret, clients.sqs())

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Handle a request, and return the response: 204 if a callback was put into the queue, NO_ANSWER for
        a person's text, otherwise the status of the error without a body.

        After the statuses 500 and 503, which are faults of the stage, Twilio retries a few times within 15 s,
        because the URLs for callbacks and texts have a fragment that requests retries.
        """
        return http_event.answered(lambda: self._answer(event), "TwilioCallbacks")

    def _answer(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        request = http_event.read(event, CallbackRequest)
        reference, path, fields = request.reference, request.path, request.fields()
        account = self._check(request, path, fields)
        if reference is None:
            self._take_text(fields, account)
            return NO_ANSWER
        self._send(reference, fields)
        return {"statusCode": 204}

    def _check(self, request: CallbackRequest, path: str, fields: dict[str, str]) -> TwilioAccount:
        """Verify a request's signature, and return the stage's account at Twilio. Raises HttpError with 403,
        or InvalidSecret."""
        account = self._account()
        validator = RequestValidator(account.auth_token)
        signature = request.header("x-twilio-signature").encode("utf-8", "replace")
        # The matches are a list and not a generator: all origins are compared, so that the response time does
        # not reveal which origin matches.
        matches = [
            hmac.compare_digest(validator.compute_signature(origin + path, fields).encode(), signature)
            for origin in (*_origins(self.settings.public_url), *_own_origins(request))
        ]
        if not any(matches):
            raise HttpError(403, "the signature is missing or invalid")
        if fields.get("AccountSid") != account.account_sid:
            raise HttpError(403, "the request is about another account")
        return account

    def _account(self) -> TwilioAccount:
        try:
            return account_of(self.secret.current().text)
        except (ClientError, BotoCoreError, LookupError) as error:
            raise InvalidSecret(
                f"Twilio's secret cannot be read: {error}; allow the function to read it"
            ) from None

    def _take_text(self, fields: Mapping[str, str], account: TwilioAccount) -> None:
        """Put a person's STOP or START into the queue, and ignore other texts. Raises HttpError with 400,
        RequestFailed or botocore's errors."""
        sid, number, sent_to = (fields.get(name, "") for name in ("MessageSid", "From", "To"))
        # A STOP without the sender's number is queued too. It becomes a dead letter, which alerts an
        # operator.
        if not (_SID.fullmatch(sid) and sent_to):
            raise HttpError(400, "MessageSid or To is missing or invalid")
        # Twilio sets OptOutType if the Messaging Service defines keywords (Advanced Opt-Out).
        words = Keywords.of(self.settings.stop_words, self.settings.start_words)
        wish = words.wish(fields.get("Body", ""), fields.get("OptOutType", ""))
        if wish is None:
            return
        sent_ms = self._sent_ms(account, sid, wish)
        text = {"source": TEXT_SOURCE, "number": number, "sent_to": sent_to, "wish": wish, "at": sent_ms}
        self.sqs.send_message(QueueUrl=self.settings.feedback_queue_url, MessageBody=encode(text))
        logger.info("text queued", message_sid=sid, wish=wish)

    def _sent_ms(self, account: TwilioAccount, sid: str, wish: Wish) -> int:
        """Return the time at which a text was sent, in epoch milliseconds.

        Twilio's times are whole seconds. For a STOP, the last millisecond of the second is returned, and for
        a START the first one, so that a STOP takes precedence over a START of the same second. If Twilio's
        API fails, the current time is returned for a STOP. For a START, RequestFailed is raised, because an
        old START may have been posted again after a later STOP.
        """
        try:
            second = int(self.created(account, self.settings.sms_base_url, sid)) * 1000
        except RequestFailed as error:
            if wish == "start":
                raise
            logger.warning("the time of a STOP is unknown; the current time is used", reason=str(error))
            return milliseconds(self.clock())
        return second + 999 if wish == "stop" else second

    def _send(self, reference: Reference, form: Mapping[str, str]) -> None:
        """Put a status callback into the queue. Raises HttpError with 400, or botocore's errors."""
        fields = {name: form[name] for name in CALLBACK_FIELDS if form.get(name)}
        if not {"MessageSid", "MessageStatus"} <= fields.keys():
            raise HttpError(400, "MessageSid or MessageStatus is missing")
        callback = {
            "source": SOURCE,
            "reference": reference.text,
            "received_at": milliseconds(self.clock()),
            "fields": fields,
        }
        self.sqs.send_message(QueueUrl=self.settings.feedback_queue_url, MessageBody=encode(callback))
        logger.info(
            "callback queued",
            id=reference.id,
            event_type="sms",
            message_sid=word(fields["MessageSid"]),
            message_status=word(fields["MessageStatus"]),
        )
        count("TwilioCallbacks")


def _origins(url: str) -> tuple[str, str]:
    """Return the URL's origin without a port and with a port. Twilio's signature may cover either form;
    Twilio's library accepts both."""
    parsed = urlparse(url)
    return remove_port(parsed), add_port(parsed)


def _own_origins(request: CallbackRequest) -> tuple[str, ...]:
    """Return the origins of the host under which API Gateway received the request.

    These origins are accepted besides the stage's public URL: callbacks about messages sent before a change
    of the public URL are signed with the previous URL, which may have this host. The host is the API's
    default host or one of its custom domains, independent of the request's headers. Accepting the host is
    safe, because a valid signature still requires the auth token.
    """
    return _origins(f"https://{request.host}") if request.host else ()
