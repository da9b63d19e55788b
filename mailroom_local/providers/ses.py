"""Amazon SES v2 in front of the emulator's SES: stores the sent mails, and simulates errors.

The first recipient at simulator.amazonses.com, in the order to, cc, bcc, determines the outcome of the whole
mail. Its local part may have any plus label (`throttled+7@…`). With `-once` (`throttled-once+7@…`), the
outcome occurs only the first time for the full address; after that the mail is accepted.

| local part                                   | what SES does                                         |
|----------------------------------------------|-------------------------------------------------------|
| success, bounce, complaint, suppressionlist, | accepts, then reports by events:                      |
| ooto, soft, reject                           | see `ses_events.py`                                   |
| throttled                                    | 429 TooManyRequestsException                          |
| used-up                                      | 400 LimitExceededException: the day's quota           |
| rejected                                     | 400 MessageRejected                                   |
| unverified                                   | 400 MailFromDomainNotVerifiedException                |
| paused                                       | 400 SendingPausedException                            |
| suspended                                    | 400 AccountSuspendedException                         |
| error                                        | 500 InternalServiceErrorException                     |
| lost-answer                                  | accepts, then breaks the connection without an answer |
| a row of SES's table of refusals, such as    | 400 with the code and the words of this row           |
| header-too-long or address-blacklisted       |                                                       |

SES refuses other mails only if they are invalid or their sender is not verified. The emulator stores
identities and configuration sets, and handles all requests except sending, which would take 1.3 ms of its one
core for each mail.
"""

import base64
import json
import mimetypes
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parseaddr
from functools import cache
from typing import Any
from urllib.parse import quote

from botocore.loaders import Loader
from botocore.model import ServiceModel

from mailroom.channels.mail.contract import UNSUPPORTED
from mailroom.providers.ses.sender import REFUSALS as ROWS
from mailroom.providers.ses.sender import TEXTS
from mailroom_local.aws import REGION
from mailroom_local.providers.http import NoAnswer, Occurrences, Reply, Request, json_reply
from mailroom_local.providers.inbox import Accepted, InboxStore, attached
from mailroom_local.providers.rows import slug
from mailroom_local.providers.ses_events import SIMULATOR_DOMAIN
from mailroom_local.providers.ses_feedback import SUPPRESSION_PATH, SesFeedback, SuppressionList, ses_error
from mailroom_local.providers.upstream import Upstream

REFUSALS = {
    "throttled": (429, "TooManyRequestsException", "Maximum sending rate exceeded."),
    "used-up": (400, "LimitExceededException", "Daily message quota exceeded."),
    "rejected": (400, "MessageRejected", "Address blacklisted."),
    "unverified": (400, "MailFromDomainNotVerifiedException", "The MAIL FROM domain is not verified."),
    "paused": (400, "SendingPausedException", "Email sending is paused for this configuration set."),
    "suspended": (400, "AccountSuspendedException", "The account's ability to send email is suspended."),
    "error": (500, "InternalServiceErrorException", "Service error."),
}
REFUSALS |= {
    # The rows whose codes are texts are about limits.
    slug(code): (400, f"{'Throttling' if ' ' in code else code}Exception", row.words)
    for code, row in ROWS.items()
} | {slug(code): (400, "BadRequestException", row.words) for code, row in TEXTS.items()}
MAX_RECIPIENTS = 50
MAX_HEADER = 996
MAX_ADDRESS = 320
"""Limits that the model states only in words or not at all; see the contract of mail."""
ENCODINGS = {"BASE64": "base64", "QUOTED_PRINTABLE": "quoted-printable", "SEVEN_BIT": "7bit"}
Refusal = tuple[int, str, str]  # HTTP status, error code, message


@dataclass(frozen=True)
class SesSimulator:
    """Simulator of the routes under /v2/email."""

    prefix = "/v2/email"

    inbox: InboxStore
    upstream: Upstream
    suppressed: SuppressionList
    feedback: SesFeedback
    _had: Occurrences = field(default_factory=Occurrences)
    _known: set[str] = field(default_factory=set)

    def handle(self, request: Request) -> Reply:
        if request.method == "POST" and request.path.rstrip("/") == "/v2/email/outbound-emails":
            return self._send(request)
        if request.method == "GET" and request.route == "/v2/email/account":
            # The emulator's response lacks the plan, which is Essentials for a new account.
            reply, plan = self.upstream.pass_on(request), {"PricingAttributes": {"CurrentPlan": "ESSENTIALS"}}
            return json_reply(reply.status, json.loads(reply.body) | plan)
        if request.path.startswith(SUPPRESSION_PATH):
            return self.suppressed.handle(request)
        return self.upstream.pass_on(request)

    def _send(self, request: Request) -> Reply:
        mail = json.loads(request.body or b"{}")
        addresses = (parseaddr(recipient)[1] for recipient in recipients_of(mail))
        outcome = self._had.chosen(addresses, SIMULATOR_DOMAIN, "success")
        refusal = REFUSALS.get(outcome) or refusal_of(mail) or self._unknown(mail, request)
        if refusal:
            return ses_error(*refusal)
        provider_id, content = f"0100019abcdef012-{uuid.uuid4()}-000000", content_of(mail)
        self.inbox.add(Accepted("mail", ", ".join(content["to"]), provider_id, content))
        self.feedback.accepted(provider_id, content, request)
        if outcome == "lost-answer":
            raise NoAnswer
        return json_reply(200, {"MessageId": provider_id})

    def _unknown(self, mail: dict[str, Any], request: Request) -> Refusal | None:
        """Return the error for a sender that is not verified, or for a configuration set that does not
        exist."""
        sender = mail.get("FromEmailAddress", "")
        address = parseaddr(sender)[1]
        labels = address.rpartition("@")[2].split(".")
        identities = [address, *(".".join(labels[start:]) for start in range(len(labels) - 1))]
        if not any(self._has(f"identities/{quote(identity, safe='')}", request) for identity in identities):
            failed = f"The following identities failed the check in region {REGION.upper()}: {sender}"
            return 400, "MessageRejected", f"Email address is not verified. {failed}"
        name = mail.get("ConfigurationSetName")
        if name and not self._has(f"configuration-sets/{name}", request):
            return 404, "NotFoundException", f"Configuration set <{name}> does not exist."
        return None

    def _has(self, path: str, request: Request) -> bool:
        """Return whether the emulator has the resource `path`. A resource that exists is not looked up
        again."""
        if path not in self._known:
            look_up = Request("GET", f"{self.prefix}/{path}", request.headers, b"")
            if self.upstream.pass_on(look_up).status == 200:
                self._known.add(path)
        return path in self._known


def recipients_of(mail: dict[str, Any]) -> list[str]:
    """Return the addresses of to, cc and bcc."""
    destination = mail.get("Destination") or {}
    return [
        address
        for kind in ("ToAddresses", "CcAddresses", "BccAddresses")
        for address in destination.get(kind) or []
    ]


def refusal_of(mail: dict[str, Any]) -> Refusal | None:
    """Return SES's error for an invalid request, or None if the request is valid."""
    count = len(recipients_of(mail))
    if count == 0:
        return _bad("Destination is required: no recipient is given.")
    if count > MAX_RECIPIENTS:
        return _bad(f"Recipient count exceeds {MAX_RECIPIENTS}.")
    simple = mail.get("Content", {}).get("Simple", {})
    for fault in _faults(mail, simple.get("Headers") or []):
        return _bad(fault)
    if any(UNSUPPORTED.search(attachment["FileName"]) for attachment in simple.get("Attachments") or []):
        return _bad("The type of an attachment is not supported.")
    return None


def _faults(mail: dict[str, Any], headers: list[dict[str, str]]) -> Iterator[str]:
    """Yield the violations of limits, in the words of SES."""
    yield from _violations(_request(), mail)
    for header in headers:
        if len(header["Name"] + header["Value"]) > MAX_HEADER:
            yield f"Header too long: '{header['Name']}'."
    for address in (
        mail.get("FromEmailAddress", ""),
        *mail.get("ReplyToAddresses", []),
        *recipients_of(mail),
    ):
        if len(address) > MAX_ADDRESS:
            yield f"Address length is more than {MAX_ADDRESS} characters long: '{address}'."


@cache
def _request() -> Any:
    """Return the request of SendEmail in botocore's model of SES v2."""
    model = ServiceModel(Loader().load_service_model("sesv2", "service-2"))
    return model.operation_model("SendEmail").input_shape


def _violations(shape: Any, value: Any, place: str = "") -> Iterator[str]:
    """Yield the violations of the model's limits. A client by botocore only checks minimums."""
    limits, size = shape.metadata, len(value)
    valid = "pattern" not in limits or re.fullmatch(limits["pattern"], value)
    if not valid or not limits.get("min", 0) <= size <= limits.get("max", size):
        yield f"1 validation error detected: Value at '{place}' failed to satisfy constraint: {limits}"
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _violations(shape.members[name], part, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list):
        for part in value:
            yield from _violations(shape.member, part, place)


def _bad(message: str) -> Refusal:
    return 400, "BadRequestException", message


def mime_of(mail: dict[str, Any]) -> EmailMessage:
    """Build the MIME message of a request, with SES's defaults and without the request's own headers.

    Source: https://docs.aws.amazon.com/ses/latest/dg/attachments.html, read in November 2026. Issue 3796 of
    aws/aws-sdk-net shows the MIME part of a PDF that was sent without ContentTransferEncoding.
    """
    simple, message = mail["Content"]["Simple"], EmailMessage()
    for name, subtype in (("Text", "plain"), ("Html", "html")):
        if body := simple["Body"].get(name):
            message.add_alternative(body["Data"], subtype=subtype)
    for part in simple.get("Attachments") or []:
        inline = part.get("ContentDisposition") == "INLINE"
        html = message.get_body(("related", "html")) if inline else None
        encoding = ENCODINGS[part.get("ContentTransferEncoding", "SEVEN_BIT")]
        content = base64.b64decode(part["RawContent"])
        guess = mimetypes.guess_type(part["FileName"])[0] or "application/octet-stream"
        (html.add_related if html else message.add_attachment)(
            # A part declared as 7bit loses the eighth bit of each byte.
            bytes(byte & 127 for byte in content) if encoding == "7bit" else content,
            *part.get("ContentType", guess).partition("/")[::2],
            cte=encoding,
            disposition="inline" if inline else "attachment",
            filename=part["FileName"],
            cid=f"<{part['ContentId']}>" if part.get("ContentId") else None,
        )
    return message


def attachments_of(mail: dict[str, Any]) -> list[dict[str, Any]]:
    """Parse the attachments from the MIME message, as the recipient's mail program does."""
    message: Any = message_from_bytes(mime_of(mail).as_bytes(policy=policy.SMTP), policy=policy.default)
    return [
        attached(name, part.get_content_type(), part.get_payload(decode=True) or b"", part["Content-ID"])
        for part in message.walk()
        if (name := part.get_filename())
    ]


def content_of(mail: dict[str, Any]) -> dict[str, Any]:
    """Return the mail in the form of the inbox. Only content of the type Simple is supported, because
    Mailroom sends no other."""
    destination = mail.get("Destination") or {}
    message = (mail.get("Content") or {}).get("Simple") or {}
    body = message.get("Body") or {}
    return {
        "from": mail.get("FromEmailAddress", ""),
        "to": destination.get("ToAddresses") or [],
        "cc": destination.get("CcAddresses") or [],
        "bcc": destination.get("BccAddresses") or [],
        "reply_to": mail.get("ReplyToAddresses") or [],
        "configuration_set": mail.get("ConfigurationSetName"),
        "tags": {tag["Name"]: tag["Value"] for tag in mail.get("EmailTags") or []},
        "subject": (message.get("Subject") or {}).get("Data", ""),
        "text": (body.get("Text") or {}).get("Data"),
        "html": (body.get("Html") or {}).get("Data"),
        "headers": {header["Name"]: header["Value"] for header in message.get("Headers") or []},
        "attachments": attachments_of(mail) if message.get("Attachments") else [],
    }
