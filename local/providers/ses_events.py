"""The events of SES's event publishing, in the JSON that SES publishes to an SNS topic.

Field by field after "Contents of event data that Amazon SES publishes to Amazon SNS" in its developer guide.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parseaddr
from typing import Any

from local.aws import ACCOUNT, REGION
from local.providers.ses_courses import Kind

Event = dict[str, Any]

REPORTER = "dns; mx.example.net"
EVENT_TYPES: dict[Kind, str] = {
    "delivery": "Delivery",
    "hard": "Bounce",
    "listed": "Bounce",
    "away": "Bounce",
    "full": "Bounce",
    "complaint": "Complaint",
    "delay": "DeliveryDelay",
    "reject": "Reject",
}
BOUNCES: dict[Kind, tuple[str, str]] = {
    "hard": ("Permanent", "General"),
    "listed": ("Permanent", "OnAccountSuppressionList"),
    "away": ("Transient", "General"),
    "full": ("Transient", "MailboxFull"),
}
BOUNCED: dict[Kind, dict[str, str]] = {
    "hard": {"action": "failed", "status": "5.1.1", "diagnosticCode": "smtp; 550 5.1.1 user unknown"},
    "listed": {
        "action": "failed",
        "status": "5.1.1",
        "diagnosticCode": "Amazon SES did not send the message to this address because it is on the "
        "suppression list for your account.",
    },
    "full": {"action": "failed", "status": "5.2.2", "diagnosticCode": "smtp; 552 5.2.2 mailbox full"},
}
"""What the reports say of a recipient; an automatic answer says nothing."""


@dataclass(frozen=True)
class Mail:
    """A mail that SES accepted. `content` is as `ses_wire.content_of` has it; `at` in epoch seconds."""

    message_id: str
    content: Mapping[str, Any]
    recipients: tuple[str, ...]
    at: float
    truncated: bool = False


def send(mail: Mail) -> Event:
    """SES has accepted the mail."""
    return {"eventType": "Send", "mail": described(mail), "send": {}}


def event(mail: Mail, kind: Kind, recipient: str, seconds: float) -> Event:
    """What became of it for one recipient, so many seconds after its acceptance."""
    told = _TOLD.get(kind, _bounce)(kind, parseaddr(recipient)[1], mail.at + seconds)
    name = EVENT_TYPES[kind]
    return {"eventType": name, "mail": described(mail), name[0].lower() + name[1:]: told}


def described(mail: Mail) -> dict[str, Any]:
    """The part that all events of a mail share."""
    content, sender = mail.content, mail.content["from"]
    bare = parseaddr(sender)[1]
    common = {
        "from": [sender],
        "to": list(content["to"]),
        "messageId": mail.message_id,
        "subject": content.get("subject") or "",
    }
    return {
        "timestamp": iso(mail.at),
        "source": sender,
        "sourceArn": f"arn:aws:ses:{REGION}:{ACCOUNT}:identity/{bare}",
        "sendingAccountId": ACCOUNT,
        "messageId": mail.message_id,
        "destination": [parseaddr(each)[1] for each in mail.recipients],
        "headersTruncated": mail.truncated,
        "headers": _headers(mail),
        "commonHeaders": common | ({"cc": list(content["cc"])} if content["cc"] else {}),
        "tags": {
            "ses:operation": ["SendEmail"],
            "ses:configuration-set": [content.get("configuration_set")],
            "ses:source-ip": ["192.0.2.0"],
            "ses:from-domain": [bare.partition("@")[2]],
            "ses:caller-identity": ["mailroom"],
            **{name: [value] for name, value in content["tags"].items()},
        },
    }


def _headers(mail: Mail) -> list[dict[str, str]]:
    """Cut short they end before those that the sender added."""
    content = mail.content
    written = {"From": content["from"], "To": ", ".join(content["to"])}
    if content["reply_to"]:
        written["Reply-To"] = ", ".join(content["reply_to"])
    written |= {"Subject": content.get("subject") or "", "MIME-Version": "1.0"}
    if not mail.truncated:
        written |= {**content["headers"], "Content-Type": "multipart/alternative; boundary=b"}
    return [{"name": name, "value": value} for name, value in written.items()]


def iso(seconds: float) -> str:
    """Epoch seconds as `2017-08-05T00:40:02.012Z`."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _delivery(kind: Kind, recipient: str, at: float) -> Event:  # noqa: ARG001 - as the others
    return {
        "timestamp": iso(at),
        "processingTimeMillis": 480,
        "recipients": [recipient],
        "smtpResponse": "250 2.6.0 Message received",
        "remoteMtaIp": "192.0.2.7",
        "reportingMTA": "a8-70.smtp-out.amazonses.com",
    }


def _bounce(kind: Kind, recipient: str, at: float) -> Event:
    bounce_type, subtype = BOUNCES[kind]
    reported = {} if kind == "away" else {"reportingMTA": REPORTER}
    return {
        "feedbackId": _feedback_id(),
        "bounceType": bounce_type,
        "bounceSubType": subtype,
        "bouncedRecipients": [{"emailAddress": recipient, **BOUNCED.get(kind, {})}],
        "timestamp": iso(at),
        **reported,
    }


def _complaint(kind: Kind, recipient: str, at: float) -> Event:  # noqa: ARG001 - as the others
    return {
        "feedbackId": _feedback_id(),
        "complaintSubType": None,
        "complainedRecipients": [{"emailAddress": recipient}],
        "timestamp": iso(at),
        "userAgent": "Amazon SES Mailbox Simulator",
        "complaintFeedbackType": "abuse",
        "arrivalDate": iso(at),
    }


def _delay(kind: Kind, recipient: str, at: float) -> Event:  # noqa: ARG001 - as the others
    return {
        "timestamp": iso(at),
        "delayType": "MailboxFull",
        "expirationTime": iso(at + timedelta(hours=14).total_seconds()),
        "reportingMTA": REPORTER,
        "delayedRecipients": [
            {"emailAddress": recipient, "status": "4.2.2", "diagnosticCode": "smtp; 452 4.2.2 mailbox full"}
        ],
    }


def _reject(kind: Kind, recipient: str, at: float) -> Event:  # noqa: ARG001 - as the others
    return {"reason": "Bad content"}


def _feedback_id() -> str:
    return f"0100{uuid.uuid4().hex[:12]}-{uuid.uuid4()}-000000"


_TOLD = {"delivery": _delivery, "complaint": _complaint, "delay": _delay, "reject": _reject}
