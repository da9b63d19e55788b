"""Mail by Amazon SES v2."""

import re
from collections.abc import Iterable
from email.utils import parseaddr
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.aws import clients
from mailroom.channels.mail.contract import Mail
from mailroom.channels.mail.rendering import LoadedAttachment, MailRenderer, RenderedMail
from mailroom.delivery.adapter import WithoutLookUp, code_of, not_sent, refused
from mailroom.environment import SesSender
from mailroom.message.message import MAX_SUBJECT
from mailroom.message.outcome import Misconfigured, Outcome, Refusal, Rejected, Row, Sent, table

if TYPE_CHECKING:
    from types_boto3_sesv2 import SESV2Client

Request = dict[str, Any]
"""Arguments of `send_email`."""


class SesMail(WithoutLookUp):
    """Adapter of SES, which supports neither idempotency keys nor look-ups of sent mails."""

    provider = "ses"
    account = "ses"
    """Name of the account in claims. The name distinguishes a try at SES from a try at Resend."""
    contract = Mail

    def __init__(self, client: "SESV2Client", renderer: MailRenderer, configuration_set: str) -> None:
        self._client = client
        self._renderer = renderer
        self._configuration_set = configuration_set

    @classmethod
    def of(cls, settings: SesSender) -> "SesMail":
        client = clients.sesv2(settings.submit_seconds)
        return cls(client, MailRenderer.of(settings), settings.configuration_set)

    def prepare(self, message: Mail) -> Request:
        """Render the mail, and return the request to send it. Raises the errors of `MailRenderer.render`."""
        mail = self._renderer.render(message)
        simple = {
            **_simple(mail),
            "Headers": [{"Name": name, "Value": value} for name, value in mail.headers.items()],
        }
        if mail.attachments:
            simple["Attachments"] = [_part(attachment) for attachment in mail.attachments]
        request: Request = {
            "FromEmailAddress": mail.sender,
            "Destination": _destination(mail),
            "Content": {"Simple": simple},
            "EmailTags": [{"Name": name, "Value": value} for name, value in mail.tags.items()],
            "ConfigurationSetName": self._configuration_set,
        }
        if mail.reply_to:
            request["ReplyToAddresses"] = mail.reply_to
        return request

    def submit(self, request: Request) -> Outcome:
        """Submit the mail to SES. Raises OutcomeUnknown for a 5xx response, or if a request was
        sent and no response came."""
        try:
            reply = self._client.send_email(**request)
        except (ClientError, BotoCoreError) as error:
            addresses = [address for kind in request["Destination"].values() for address in kind]
            whose = partial(refusal_of, sender=request["FromEmailAddress"], recipients=addresses)
            return not_sent("SES", error, whose)
        subject = request["Content"]["Simple"]["Subject"]["Data"][:MAX_SUBJECT]
        return Sent(reply["MessageId"], {"subject": subject} if subject else {})


def _simple(mail: RenderedMail) -> dict[str, Any]:
    bodies = {"Html": mail.content.html, "Text": mail.content.text}
    return {
        "Subject": _utf8(mail.content.subject),
        "Body": {name: _utf8(body) for name, body in bodies.items() if body is not None},
    }


def _utf8(text: str) -> dict[str, str]:
    return {"Data": text, "Charset": "UTF-8"}


def _destination(mail: RenderedMail) -> dict[str, list[str]]:
    lists = {"ToAddresses": mail.to, "CcAddresses": mail.cc, "BccAddresses": mail.bcc}
    return {name: addresses for name, addresses in lists.items() if addresses}


def _part(attachment: LoadedAttachment) -> dict[str, Any]:
    # Attachments of the types message/* and multipart/* must not be Base64-encoded (RFC 2045, 6.4), so
    # attachments of these types are sent with the generic media type of a file.
    composite = attachment.content_type.lower().startswith(("message/", "multipart/"))
    part = {
        "FileName": attachment.filename,
        "ContentType": "application/octet-stream" if composite else attachment.content_type,
        "RawContent": attachment.content,
        "ContentTransferEncoding": "BASE64",  # SES's default declares raw bytes as 7bit
    }
    inline = {"ContentId": attachment.content_id, "ContentDisposition": "INLINE"}
    return part if attachment.content_id is None else {**part, **inline}


_DATE = "2026-11-29"
_REPORT = "https://github.com/"
_ADDRESS = f"{_REPORT}soto-project/soto/issues/331, {_REPORT}awslabs/aws-sdk-rust/issues/881"
REFUSALS = table(
    "botocore 1.44.5, model of sesv2",
    _DATE,
    ("TooManyRequests", "throttled", "Too many requests have been made to the operation."),
    ("LimitExceeded", "day", "There are too many instances of the specified resource type."),
    (
        "AccountSuspended",
        "account",
        "The message can't be sent because the account's ability to send email has been permanently "
        "restricted.",
    ),
    (
        "SendingPaused",
        "account",
        "The message can't be sent because the account's ability to send email is currently paused.",
    ),
    (
        "MailFromDomainNotVerified",
        "account",
        "The message can't be sent because the sending domain isn't verified.",
    ),
    ("NotFound", "account", "The resource you attempted to access doesn't exist."),
    ("MessageRejected", "account", "The message can't be sent because it contains invalid content."),
    ("BadRequest", "account", "The input you provided is invalid."),
) | table(
    "https://docs.aws.amazon.com/ses/latest/dg/manage-sending-quotas-errors.html",
    _DATE,
    ("Daily message quota exceeded", "day", "Daily message quota exceeded"),
    ("Maximum sending rate exceeded", "throttled", "Maximum sending rate exceeded"),
)
"""Documented refusals, by code or by the beginning of the text. SES uses the codes MessageRejected and
BadRequest both for invalid mails and for wrong settings, and `TEXTS` has the texts about mails."""
TEXTS = (
    table(
        _ADDRESS,
        _DATE,
        ("Local address contains", "destination", "Local address contains illegal character"),
        ("Local address starts", "destination", "Local address starts with dot"),
        ("Local address ends", "destination", "Local address ends with dot"),
        ("Domain contains", "destination", "Domain contains illegal character"),
        ("Domain starts", "destination", "Domain starts with dot"),
        ("Domain ends", "destination", "Domain ends with dot"),
    )
    | table(
        f"{_REPORT}mozilla/fx-private-relay/issues/1887, {_REPORT}medplum/medplum/pull/5320, "
        f"{_REPORT}brave/accounts/issues/35",
        _DATE,
        ("Missing final '@domain'", "destination", "Missing final '@domain'"),
        ("Missing domain", "destination", "Missing domain"),
        ("Illegal address", "destination", "Illegal address"),
        ("Invalid email address", "destination", "Invalid email address"),
    )
    | table(
        f"{_REPORT}emencia/emencia-django-newsletter/issues/61",
        _DATE,
        ("Address blacklisted", "destination", "Address blacklisted"),
    )
    | table(
        f"{_REPORT}doubleunion/arooo/issues/243",
        _DATE,
        ("Recipient count exceeds", "message", "Recipient count exceeds 50."),
    )
    | table(
        f"{_REPORT}aws/aws-sdk-go-v2/issues/1774",
        _DATE,
        ("Message length is more than", "message", "Message length is more than 10485760 bytes long"),
    )
    | table(
        f"{_REPORT}aws/aws-sdk-php/issues/981, {_REPORT}aws/aws-sdk-js/issues/4121, "
        f"{_REPORT}jmhobbs/Swiftmailer-Transport--AWS-SES/issues/13",
        _DATE,
        ("Header section too long", "message", "Header section too long."),
        ("Empty header", "message", "Empty header names are illegal."),
        ("Illegal header", "message", "Illegal header"),
        ("Invalid header", "message", "Invalid header"),
    )
    | table(
        f"{_REPORT}mautic/mautic/issues/6437",
        _DATE,
        ("Header too long", "message", "Header too long: 'List-Unsubscribe'."),
    )
    # Either the stage's sender is at fault, or, in the sandbox, a recipient.
    | table(
        f"{_REPORT}steedos/workflow/issues/1614, {_REPORT}zulip/zulip/pull/20569",
        _DATE,
        ("Address length is more than", "undecided", "Address length is more than 320 bytes long"),
    )
    | table(
        "https://repost.aws/knowledge-center/ses-554-400-message-rejected-error",
        _DATE,
        (
            "Email address is not verified",
            "undecided",
            "Email address is not verified. The following identities failed the check in region",
        ),
    )
)
"""Texts of the codes MessageRejected and BadRequest about recipients, headers or the size of the mail, by
their beginning. SES does not name the invalid field. Senders and tags come from the stage's settings, which
are checked when they are deployed."""


def refusal_of(error: ClientError, sender: str = "", recipients: Iterable[str] = ()) -> Refusal:
    """Classify an error response of SES which proves that the mail was not sent. If the cause is one of
    several addresses, the address that the response quotes is at fault."""
    code, text = code_of(error), error.response["Error"].get("Message", "")
    reason = f"{error.response['Error']['Code']}: {text}"
    row = _row(code, text)
    if row is None:
        return refused(error, reason)
    if row.fault == "undecided":
        if _quotes(text, [sender]):
            return Misconfigured(reason)
        if _quotes(text, recipients):
            return Rejected(reason)
    return row.refusal(reason)


def _row(code: str, text: str) -> Row | None:
    """Return the row of a response; its text decides before its code."""
    texts = REFUSALS | TEXTS if code in {"MessageRejected", "BadRequest"} else REFUSALS
    beginnings = (row for row in texts.values() if text.lower().startswith(row.code.lower()))
    return next(beginnings, REFUSALS.get(code))


def _quotes(text: str, addresses: Iterable[str]) -> bool:
    bare = (re.escape(parseaddr(address)[1]) for address in addresses if address)
    return any(re.search(rf"(?<![\w.+-]){address}(?![\w.+-])", text, re.IGNORECASE) for address in bare)
