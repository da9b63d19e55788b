"""Bodies that providers write into the feedback queue, in their own form."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from mailroom.errors import Malformed
from mailroom.feedback.reader import read
from mailroom.message.message import Reference
from mailroom.message.outcome import Event
from mailroom.providers.keywords import KNOWN, Keywords
from mailroom.providers.received import FeedbackItem
from tests.support.unit.shared import NOW_MS, REGION

TOPIC = f"arn:aws:sns:{REGION}:123456789012:mailroom-test-feedback"
TOPICS = [TOPIC]
SES_MESSAGE_ID = "EXAMPLE7c191be45-e9aedb9a-02f9-4d12-a87d-dd0099a07f8a-000000"
SID = f"SM{'0123456789abcdef' * 2}"
NUMBER, OURS = "+16175551234", "+12025550123"
VALIDATED = "Successfully validated SNS topic for Amazon SES event publishing."

_FIXTURES = Path(__file__).parent / "events_of_ses"
PUBLISHED = (
    *("send", "delivery", "bounce", "complaint", "reject"),
    *("rendering_failure", "delivery_delay", "open", "click", "subscription"),
)
NOTICES = ("notice_of_delivery", "notice_of_bounce", "notice_of_complaint")
MORE_NOTICES = ("notice_of_bounce_without_dsn", "notice_of_complaint_without_report")


@cache
def _fixture(name: str) -> str:
    return (_FIXTURES / f"{name}.json").read_text()


def ses_example(name: str) -> dict[str, Any]:
    """Return an example of SES's developer guide, with Mailroom's header and tags, for message m-1."""
    event: dict[str, Any] = json.loads(_fixture(name))
    return event


def sns(message: Any, **changes: Any) -> dict[str, Any]:
    """The envelope that SNS puts around a message for a queue."""
    return {
        "Type": "Notification",
        "MessageId": "12345678-1234-5678-1234-567812345678",
        "TopicArn": TOPIC,
        "Subject": "Amazon SES Email Event Notification",
        "Message": message if isinstance(message, str) else json.dumps(message) + "\n",
        "Timestamp": "2026-11-21T09:00:00.000Z",
        "SignatureVersion": "1",
        "Signature": "bm90IGxvb2tlZCBhdA==",
        "SigningCertURL": f"https://sns.{REGION}.amazonaws.com/SimpleNotificationService-0.pem",
        "UnsubscribeURL": f"https://sns.{REGION}.amazonaws.com/?Action=Unsubscribe",
        **changes,
    }


def twilio_event(
    status: str = "delivered", id_: str = "s-1", attempt: int = 1, **fields: Any
) -> dict[str, Any]:
    """Return the body that the function for Twilio's callbacks puts into the queue; a field of `...` is left
    out."""
    known = {"MessageSid": SID, "MessageStatus": status, "To": NUMBER, **fields}
    return {
        "source": "twilio",
        "reference": Reference(id_, attempt).text,
        "received_at": NOW_MS,
        "fields": {name: value for name, value in known.items() if value is not ...},
    }


def sms_event(kind: str = "TEXT_DELIVERED", **changes: Any) -> dict[str, Any]:
    """The example of AWS End User Messaging's user guide, for message s-1."""
    event = {
        "eventType": kind,
        "eventVersion": "1.0",
        "eventTimestamp": 1686975103470,
        "isFinal": True,
        "originationPhoneNumber": "+12065550152",
        "destinationPhoneNumber": "+14255550156",
        "isInternationalSend": False,
        "mcc": "310",
        "mnc": "800",
        "messageId": "862a8790-60c0-4430-9b2b-658bdexample",
        "messageRequestTimestamp": 1686975103170,
        "messageEncoding": "GSM",
        "messageType": "PROMOTIONAL",
        "messageStatus": kind.partition("_")[2],
        "messageStatusDescription": "Message has been accepted by phone carrier",
        "context": {"reference": Reference("s-1").text},
        "totalMessageParts": 1,
        "totalMessagePrice": 0.09582,
        "totalCarrierFee": 0.0,
        **changes,
    }
    return {name: value for name, value in event.items() if value is not ...}


def two_way(text: str = "STOP", *, sent: str = "2026-11-21T09:00:00.123Z", **changes: Any) -> dict[str, Any]:
    """A text that somebody sent to a number at AWS, as SNS publishes the example of the user guide."""
    payload = {
        "originationNumber": NUMBER,
        "destinationNumber": "+12125550101",
        "messageKeyword": "KEYWORD_123456789012",
        "messageBody": text,
        "inboundMessageId": "cae173d2-66b9-564c-8309-21f858e9fb84",
        "previousPublishedMessageId": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        **changes,
    }
    return sns({name: value for name, value in payload.items() if value is not ...}, Timestamp=sent)


def texted(wish: str = "stop", at: int = NOW_MS, number: str = NUMBER, to: str = OURS) -> dict[str, Any]:
    """A keyword as the function for Twilio's requests puts it into the queue."""
    return {"source": "twilio-text", "number": number, "sent_to": to, "wish": wish, "at": at}


def items_of(body: Any, region: str = "", words: Keywords = KNOWN) -> list[FeedbackItem]:
    """Return the items that a body is read as."""
    return read(body if isinstance(body, str) else json.dumps(body), TOPICS, region, words)


def events(body: Any, region: str = "") -> list[Event]:
    """Return the events of a body without texts to the stage."""
    found = items_of(body, region)
    events = [each for each in found if isinstance(each, Event)]
    assert len(events) == len(found)
    return events


def one_event(body: Any, region: str = "") -> Event:
    """Return the event of a body that must have exactly one."""
    (found,) = events(body, region)
    return found


def malformed_words(body: Any) -> str:
    """Why a body cannot be read."""
    try:
        found = events(body)
    except Malformed as malformed:
        return str(malformed)
    raise AssertionError(f"read as {found}")


THREE = ["jane@example.com", "mary@example.com", "richard@example.com"]


def bounce(
    *recipients: dict[str, Any], destination: list[str] | None = None, **changes: Any
) -> dict[str, Any]:
    """A hard bounce of these recipients, of a mail to them or to `destination`."""
    words = ses_example("bounce")
    words["bounce"] |= {"bouncedRecipients": list(recipients), **changes}
    words["mail"]["destination"] = destination or [each["emailAddress"] for each in recipients]
    return words


def bounced(address: str, code: str | None = None) -> dict[str, Any]:
    """Return a recipient of a bounce."""
    return {"emailAddress": address, **({"diagnosticCode": code} if code else {})}
