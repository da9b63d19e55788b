"""Resend: accepts mails with idempotency keys, reports events by signed webhooks, and has a suppression list.

The first recipient at resend.dev determines the outcome of the whole mail. Its local part may have any plus
label. With `-once` (`throttled-once+7@…`), the outcome occurs only the first time for the full address.

| local part                       | what Resend does                                                     |
|----------------------------------|----------------------------------------------------------------------|
| delivered, bounced, complained,  | accepts, then reports by events                                      |
| suppressed, soft, failed         |                                                                      |
| throttled                        | 429 rate_limit_exceeded                                              |
| used-up                          | 429 daily_quota_exceeded                                             |
| rejected                         | 422 validation_error                                                 |
| unverified                       | 403 validation_error: the domain is not verified                     |
| forbidden                        | 403 invalid_api_key                                                  |
| error                            | 500 application_error                                                |
| lost-answer                      | accepts, then breaks the connection without an answer                |
| a row of Resend's table, such as | refuses with the name and the words of this row                      |
| invalid-attachment               |                                                                      |

A mail with an attachment whose type is not that of its extension is accepted, but not sent, as at Resend. The
simulator is stricter than Resend: it refuses fields that Mailroom does not use. Its fields, errors and
events are those of Resend's SDK for Node 6.38.0.
"""

import base64
import json
import mimetypes
import threading
import time
import uuid
from datetime import UTC, datetime
from email.utils import parseaddr
from http import HTTPStatus
from typing import Annotated, Any, NamedTuple
from urllib.parse import unquote

import msgspec
from msgspec import Meta, Struct, field
from standardwebhooks import Webhook

from mailroom.channels.mail.contract import UNSUPPORTED
from mailroom.clock import Clock
from mailroom.providers.resend.sender import REFUSALS as ROWS
from mailroom_local.providers.delay_queue import DelayQueue, post
from mailroom_local.providers.http import NoAnswer, Occurrences, Reply, Request, iso_milliseconds, json_reply
from mailroom_local.providers.inbox import Accepted, InboxStore, attached
from mailroom_local.providers.rows import slug

WEBHOOK_SECRET = "whsec_" + base64.b64encode(b"webhooks of the local stage").decode()
SECRET = {"api_key": "re_local", "webhook_secret": WEBHOOK_SECRET}
EVENTS_PATH = "/callbacks/resend"
DOMAIN = "resend.dev"
KEY_SECONDS = 24 * 3600
MAX_KEY = 256
MAX_ADDRESS = 320
REFUSALS: dict[str, tuple[int, str, str]] = {
    "throttled": (429, "rate_limit_exceeded", "Too many requests."),
    "used-up": (429, "daily_quota_exceeded", "You have reached your daily email sending quota."),
    "rejected": (422, "validation_error", "Invalid `to` field."),
    "unverified": (403, "validation_error", "The domain is not verified."),
    "forbidden": (403, "invalid_api_key", "API key is invalid."),
    "error": (500, "application_error", "Something went wrong."),
}
REFUSALS |= {
    slug(code): (
        429 if row.fault in ("throttled", "day") else 403,
        "validation_error" if " " in code else code,
        # The mail is at fault for an error about a field only if the field comes from the item.
        f"{row.words} (`to`)" if row.fault == "message" else row.words,
    )
    for code, row in ROWS.items()
}
COURSES: dict[str, tuple[str, ...]] = {
    "bounced": ("email.bounced",),
    "complained": ("email.delivered", "email.complained"),
    "suppressed": ("email.suppressed",),
    "soft": ("email.delivery_delayed", "email.bounced"),
    "failed": ("email.failed",),
}
"""Events that follow email.sent, by the outcome that the address names. For other addresses, the event
email.delivered follows."""
EVENTS = [
    *("email.sent", "email.delivered", "email.delivery_delayed"),
    *("email.bounced", "email.complained", "email.suppressed", "email.failed"),
]
_TYPES = mimetypes.MimeTypes(filenames=())
_Text = Annotated[str, Meta(min_length=1)]
_TagText = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,256}$")]


class Tag(Struct, frozen=True, forbid_unknown_fields=True):
    name: _TagText
    value: _TagText


class Attachment(Struct, frozen=True, forbid_unknown_fields=True):
    filename: _Text
    content: bytes
    content_type: str | None = None
    content_id: str | None = None

    @property
    def kind(self) -> str:
        """Media type of the extension. If Resend does not know the extension, the type in the request."""
        return _TYPES.guess_type(self.filename)[0] or self.content_type or "application/octet-stream"


class Mail(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of `POST /emails`, with the fields that Mailroom uses."""

    from_: _Text = field(name="from")
    to: Annotated[list[_Text], Meta(min_length=1, max_length=50)]
    cc: list[_Text] = []
    bcc: list[_Text] = []
    reply_to: list[_Text] = []
    subject: _Text
    html: str | None = None
    text: str | None = None
    headers: dict[str, str] = {}
    tags: list[Tag] = []
    attachments: list[Attachment] = []

    @property
    def reached(self) -> list[str]:
        """Addresses of to, cc and bcc without names, in lower case."""
        return [parseaddr(address)[1].lower() for address in (*self.to, *self.cc, *self.bcc)]

    @property
    def told(self) -> dict[str, str]:
        """Values of the tags by name."""
        return {tag.name: tag.value for tag in self.tags}


class Outgoing(NamedTuple):
    """An event to be posted to a webhook."""

    id: str
    url: str
    body: str


class ResendSimulator:
    """Simulator of the routes under /resend. It posts events to the stage's API on the same server.
    Thread-safe."""

    prefix = "/resend"

    def __init__(self, inbox: InboxStore, clock: Clock = time.time) -> None:
        self._inbox = inbox
        self._clock = clock
        self._answered: dict[str, tuple[float, bytes, Reply]] = {}
        self._had = Occurrences()
        self._lock = threading.Lock()
        self.suppressed: dict[str, str] = {}
        self.queue = DelayQueue(_post_all, clock=clock)

    def handle(self, request: Request) -> Reply:
        route = request.route.removeprefix(self.prefix)
        if not request.bearer:
            return error(401, "missing_api_key", "Missing API key in the authorization header.")
        if request.bearer != SECRET["api_key"]:
            # This is the response that Resend was observed to return; its documentation differs:
            # resend/resend-node#617
            return error(400, "validation_error", "API key is invalid")
        if (request.method, route) == ("POST", "/emails"):
            return self._send(request)
        if request.method == "GET" and (content := _account(request).get(route)):
            return json_reply(HTTPStatus.OK, content)
        if request.method == "DELETE" and route.startswith("/suppressions/"):
            address = unquote(route.removeprefix("/suppressions/")).lower()
            if self.suppressed.pop(address, None) is None:
                return error(404, "not_found", "Suppression not found")
            return json_reply(HTTPStatus.OK, {"object": "suppression", "id": address, "deleted": True})
        return error(404, "not_found", "The requested endpoint does not exist.")

    def _send(self, request: Request) -> Reply:
        key = request.headers.get("idempotency-key", "")
        if not 1 <= len(key) <= MAX_KEY:
            return error(400, "invalid_idempotency_key", "The key must be between 1-256 chars.")
        with self._lock:
            answered_at, body, answer = self._answered.get(key, (-KEY_SECONDS, b"", None))
            if answer is not None and self._clock() < answered_at + KEY_SECONDS:
                repeated = body == request.body
                return answer if repeated else error(409, "invalid_idempotent_request", "Another payload.")
            reply, outcome = self._taken(request)
            if reply.status == HTTPStatus.OK:
                self._answered[key] = self._clock(), request.body, reply
        if outcome == "lost-answer":
            raise NoAnswer
        return reply

    def _taken(self, request: Request) -> tuple[Reply, str]:
        """Return the response to a new mail, and the outcome that its recipient determines."""
        try:
            mail = msgspec.json.decode(request.body, type=Mail)
        except msgspec.DecodeError as wrong:
            return error(422, "validation_error", str(wrong)), ""
        if any(UNSUPPORTED.search(attachment.filename) for attachment in mail.attachments):
            return error(422, "validation_error", "The type of an attachment is not supported."), ""
        addresses = (mail.from_, *mail.to, *mail.cc, *mail.bcc, *mail.reply_to)
        if max(map(len, addresses)) > MAX_ADDRESS:
            words = f"The email address length is more than {MAX_ADDRESS} characters long."
            return error(422, "validation_error", words), ""
        outcome = self._had.chosen(mail.reached, DOMAIN, "delivered")
        if outcome in REFUSALS:
            return error(*REFUSALS[outcome]), outcome
        email_id = str(uuid.uuid4())
        # Resend does not send such a mail, and reports nothing (anymail/django-anymail#440).
        if any(not (part.content_type or part.kind).startswith(part.kind) for part in mail.attachments):
            return json_reply(HTTPStatus.OK, {"id": email_id}), outcome
        self._inbox.add(Accepted("mail", ", ".join(mail.to), email_id, content_of(mail)))
        for step, kind in enumerate(("email.sent", *self._course(mail, outcome))):
            body = json.dumps(event_of(mail, email_id, kind, self._clock() + step / 10))
            # All deliveries of one event have the same id, as in Svix, so the id is generated once here.
            self.queue.report(Outgoing(f"msg_{uuid.uuid4().hex}", endpoint(request), body))
        return json_reply(HTTPStatus.OK, {"id": email_id}), outcome

    def _course(self, mail: Mail, outcome: str) -> tuple[str, ...]:
        bare = mail.reached[0]
        if bare in self.suppressed:
            return ("email.suppressed",)
        if outcome in ("bounced", "complained"):
            self.suppressed[bare] = outcome
        return COURSES.get(outcome, ("email.delivered",))


def endpoint(request: Request) -> str:
    """Return the URL of the stage's webhook, on the server that received a request."""
    return f"http://{request.headers.get('host')}/api{EVENTS_PATH}"


def _post_all(events: list[Outgoing]) -> list[Outgoing]:
    """Post events. Return the events to retry: those with no response or a server error."""
    return [event for event in events if not 0 < _posted(event) < HTTPStatus.INTERNAL_SERVER_ERROR]


def _posted(outgoing: Outgoing) -> int:
    moment = datetime.fromtimestamp(int(time.time()), UTC)
    headers = {
        "content-type": "application/json",
        "user-agent": "Svix-Webhooks/1.0",
        "svix-id": outgoing.id,
        "svix-timestamp": str(int(moment.timestamp())),
        "svix-signature": Webhook(WEBHOOK_SECRET).sign(outgoing.id, moment, outgoing.body),
    }
    status = post(outgoing.url, headers, outgoing.body.encode())
    if not 0 < status < HTTPStatus.BAD_REQUEST:
        print(f"an event of Resend was answered with {status}", flush=True)
    return status


WHY: dict[str, dict[str, dict[str, str]]] = {
    "email.bounced": {
        "bounce": {"type": "Permanent", "subType": "General", "message": "550 5.1.1 user unknown"}
    },
    "email.suppressed": {
        "suppressed": {"type": "bounce", "message": "The address is on the suppression list."}
    },
    "email.failed": {"failed": {"reason": "reached_daily_quota"}},
}
"""Fields of an event's data with the reason, by event type."""
MAILBOX_FULL = {"type": "Transient", "subType": "MailboxFull", "message": "552 5.2.2 mailbox full"}


def _account(request: Request) -> dict[str, Any]:
    """Return the responses to requests about the account, by path."""
    hook = {"id": "w1", "endpoint": endpoint(request), "status": "enabled", "events": EVENTS}
    used = {"used": 3, "sent": 3, "received": 0}
    return {
        "/domains": {"object": "list", "data": [{"id": "d1", "name": "example.com", "status": "verified"}]},
        "/webhooks": {"object": "list", "has_more": False, "data": [hook]},
        "/usage": {"emails": {"daily": {**used, "limit": None}, "monthly": {**used, "limit": 50_000}}},
    }


def error(status: int, name: str, message: str) -> Reply:
    """Return an error response in the form of Resend."""
    wait = {"retry-after": "1", "ratelimit-reset": "1"} if name == "rate_limit_exceeded" else None
    return json_reply(status, {"statusCode": status, "name": name, "message": message}, wait)


def event_of(mail: Mail, email_id: str, kind: str, seconds: float) -> dict[str, Any]:
    """Return the body of a webhook request that reports an event."""
    full = kind == "email.bounced" and mail.reached[0].startswith("soft")
    moment = iso_milliseconds(datetime.fromtimestamp(seconds, UTC))
    data = {
        "created_at": moment,
        "email_id": email_id,
        "message_id": f"<{email_id}@example.com>",
        "from": mail.from_,
        "to": mail.to,
        "subject": mail.subject,
        "tags": mail.told,
        **({"bounce": MAILBOX_FULL} if full else WHY.get(kind, {})),
    }
    return {"type": kind, "created_at": moment, "data": data}


def content_of(mail: Mail) -> dict[str, Any]:
    """Return the mail in the form of the inbox."""
    return {
        **{name: getattr(mail, name) for name in ("to", "cc", "bcc", "reply_to", "subject", "text", "html")},
        "from": mail.from_,
        "tags": mail.told,
        "headers": mail.headers,
        "attachments": [
            attached(attachment.filename, attachment.kind, attachment.content, attachment.content_id)
            for attachment in mail.attachments
        ],
    }
