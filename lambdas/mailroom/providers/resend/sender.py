"""Mail by Resend (resend.com). Resend's SDK is not used, because a repeated request must equal the first one
byte by byte.

Sources: Resend's API reference for sending an email, its errors and its idempotency keys; its SDKs for Node
6.38.0 and Python 2.52.0.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Container
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from mailroom.channels.mail.contract import Mail
from mailroom.channels.mail.media_types import type_of
from mailroom.channels.mail.rendering import LoadedAttachment, MailRenderer, RenderedMail
from mailroom.delivery.adapter import ProviderAdapter, credentials
from mailroom.environment import ResendSender
from mailroom.errors import OutcomeUnknown
from mailroom.http.provider_api import ProviderApi, body_of, object_in, refusal, retry_after, text_of
from mailroom.message.message import MAX_SUBJECT, SEVERAL_TAG
from mailroom.message.outcome import Conflict, Evidence, Outcome, Repeatable, Row, Sent, table
from mailroom.telemetry import masked, redact

KEY_SECONDS = 24 * 3600
"""Seconds for which Resend remembers an idempotency key."""
MARGIN_SECONDS = 900
"""Seconds before the expiry of an idempotency key in which Mailroom does not use the key any more. The margin
covers differences between clocks, and the time that a worker waits for the rate limit: Lambda functions run
900 seconds at most."""
SECRET = "the secret of Resend"  # noqa: S105 - name of the secret in error messages


class Request(Struct, frozen=True):
    """Request to Resend to send a mail, complete except for the API key."""

    key: str
    """Idempotency key."""
    body: bytes
    """Body of the request: the mail as JSON."""
    subject: str
    """Subject of the mail, for the ledger."""


class Resend:
    """Client of the API of Resend with one API key."""

    def __init__(self, api_key: str, base_url: str, seconds: float) -> None:
        """Create the client; a request takes at most `seconds`."""
        # The API does not reveal the account of a key, so a new key is treated as another account.
        self.account = hashlib.sha256(api_key.encode()).hexdigest()[:12]
        self._api = ProviderApi(seconds, {"Authorization": f"Bearer {api_key}"})
        self._emails = f"{base_url.rstrip('/')}/emails"

    def submit(self, request: Request) -> Outcome:
        """Submit a mail. Raises if the outcome is unknown: after no response, a 5xx response, an unreadable
        response, or a response that an earlier request with this idempotency key is still in progress."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": request.key}
        answer = self._api.request("POST", self._emails, headers=headers, body=request.body)
        if 200 <= answer.status < 300:
            subject = request.subject[:MAX_SUBJECT]
            id_ = text_of(body_of(answer.status, answer.text), "id")
            return Sent(id_, {"subject": subject} if subject else {})
        content = object_in(answer.status, answer.text)
        name = str(content.get("name", ""))
        words = masked(redact(f"{name}: {content.get('message', '')}"))
        reason = f"Resend answered {answer.status} {words}"
        match name:
            case "invalid_idempotent_request":
                return Conflict(reason)
            case "concurrent_idempotent_requests":
                raise OutcomeUnknown(reason)
        row = _row(name, str(content.get("message", "")))
        other_field = row is not None and row.code in _CODES_WITH_A_FIELD and not _OWN_FIELD.match(words)
        if row is None or other_field or not 400 <= answer.status < 500:
            return refusal(answer.status, answer.headers, reason)
        return row.refusal(reason, retry_after(answer.headers))


class ResendMail(ProviderAdapter[Resend, Mail]):
    """Adapter of Resend. For a day Resend responds to a repeated request as to the first one, without sending
    the mail again. After a crash, the adapter therefore makes the identical request again."""

    contract = Mail

    def __init__(self, open_: Callable[[], Resend], renderer: MailRenderer, scope: str) -> None:
        """Create the adapter. `scope` becomes part of each idempotency key. Stages that share an account at
        Resend need different scopes, so that their idempotency keys differ."""
        super().__init__("resend", SECRET, open_)
        self._renderer = renderer
        self._scope = scope

    @classmethod
    def of(cls, settings: ResendSender) -> "ResendMail":
        # The scope is the payload bucket's name, which contains the stage, the AWS account and the region:
        # stages of the same name may share a team at Resend.
        return cls(partial(_open, settings), MailRenderer.of(settings), settings.payload_bucket)

    def prepare(self, message: Mail, since: float | None = None) -> Request:
        """Create the request and its idempotency key. If `since` (epoch seconds) is the time of an earlier
        try, the result is identical to the request of that try. Raises the errors of
        `MailRenderer.render`."""
        mail = self._renderer.render(message, since)
        reference = message.reference
        key = hashlib.sha256(f"{self._scope}\n{reference.attempt}\n{reference.id}".encode()).hexdigest()
        # The names in the JSON are sorted, so that all tries make identical requests: the order of an item's
        # attributes may differ between receives.
        return Request(key, msgspec.json.encode(_email(mail), order="sorted"), mail.content.subject)

    def find(self, api: Resend, message: Mail, since: int, other_ids: Container[str]) -> Evidence:  # noqa: ARG002 - the idempotency key suffices
        """Return a Repeatable, which creates the identical request again until the request's idempotency key
        expires. Resend recognises the request by this key, and does not send the mail twice."""
        began = since / 1000
        return Repeatable(began + KEY_SECONDS - MARGIN_SECONDS, partial(self.prepare, since=began))


def _open(settings: ResendSender) -> Resend:
    (api_key,) = credentials(SECRET, settings.resend_secret_arn, "api_key")
    return Resend(api_key, settings.resend_base_url, settings.submit_seconds)


def _email(mail: RenderedMail) -> dict[str, Any]:
    """Return the body of the request `POST /emails`."""
    several = {SEVERAL_TAG: "true"} if len(mail.to) + len(mail.cc) + len(mail.bcc) > 1 else {}
    optional = {
        "cc": mail.cc,
        "bcc": mail.bcc,
        "reply_to": mail.reply_to,
        "html": mail.content.html,
        "text": mail.content.text,
        # The request contains the attachments' content, not their URLs: Resend would fetch a URL later, and
        # the object in S3 may have changed by that time.
        "attachments": [_attachment(attachment) for attachment in mail.attachments],
    }
    return {
        "from": mail.sender,
        "to": mail.to,
        "subject": mail.content.subject,
        "headers": mail.headers,
        "tags": [{"name": name, "value": value} for name, value in {**mail.tags, **several}.items()],
        **{name: value for name, value in optional.items() if value},
    }


def _attachment(attachment: LoadedAttachment) -> dict[str, str]:
    # Resend accepts a mail whose attachment has another type than the extension of its name, and then neither
    # sends the mail nor reports it (anymail/django-anymail#440, tests of 2025-12-16). Without a type, Resend
    # derives the type from the name. Only parameters, such as `method=REQUEST` of an invitation, need a type.
    kind, parameters, _ = attachment.content_type.partition(";")
    part = {"filename": attachment.filename, "content": b64encode(attachment.content).decode()}
    if parameters and kind.strip().lower() == type_of(attachment.filename):
        part["content_type"] = attachment.content_type
    return part if attachment.content_id is None else {**part, "content_id": attachment.content_id}


REFUSALS = table(
    "https://resend.com/docs/api-reference/errors",
    "2026-11-29",
    (
        "rate_limit_exceeded",
        "throttled",
        "Too many requests. Please limit the number of requests per second.",
    ),
    ("daily_quota_exceeded", "day", "You have reached your daily email sending quota."),
    ("monthly_quota_exceeded", "day", "You have reached your monthly email sending quota."),
    ("missing_api_key", "account", "Missing API key in the authorization header."),
    ("restricted_api_key", "account", "This API key is restricted to only send emails."),
    ("invalid_api_key", "account", "API key is invalid."),
    ("invalid_from_address", "account", "Invalid from field."),
    ("invalid_idempotency_key", "account", "The key must be between 1-256 chars."),
    ("not_found", "account", "The requested endpoint does not exist."),
    ("method_not_allowed", "account", "Method is not allowed for the requested path."),
    ("security_error", "account", "We may have found a security issue with the request."),
    ("invalid_attachment", "message", "Attachment must have either a `content` or `path`."),
    ("validation_error", "message", "We found an error with one or more fields in the request."),
    ("missing_required_field", "message", "The request body is missing one or more required fields."),
    # Resend's form of a sandbox. The name of the error is validation_error.
    (
        "You can only send testing emails to your own email address",
        "destination",
        "You can only send testing emails to your own email address",
    ),
)
"""Documented refusals, by the error's name or by the beginning of its text."""
_CODES_WITH_A_FIELD = {"validation_error", "missing_required_field"}
"""Names of Resend's errors for which the field in the error message, and not the error's name, shows whether
the mail is at fault. Resend uses the same name for an invalid recipient and for a revoked key ("API key is
invalid", 400; resend/resend-node#617)."""
_OWN_FIELD = re.compile(r"[^`]*`(?:to|cc|bcc|reply_to|subject|html|text|attachments)`")
"""Pattern of an error message about a field that comes from the item, such as "Invalid `to` field."; the
first field in the message is used. All other fields come from the stage's settings."""


def _row(name: str, message: str) -> Row | None:
    """Return the row of an error; its text decides before its name."""
    beginnings = (row for row in REFUSALS.values() if message.startswith(row.code))
    return next(beginnings, REFUSALS.get(name))
