"""The SES simulator's feedback without an emulator, with a clock that a test moves and a record of published
events."""

import json
import re
from collections.abc import Mapping
from typing import Any

from urllib3.exceptions import HTTPError

from mailroom.feedback.reader import read
from mailroom.message.outcome import Event as Read
from mailroom_local.providers.http import Reply, Request
from mailroom_local.providers.ses_events import SIMULATOR_DOMAIN
from mailroom_local.providers.ses_feedback import VALIDATED, SesFeedback, SuppressionList
from mailroom_local.providers.upstream import Upstream
from tests.support.local.feedback import SENDER, SET, TOPIC

ALL = ["SEND", "DELIVERY", "BOUNCE", "COMPLAINT", "REJECT", "DELIVERY_DELAY"]
MESSAGE = re.compile(r"PublishBatchRequestEntries\.member\.\d+\.Message")
NOW = 1_795_251_600.25
"""2026-11-21T09:00:00.25Z"""


class Emulated(Upstream):
    """A stand-in for the emulator: it has the event destinations of a configuration set, and records
    published events."""

    def __init__(self, *, wanted: list[str] = ALL, enabled: bool = True) -> None:
        super().__init__("http://127.0.0.1:1")
        self.destination = {
            "Enabled": enabled,
            "MatchingEventTypes": wanted,
            "SnsDestination": {"TopicArn": TOPIC},
        }
        self.batches: list[list[str]] = []
        self.failures = 0

    def pass_on(self, request: Request) -> Reply:
        if request.method == "GET":
            return Reply(200, json.dumps({"EventDestinations": [self.destination]}).encode())
        form = request.form
        assert (form["Action"], form["TopicArn"]) == ("PublishBatch", TOPIC)
        if self.failures:
            self.failures -= 1
            raise HTTPError
        self.batches.append([text for field, text in form.items() if MESSAGE.fullmatch(field)])
        return Reply(200, b"")

    @property
    def told(self) -> list[str]:
        return [text for batch in self.batches for text in batch if text != VALIDATED]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self.told]


class FeedbackBench:
    """The feedback with a clock that a test moves."""

    def __init__(self, **destination: Any) -> None:
        self.now = NOW
        self.emulated = Emulated(**destination)
        self.suppressed = SuppressionList()
        self.feedback = SesFeedback(self.emulated, self.suppressed, lambda: self.now)

    def accept(self, *recipients: str, message_id: str = "m-1", **content: Any) -> None:
        """Record the acceptance of a mail with these recipients; `cc` and `bcc` are among the further
        content."""
        mail = {
            "from": SENDER,
            "to": list(recipients),
            "cc": [],
            "bcc": [],
            "reply_to": [],
            "configuration_set": SET,
            "tags": {"correlation": "YQ", "attempt": "1"},
            "subject": "Hello",
            "headers": {"X-Correlation-ID": "YQ"},
        }
        self.feedback.accepted(
            message_id, mail | content, Request("POST", "/v2/email/outbound-emails", {}, b"")
        )

    def settle(self, seconds: float = 10) -> list[dict[str, Any]]:
        """Let time pass and return all different events."""
        self.now += seconds
        self.feedback.queue.run_due()
        return [json.loads(text) for text in dict.fromkeys(self.emulated.told)]


def simulator_address(name: str) -> str:
    return f"{name}@{SIMULATOR_DOMAIN}"


def summary(events: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return the type of each event, with type and subtype of a bounce, in alphabetical order."""
    found = []
    for each in events:
        bounce = each.get("bounce", {})
        found.append(
            (each["eventType"], *(bounce[name] for name in ("bounceType", "bounceSubType") if bounce))
        )
    return sorted(found)


def reading(event: Mapping[str, Any]) -> list[Read]:
    """Return an event as parsed by the feedback function."""
    envelope = {"Type": "Notification", "TopicArn": TOPIC, "Message": json.dumps(event)}
    return [each for each in read(json.dumps(envelope), [TOPIC]) if isinstance(each, Read)]
