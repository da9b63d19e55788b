"""Mail by Amazon SES v2."""

import re
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.aws import clients
from mailroom.channels.mail.contract import Mail
from mailroom.channels.mail.rendering import LoadedAttachment, MailRenderer, RenderedMail
from mailroom.channels.provider_adapter import WithoutLookUp, not_sent, refused
from mailroom.environment import SesSender
from mailroom.message.message import MAX_SUBJECT
from mailroom.message.outcome import DayUsedUp, Outcome, Refusal, Sent

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
            simple["Attachments"] = [_part(each) for each in mail.attachments]
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
            return not_sent("SES", error, refusal_of)
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


_OWN_CODES = {"MessageRejected", "BadRequestException"}
"""Error codes that SES uses for a mail that is at fault, and also for wrong settings, such as "Email address
is not verified". `_OWN_WORDS` matches only the error messages for which the mail is at fault."""
_OWN_WORDS = re.compile(
    r"address blacklisted|(?:illegal|invalid) (?:email )?address|missing (?:final '@domain'|domain)"
    r"|(?:local address|domain) (?:contains|starts|ends)|recipient count exceeds|message length is more than"
    r"|(?:invalid|illegal|empty) header|header (?:section )?too long|address length is more than",
    re.IGNORECASE,
)
"""Pattern of error messages about a recipient, a header or the size of the mail. The words of the error
message are compared, because SES does not name the invalid field. Senders and tags come from the stage's
settings, which are checked when they are deployed. Sources: reports of SES's responses (aws/aws-sdk-php#981,
brave/accounts#35, soto-project/soto#331, medplum/medplum#5320; 2026-11-26; mautic/mautic#6437, #7732;
2026-11-29)."""


def refusal_of(error: ClientError) -> Refusal:
    """Classify an error response of SES which proves that the mail was not sent."""
    code, text = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    reason = f"{code}: {text}"
    if code == "LimitExceededException" or "daily message quota" in text.lower():
        return DayUsedUp(reason)
    return refused(error, reason, own=code in _OWN_CODES and _OWN_WORDS.match(text) is not None)
