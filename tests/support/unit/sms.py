"""Text messages, a provider whose responses a test sets, and the adapter between them."""

from collections.abc import Container
from typing import Any

from msgspec import structs

from mailroom.channels.sms.adapter import SmsAdapter
from mailroom.channels.sms.contract import Sms, SmsRequest, sms_in
from mailroom.content.payloads import Payloads
from mailroom.environment import SmsSender
from mailroom.message.message import parse
from mailroom.message.outcome import Evidence, NotFound, Outcome, Sent
from mailroom_stacks.settings.queues import RESEND_DELAYS
from tests.support.unit.shared import BUCKET, LEDGER, PREFERENCES, SUPPRESSIONS, Aws, Item

TO = "+15555550100"
FROM = "+15555550199"
MEDIA = "https://files.example/cat.jpg"
IN_BUCKET = f"s3://{BUCKET}/cat.jpg"
REQUEST = SmsRequest(TO, "Your table is ready", (), "cy0x", None, {"segments": 1, "encoding": "GSM-7"})

SMS_SETTINGS: dict[str, Any] = {
    "ledger_table": LEDGER,
    "ledger_ttl_seconds": 7_776_000.0,
    "payload_bucket": BUCKET,
    "channel": "sms",
    "queue_url": "https://sqs/sms",
    "lease_seconds": 120.0,
    "pace_seconds": 0.0,
    "on_unknown": "resend",
    "resend_delays": RESEND_DELAYS,
    "backoff_seconds": 5.0,
    "backoff_cap_seconds": 900.0,
    "misconfigured_seconds": 20.0,
    "submit_seconds": 10.0,
    "record_seconds": 5.0,
    "suppressions_table": SUPPRESSIONS,
    "preferences_table": PREFERENCES,
    "sms_provider": "twilio",
    "sms_base_url": "https://twilio.example",
    "sms_sender": FROM,
    "max_segments": 3,
    "media_seconds": 1800,
    "clock_skew_seconds": 60.0,
}


def sms_request_with(**changes: Any) -> SmsRequest:
    return structs.replace(REQUEST, **changes)


def sms_item(**changes: Any) -> Item:
    """Return a valid item; a change to `...` removes the attribute."""
    base = {"id": "s-1", "event_type": "sms", "to": TO, "text": "Your table is ready"}
    return {name: value for name, value in {**base, **changes}.items() if value is not ...}


def sms(region: str = "", **changes: Any) -> Sms:
    """Return a valid message."""
    return parse(sms_item(**changes), {"sms": sms_in(region)})


class FakeSms:
    """A provider that responds with the outcomes of a test, in turn, and records its calls."""

    provider = "fake"
    account = "ours"

    def __init__(self, *outcomes: Outcome | Exception, finds: Evidence | Exception | None = None) -> None:
        self._outcomes = list(outcomes) or [Sent("SM1")]
        self._finds = finds or NotFound()
        self.submitted: list[SmsRequest] = []
        self.searches: list[tuple[SmsRequest, float, Container[str]]] = []

    def submit(self, request: SmsRequest) -> Outcome:
        self.submitted.append(request)
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def find(self, request: SmsRequest, since: float, other_ids: Container[str]) -> Evidence:
        self.searches.append((request, since, other_ids))
        if isinstance(self._finds, Exception):
            raise self._finds
        return self._finds


def sms_settings(**changes: Any) -> SmsSender:
    return SmsSender(**{**SMS_SETTINGS, **changes})


def sms_adapter_of(provider: FakeSms | None = None, aws: Aws | None = None, **changes: Any) -> SmsAdapter:
    s3: Any = aws.s3 if aws else None
    return SmsAdapter(sms_settings(**changes), lambda: provider or FakeSms(), Payloads(s3, BUCKET))
