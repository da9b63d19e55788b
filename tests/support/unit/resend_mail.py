"""The Resend adapter, and Resend's webhooks in the form that the HTTP API passes on."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

from standardwebhooks import Webhook

from mailroom.channels.mail.rendering import MailRenderer
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.environment import ResendMailEventsSettings
from mailroom.message.message import encoded
from mailroom.providers.resend.sender import Resend, ResendMail
from mailroom.providers.resend.webhook import ResendMailEvents
from mailroom.recipients.unsubscribe_links import Links
from tests.support.unit.feedback_callbacks import Queue
from tests.support.unit.shared import BUCKET, NOW, SENDER
from tests.support.unit.shelf import OURS
from tests.support.unit.unsubscribing import URL, kept, secrets_with_key
from tests.support.unit.webhooks import ARN, Secrets, cached_secret

WEBHOOK_SECRET = "whsec_" + base64.b64encode(b"a signing secret of Resend").decode()
SECRET = json.dumps({"api_key": "re_123", "webhook_secret": WEBHOOK_SECRET})
EMAIL_ID = "56761188-7520-42d8-8898-ff6fc54ce618"


def resend_adapter(
    url: str = "http://unused.example",
    s3: Any = None,
    secrets: Secrets | None = None,
    seconds: float = 5,
    scope: str = BUCKET,
    templates: Templates | None = None,
) -> ResendMail:
    """Return the adapter with links for opting out."""
    renderer = MailRenderer(
        templates or Templates(OURS),
        Payloads(s3, BUCKET),
        senders=[SENDER],
        max_attachment_bytes=1000,
        links=Links(kept(secrets or secrets_with_key()), URL),
    )
    return ResendMail(lambda: Resend("re_123", url, seconds), renderer, scope)


def resend_event(
    kind: str = "email.delivered", id_: str = "m-1", attempt: int = 1, **data: Any
) -> dict[str, Any]:
    """Return a webhook's body in the form of the SDK of Resend."""
    tags = {"correlation": encoded(id_), "attempt": str(attempt), "event_type": "mail"}
    return {
        "type": kind,
        "created_at": "2026-11-21T08:59:00.000Z",
        "data": {
            "created_at": "2026-11-21T08:58:00.000Z",
            "email_id": EMAIL_ID,
            "message_id": "<1@example.com>",
            "from": SENDER,
            "to": ["ada@example.com"],
            "subject": "Hello",
            "tags": tags,
            **data,
        },
    }


def webhook_request(
    body: str | dict[str, Any], *, at: float = NOW, key: str = WEBHOOK_SECRET, **headers: str | None
) -> dict[str, Any]:
    """Return a webhook as the HTTP API passes it on, signed like Svix. If a header's value is None, it is
    left out."""
    text = body if isinstance(body, str) else json.dumps(body)
    signature = Webhook(key).sign("msg_1", datetime.fromtimestamp(int(at), UTC), text)
    all_headers = {
        "content-type": "application/json",
        "svix-id": "msg_1",
        "svix-timestamp": str(int(at)),
        "svix-signature": signature,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return {
        "version": "2.0",
        "rawPath": "/callbacks/resend",
        "headers": {name: value for name, value in all_headers.items() if value is not None},
        "requestContext": {"http": {"method": "POST"}, "domainName": "api.mailroom.example"},
        "body": text,
        "isBase64Encoded": False,
    }


class ResendDoor:
    """The function for Resend's webhooks, with a secret, a queue and a clock."""

    def __init__(self, clock: Any, text: str = SECRET) -> None:
        settings = ResendMailEventsSettings(resend_secret_arn=ARN, feedback_queue_url="https://sqs/feedback")
        self.secrets, self.queue = Secrets(text), Queue()
        self._events = ResendMailEvents(settings, cached_secret(self.secrets, clock, 30), self.queue, clock)  # type: ignore[arg-type]

    def answers(self, event: Any) -> int:
        reply = self._events.answer(event)
        assert reply.keys() == {"statusCode"}
        return int(reply["statusCode"])
