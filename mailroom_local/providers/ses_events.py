"""Outcomes of mails that SES accepted, and the events that report them in SES's JSON form.

For an address at simulator.amazonses.com, the part before the plus sign determines the events:

| local part      | events after Send                                                                    |
|-----------------|--------------------------------------------------------------------------------------|
| bounce          | Bounce, Permanent General                                                            |
| complaint       | Delivery, Complaint                                                                  |
| suppressionlist | Bounce, Permanent OnAccountSuppressionList                                           |
| ooto            | Delivery, Bounce Transient General: an automatic reply, out of office                |
| soft            | DeliveryDelay, Bounce Transient MailboxFull                                          |
| reject          | Reject, of the whole mail                                                            |
| others          | Delivery                                                                             |

The plus label can contain words, separated by `.`, `-` or `+` (`success+soft.7@…`). `soft` has the meaning
above. With `truncated`, the headers in the events are truncated, which removes those that Mailroom added.
With `early`, all events are published before SES responds. Mails to other addresses are delivered. An address
on the account's suppression list has the events of suppressionlist.

The events follow "Contents of event data that Amazon SES publishes to Amazon SNS" in SES's developer guide.
"""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parseaddr
from typing import Any, Literal

from mailroom_local.aws import ACCOUNT, REGION
from mailroom_local.providers.http import iso_milliseconds

SIMULATOR_DOMAIN = "simulator.amazonses.com"

Kind = Literal["delivery", "hard", "listed", "away", "full", "complaint", "delay", "reject"]
"""Kind of an event after Send. `hard`, `listed`, `away` and `full` are bounces."""
COURSES: dict[str, tuple[Kind, ...]] = {
    "bounce": ("hard",),
    "complaint": ("delivery", "complaint"),
    "suppressionlist": ("listed",),
    "ooto": ("delivery", "away"),
    "soft": ("delay", "full"),
    "reject": ("reject",),
}
DELIVERED: tuple[Kind, ...] = ("delivery",)
Event = dict[str, Any]
REPORTER = "dns; mx.example.net"
BOUNCES: dict[Kind, tuple[str, str]] = {
    "hard": ("Permanent", "General"),
    "listed": ("Permanent", "OnAccountSuppressionList"),
    "away": ("Transient", "General"),
    "full": ("Transient", "MailboxFull"),
}
EVENT_TYPES: dict[Kind, str] = {
    **dict.fromkeys(BOUNCES, "Bounce"),
    "delivery": "Delivery",
    "complaint": "Complaint",
    "delay": "DeliveryDelay",
    "reject": "Reject",
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
"""Fields of a bounce event that describe a recipient, by kind. An automatic reply has none."""


@dataclass(frozen=True)
class Address:
    """Parts of a recipient's address, in lower case."""

    name: str
    words: frozenset[str]
    simulated: bool

    @classmethod
    def of(cls, recipient: str) -> "Address":
        """Parse an address in any form that is valid in a header."""
        local, _, domain = parseaddr(recipient)[1].lower().partition("@")
        name, _, label = local.partition("+")
        return cls(name, frozenset(re.split(r"[.+-]", label)), domain == SIMULATOR_DOMAIN)

    @property
    def course(self) -> tuple[Kind, ...]:
        """Kinds of the events after Send, in the order in which they happen."""
        if not self.simulated:
            return DELIVERED
        return COURSES["soft"] if "soft" in self.words else COURSES.get(self.name, DELIVERED)

    def asks(self, word: str) -> bool:
        """Return whether the label of a simulator address contains `word`."""
        return self.simulated and word in self.words


@dataclass(frozen=True)
class AcceptedMail:
    """A mail that SES accepted. `content` has the form of `ses.content_of`. `at` is in epoch seconds."""

    message_id: str
    content: Mapping[str, Any]
    recipients: tuple[str, ...]
    at: float
    truncated: bool = False


def send(mail: AcceptedMail) -> Event:
    """Return the event Send, which reports that SES has accepted the mail."""
    return {"eventType": "Send", "mail": described(mail), "send": {}}


def event(mail: AcceptedMail, kind: Kind, recipient: str, seconds: float) -> Event:
    """Return the event about one recipient, which happens `seconds` after SES accepted the mail."""
    details = _details(kind, parseaddr(recipient)[1], mail.at + seconds)
    name = EVENT_TYPES[kind]
    return {"eventType": name, "mail": described(mail), name[0].lower() + name[1:]: details}


def described(mail: AcceptedMail) -> dict[str, Any]:
    """Return the description of the mail, which all its events contain."""
    content, sender = mail.content, mail.content["from"]
    bare = parseaddr(sender)[1]
    common = {
        "from": [sender],
        "to": list(content["to"]),
        "messageId": mail.message_id,
        "subject": content.get("subject") or "",
    }
    return {
        "timestamp": _stamp(mail.at),
        "source": sender,
        "sourceArn": f"arn:aws:ses:{REGION}:{ACCOUNT}:identity/{bare}",
        "sendingAccountId": ACCOUNT,
        "messageId": mail.message_id,
        "destination": [parseaddr(recipient)[1] for recipient in mail.recipients],
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


def _headers(mail: AcceptedMail) -> list[dict[str, str]]:
    """Return the headers of a mail. Truncated headers end before those that the sender added."""
    content = mail.content
    written = {"From": content["from"], "To": ", ".join(content["to"])}
    if content["reply_to"]:
        written["Reply-To"] = ", ".join(content["reply_to"])
    written |= {"Subject": content.get("subject") or "", "MIME-Version": "1.0"}
    if not mail.truncated:
        written |= {**content["headers"], "Content-Type": "multipart/alternative; boundary=b"}
    return [{"name": name, "value": value} for name, value in written.items()]


def _stamp(seconds: float) -> str:
    return iso_milliseconds(datetime.fromtimestamp(seconds, UTC))


def _details(kind: Kind, recipient: str, seconds: float) -> Event:
    """Return the fields that are specific to the type of an event."""
    match kind:
        case "delivery":
            return {
                "timestamp": _stamp(seconds),
                "processingTimeMillis": 480,
                "recipients": [recipient],
                "smtpResponse": "250 2.6.0 Message received",
                "remoteMtaIp": "192.0.2.7",
                "reportingMTA": "a8-70.smtp-out.amazonses.com",
            }
        case "complaint":
            return {
                "feedbackId": _feedback_id(),
                "complaintSubType": None,
                "complainedRecipients": [{"emailAddress": recipient}],
                "timestamp": _stamp(seconds),
                "userAgent": "Amazon SES Mailbox Simulator",
                "complaintFeedbackType": "abuse",
                "arrivalDate": _stamp(seconds),
            }
        case "delay":
            report = {"status": "4.2.2", "diagnosticCode": "smtp; 452 4.2.2 mailbox full"}
            return {
                "timestamp": _stamp(seconds),
                "delayType": "MailboxFull",
                "expirationTime": _stamp(seconds + timedelta(hours=14).total_seconds()),
                "reportingMTA": REPORTER,
                "delayedRecipients": [{"emailAddress": recipient, **report}],
            }
        case "reject":
            return {"reason": "Bad content"}
    return _bounce(kind, recipient, seconds)


def _bounce(kind: Kind, recipient: str, seconds: float) -> Event:
    bounce_type, subtype = BOUNCES[kind]
    reported = {} if kind == "away" else {"reportingMTA": REPORTER}
    return {
        "feedbackId": _feedback_id(),
        "bounceType": bounce_type,
        "bounceSubType": subtype,
        "bouncedRecipients": [{"emailAddress": recipient, **BOUNCED.get(kind, {})}],
        "timestamp": _stamp(seconds),
        **reported,
    }


def _feedback_id() -> str:
    return f"0100{uuid.uuid4().hex[:12]}-{uuid.uuid4()}-000000"
