"""Bodies of the feedback queue, in the form of SES events that SNS delivers and of callbacks by Twilio."""

import json
from datetime import UTC, datetime
from typing import Any

from mailroom.message.message import Reference

TOPIC = "arn:aws:sns:eu-central-1:123456789012:mailroom-test-feedback"
SENT = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def ses_body(
    kind: str,
    id_: str,
    *recipients: str,
    attempt: int = 1,
    to: list[str] | None = None,
    provider_id: str = "ses-1",
    second: int = 1,
    **section: Any,
) -> dict[str, Any]:
    """Return an event of SES, `second` seconds after the mail was sent.

    `section` changes the object of the event's kind. `recipients` are the recipients that the event names,
    and `to` the recipients of the mail.
    """
    named = list(recipients) or ["ada@example.com"]
    reference = Reference(id_, attempt)
    at = _iso(second)
    sections: dict[str, dict[str, Any]] = {
        "Send": {},
        "Delivery": {"timestamp": at, "recipients": named, "smtpResponse": "250 ok"},
        "Bounce": {
            "timestamp": at,
            "bounceType": "Permanent",
            "bounceSubType": "General",
            "bouncedRecipients": [
                {"emailAddress": each, "diagnosticCode": "smtp; 550 5.1.1"} for each in named
            ],
            "feedbackId": "0100",
        },
        "Complaint": {
            "timestamp": at,
            "complaintFeedbackType": "abuse",
            "complainedRecipients": [{"emailAddress": each} for each in named],
            "feedbackId": "0101",
        },
        "Reject": {"reason": "Bad content"},
        "DeliveryDelay": {
            "timestamp": at,
            "delayType": "MailboxFull",
            "delayedRecipients": [{"emailAddress": each} for each in named],
        },
        "Open": {"timestamp": at, "userAgent": "x", "ipAddress": "192.0.2.1"},
    }
    return {
        "eventType": kind,
        "mail": {
            "timestamp": _iso(0),
            "messageId": provider_id,
            "source": "post@mailroom.example",
            "destination": to or named,
            "headersTruncated": False,
            "headers": [{"name": "X-Correlation-ID", "value": reference.text}],
            "tags": {"correlation": [Reference(id_).text], "attempt": [str(attempt)]},
        },
        kind[0].lower() + kind[1:]: {**sections[kind], **section},
    }


def by_sns(event: dict[str, Any], topic: str = TOPIC) -> str:
    """Return the event in the envelope with which SNS puts it into the queue."""
    envelope = {
        "Type": "Notification",
        "MessageId": "0",
        "TopicArn": topic,
        "Message": json.dumps(event),
        "Timestamp": _iso(0),
    }
    return json.dumps(envelope)


def twilio_callback(
    status: str, id_: str, *, attempt: int = 1, sid: str = "SM1", at: int = 0, **fields: str
) -> str:
    """Return a status callback in the form in which twilio-callbacks puts it into the queue."""
    known = {"MessageSid": sid, "MessageStatus": status, "To": "+16175551234"}
    body = {
        "source": "twilio",
        "reference": Reference(id_, attempt).text,
        "received_at": int(SENT.timestamp() * 1000) + at,
        "fields": {**known, **fields},
    }
    return json.dumps(body)


def keyword_text(wish: str, *, number: str = "+16175551234", at: int = 0) -> str:
    """Return a text to a number of the stage in the form in which twilio-callbacks puts it into the queue."""
    known = {"source": "twilio-text", "number": number, "sent_to": "+12025550123", "wish": wish}
    return json.dumps({**known, "at": int(SENT.timestamp() * 1000) + at})


def _iso(second: int) -> str:
    moment = datetime.fromtimestamp(SENT.timestamp() + second, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
