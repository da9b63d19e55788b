"""Mail by Resend (resend.com), in plain HTTP: a request that goes again has to be the same to the byte.

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
from mailroom.channels.mail.rendering import LoadedAttachment, MailRenderer, RenderedMail
from mailroom.channels.provider import ProviderAdapter, credentials
from mailroom.environment import ResendSender
from mailroom.errors import ConnectError, OutcomeUnknown
from mailroom.http.provider import ProviderApi, body_of, object_in, refusal, text_of
from mailroom.message.message import MAX_SUBJECT, SEVERAL_TAG
from mailroom.message.outcome import Conflict, DayUsedUp, Evidence, Outcome, Repeatable, Retry, Sent
from mailroom.telemetry import masked, redact

KEY_SECONDS = 24 * 3600
"""Lifetime of an idempotency key."""
MARGIN_SECONDS = 900
"""Part of the lifetime that is kept back, for clocks that disagree and for a worker that waits for its turn:
no function runs longer."""
SECRET = "the secret of Resend"  # noqa: S105 - the secret's name in sentences


class Request(Struct, frozen=True):
    """Whole request of a mail."""

    key: str
    """Idempotency key."""
    body: bytes
    """JSON of the mail."""
    subject: str
    """Subject for the ledger."""


class Resend:
    """API of Resend with one key."""

    def __init__(self, api_key: str, base_url: str, seconds: float) -> None:
        """`seconds` is the longest that one request may take."""
        # The API does not say whose a key is. One that was replaced counts as another account.
        self.account = hashlib.sha256(api_key.encode()).hexdigest()[:12]
        self._api = ProviderApi(seconds, {"Authorization": f"Bearer {api_key}"})
        self._emails = f"{base_url.rstrip('/')}/emails"

    def submit(self, request: Request) -> Outcome:
        """Submit a mail. Raises if the outcome is unknown: a 5xx, no response, one that cannot be read, or
        one that says that an earlier request under this key is still in progress."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": request.key}
        try:
            answer = self._api.request("POST", self._emails, headers=headers, body=request.body)
        except ConnectError as error:
            return Retry(f"Resend {error}")
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
            case "daily_quota_exceeded" | "monthly_quota_exceeded":
                return DayUsedUp(reason)
        own = name in _OWN_CODES or (name in _CODES_WITH_A_FIELD and _OWN_FIELD.match(words) is not None)
        return refusal(answer.status, answer.headers, reason, own=own)


class ResendMail(ProviderAdapter[Resend, Mail]):
    """Adapter of Resend, which answers a repeated request as it answered the first, for a day: after a crash
    the identical request goes again, and nothing is sent twice."""

    contract = Mail

    def __init__(self, open_: Callable[[], Resend], renderer: MailRenderer, scope: str) -> None:
        """Set up the adapter. `scope` is part of each key, and differs in every stage that may use the same
        account at Resend."""
        super().__init__("resend", SECRET, open_)
        self._renderer = renderer
        self._scope = scope

    @classmethod
    def of(cls, settings: ResendSender) -> "ResendMail":
        # The bucket's name has the stage, the account and the region: stages of one name may share a team.
        return cls(partial(_open, settings), MailRenderer.of(settings), settings.payload_bucket)

    def prepare(self, message: Mail, since: float | None = None) -> Request:
        """Make the request with its key, as it was made at `since` (epoch seconds), or now. Raises the
        errors of `MailRenderer.render`."""
        mail = self._renderer.render(message, since)
        reference = message.reference
        key = hashlib.sha256(f"{self._scope}\n{reference.attempt}\n{reference.id}".encode()).hexdigest()
        # Sorted, because the order of an item's attributes differs from receive to receive.
        return Request(key, msgspec.json.encode(_email(mail), order="sorted"), mail.content.subject)

    def find(self, api: Resend, message: Mail, since: int, other_ids: Container[str]) -> Evidence:  # noqa: ARG002 - the key is enough
        """Return the request to repeat: Resend knows it by its key."""
        began = since / 1000
        return Repeatable(began + KEY_SECONDS - MARGIN_SECONDS, partial(self.prepare, since=began))


def _open(settings: ResendSender) -> Resend:
    (api_key,) = credentials(SECRET, settings.resend_secret_arn, "api_key")
    return Resend(api_key, settings.resend_base_url, settings.submit_seconds)


def _email(mail: RenderedMail) -> dict[str, Any]:
    """Make the body of `POST /emails`."""
    several = {SEVERAL_TAG: "true"} if len(mail.to) + len(mail.cc) + len(mail.bcc) > 1 else {}
    optional = {
        "cc": mail.cc,
        "bcc": mail.bcc,
        "reply_to": mail.reply_to,
        "html": mail.content.html,
        "text": mail.content.text,
        # Attachments go by content, not by URL: Resend would fetch a URL later, when the object may have
        # changed.
        "attachments": [_attachment(each) for each in mail.attachments],
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
    part = {
        "filename": attachment.filename,
        "content_type": attachment.content_type,
        "content": b64encode(attachment.content).decode(),
    }
    return part if attachment.content_id is None else {**part, "content_id": attachment.content_id}


_OWN_CODES = {"invalid_attachment"}
_CODES_WITH_A_FIELD = {"validation_error", "missing_required_field"}
"""Names that need a field to be classified: Resend answers a bad recipient and a revoked key ("API key is
invalid", 400; resend/resend-node#617) by the same name."""
_OWN_FIELD = re.compile(r"[^`]*`(?:to|cc|bcc|reply_to|subject|html|text|attachments)`")
"""Message whose first field comes from the item, such as "Invalid `to` field."; all other fields come from
our settings."""
