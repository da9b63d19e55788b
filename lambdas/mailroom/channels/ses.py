"""Mail by Amazon SES v2."""

import mimetypes
from collections.abc import Container
from email.utils import formataddr
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError, NoCredentialsError

from mailroom import address, clients
from mailroom.channels.mail import Attachment, Mail, listed, normalised
from mailroom.environment import MailSender
from mailroom.errors import Invalid
from mailroom.outcome import Evidence, Misconfigured, Outcome, Rejected, Retry, Sent, Unknowable
from mailroom.payloads import Payloads
from mailroom.templates import Content, Templates

if TYPE_CHECKING:
    from types_boto3_sesv2 import SESV2Client

Request = dict[str, Any]
"""The arguments of `send_email`."""

_THROTTLED = {"TooManyRequestsException", "ThrottlingException", "Throttling"}
_QUOTA_SECONDS = 900
"""The daily quota opens again by the hour: a long wait, or it burns receives."""
_OURS = {
    "AccountSuspendedException",
    "SendingPausedException",
    "MailFromDomainNotVerifiedException",
    "NotFoundException",  # the configuration set
}
_CREDENTIALS = (
    "AccessDenied",
    "UnrecognizedClient",
    "InvalidClientToken",
    "Expired",
    "Signature",
    "Incomplete",
)


class SesMail:
    """SES has no idempotency key and no look-up, so `submit` is called once an attempt and never retried."""

    provider = "ses"
    contract = Mail

    def __init__(
        self,
        client: "SESV2Client",
        templates: Templates,
        payloads: Payloads,
        *,
        senders: list[str],
        configuration_set: str,
        max_attachment_bytes: int,
    ) -> None:
        self._client = client
        self._templates = templates
        self._payloads = payloads
        self._default_sender = address.normalise(senders[0])
        # SES tells the case of an identity's local part apart; whoever writes an item need not.
        self._senders = {bare.lower(): bare for bare in (address.split(each)[1] for each in senders)}
        self._configuration_set = configuration_set
        self._max_attachment_bytes = max_attachment_bytes

    @classmethod
    def of(cls, settings: MailSender) -> "SesMail":
        """The adapter that a function's settings describe."""
        return cls(
            clients.sesv2(settings.submit_seconds),
            Templates(Path(settings.templates)),
            Payloads(clients.s3(), settings.payload_bucket),
            senders=settings.mail_senders,
            configuration_set=settings.configuration_set,
            max_attachment_bytes=settings.max_attachment_bytes,
        )

    def prepare(self, message: Mail) -> Request:
        """The whole request: addresses, rendered content, headers, tags, attachments. Raises Invalid."""
        reference = message.reference
        headers = {"X-Correlation-ID": reference.text, **message.headers}
        simple = {
            **_simple(self._content(message)),
            "Headers": [{"Name": name, "Value": value} for name, value in headers.items()],
        }
        if message.attachments:
            simple["Attachments"] = self._attachments(message.attachments)
        request: Request = {
            "FromEmailAddress": self._sender(message),
            "Destination": _destination(message),
            "Content": {"Simple": simple},
            # A tag's value takes no dot, so the attempt is a tag of its own.
            "EmailTags": [
                {"Name": "correlation", "Value": message.key.correlation},
                {"Name": "attempt", "Value": str(reference.attempt)},
                {"Name": "event_type", "Value": message.event_type},
            ],
            "ConfigurationSetName": self._configuration_set,
        }
        if message.reply_to is not None:
            request["ReplyToAddresses"] = normalised("reply_to", listed(message.reply_to))
        return request

    def submit(self, request: Request) -> Outcome:
        """Hand it to SES. A 5xx answer or none at all raises: then nobody knows."""
        try:
            reply = self._client.send_email(**request)
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
                raise
            return _refusal(error)
        except NoCredentialsError as error:
            return Misconfigured(str(error))
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            return Retry(f"SES cannot be reached: {error}")  # no connection, so nothing went out
        return Sent(reply["MessageId"])

    def look_up(self, message: Mail, since: int, known: Container[str]) -> Evidence:  # noqa: ARG002 - no list call
        """SES cannot tell. What its events told stands in the ledger, and a claim would have met it there."""
        return Unknowable()

    def _content(self, mail: Mail) -> Content:
        if mail.inline:
            return Content(mail.subject or "", mail.html, mail.text)
        return self._templates.render(mail.template or "default", mail.variables)

    def _sender(self, mail: Mail) -> str:
        if mail.from_ is None:
            return self._default_sender
        name, bare = address.split(mail.from_)
        sender = self._senders.get(bare.lower())
        if sender is None:
            known = ", ".join(self._senders.values())
            raise Invalid("from", f"is not among this stage's senders; use one of {known}")
        return formataddr((name, sender)) if name else sender

    def _attachments(self, attachments: list[Attachment]) -> list[dict[str, Any]]:
        left = self._max_attachment_bytes
        parts = []
        for at, attachment in enumerate(attachments):
            content = self._payloads.read(f"attachments[{at}].ref", attachment.ref, left)
            left -= len(content)
            parts.append(_part(at, attachment, content))
        return parts


def _simple(content: Content) -> dict[str, Any]:
    bodies = {"Html": content.html, "Text": content.text}
    return {
        "Subject": _utf8(content.subject),
        "Body": {name: _utf8(body) for name, body in bodies.items() if body is not None},
    }


def _utf8(text: str) -> dict[str, str]:
    return {"Data": text, "Charset": "UTF-8"}


def _destination(mail: Mail) -> dict[str, list[str]]:
    name = "to" if mail.to is not None else "email"
    lists = {
        "ToAddresses": normalised(name, listed(mail.recipient)),
        "CcAddresses": normalised("cc", listed(mail.cc)),
        "BccAddresses": normalised("bcc", listed(mail.bcc)),
    }
    return {name: addresses for name, addresses in lists.items() if addresses}


def _part(at: int, attachment: Attachment, content: bytes) -> dict[str, Any]:
    filename = attachment.filename or attachment.ref.rsplit("/", 1)[-1]
    if address.has_control(filename) or not 1 <= len(filename) <= 255:
        raise Invalid(f"attachments[{at}].filename", "has control characters or is over 255 long; shorten it")
    kind = attachment.content_type or mimetypes.guess_type(filename)[0] or "application/octet-stream"
    if address.has_control(kind) or not 1 <= len(kind) <= 78:
        raise Invalid(f"attachments[{at}].content_type", "is no media type; use one like application/pdf")
    return {"FileName": filename, "ContentType": kind, "RawContent": content}


def _refusal(error: ClientError) -> Outcome:
    """What SES's answer means. All of these prove that nothing was sent."""
    code, text = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    reason = f"{code}: {text}"
    if code == "LimitExceededException" or "daily message quota" in text.lower():
        return Retry(reason, after=_QUOTA_SECONDS)
    if code in _THROTTLED or error.response["ResponseMetadata"]["HTTPStatusCode"] == 429:
        return Retry(reason)
    if code in _OURS or code.startswith(_CREDENTIALS):
        return Misconfigured(reason)
    if code in {"MessageRejected", "BadRequestException"}:
        # In the sandbox, and for a sender that nobody verified, SES says so in words alone.
        return Misconfigured(reason) if "not verified" in text else Rejected(reason)
    return Misconfigured(reason)
