"""What a message costs beside what `plan` counts: what is told of it, kept of it and logged of it.

All are US dollars a message.
"""

from dataclasses import dataclass

from ops import prices
from ops.cost import assumed
from ops.plan.lanes import Lane
from stacks.settings.campaigns import PUT_SECONDS
from stacks.settings.stage import Settings

GB = 1e9


@dataclass(frozen=True)
class Around:
    """Where a message goes, and whether it has a `callback_url`."""

    settings: Settings
    lane: Lane
    callbacks: bool = False

    @property
    def events(self) -> int:
        """What its provider tells of it."""
        return assumed.EVENTS.get(self.lane.channel, 0)

    @property
    def by_calls(self) -> bool:
        """Whether the provider tells by calling the API, one call an event."""
        return self.lane.channel == "sms" and self.settings.twilio is not None


def parts(around: Around) -> dict[str, float]:
    """All of them; those that cost nothing are left out."""
    found = {
        "dispatch's time": prices.lambda_time(assumed.DISPATCH_SECONDS, around.settings.dispatch.memory_mb),
        "what the provider tells": told(around),
        "callbacks": called_back(around) if around.callbacks else 0.0,
        "composing": composed(around) if around.lane.name == "bulk" else 0.0,
        "kept in tables": kept(around),
        "PDFs": pdf(around) if around.lane.channel == "fax" else 0.0,
        "logs": invocations(around) * assumed.LOG_BYTES / GB * prices.LOGGED_GB,
    }
    return {name: price for name, price in found.items() if price}


def told(around: Around) -> float:
    """The events of one message: their way here, and what they write into the ledger."""
    feedback = around.settings.feedback
    writes = prices.measured()["feedback_writes_per_event"]
    # Where a campaign goes out, and where a phone answers, one message's events come apart.
    apart = around.lane.name == "bulk" or around.lane.channel == "sms"
    event = (
        _way(around)
        + (1 + 2 / prices.QUEUED) * prices.SQS_REQUEST
        + writes["apart" if apart else "together"] * prices.WRITE_UNIT
        + prices.LAMBDA_REQUEST / feedback.batch_size
        + prices.lambda_time(assumed.FEEDBACK_SECONDS, feedback.memory_mb)
    )
    return float(around.events * event)


def _way(around: Around) -> float:
    if not around.by_calls:
        return prices.SNS_PUBLISH
    seconds = prices.lambda_time(assumed.CALLED_BACK_SECONDS, around.settings.api.memory_mb)
    return prices.HTTP_API_REQUEST + prices.LAMBDA_REQUEST + seconds


def called_back(around: Around) -> float:
    """What telling a `callback_url` costs: outcomes, the webhook queue and sender, a write into the
    ledger."""
    webhook = around.settings.webhook
    one = (
        (1 / prices.DISPATCHED + 1 / webhook.batch_size) * prices.LAMBDA_REQUEST
        + prices.lambda_time(assumed.DISPATCH_SECONDS, around.settings.outcomes.memory_mb)
        + (1 / prices.QUEUED + 2 / webhook.batch_size) * prices.SQS_REQUEST
        + prices.lambda_time(assumed.CALLBACK_SECONDS, webhook.memory_mb)
        + prices.WRITE_UNIT
    )
    return assumed.CALLBACKS.get(around.lane.channel, 1) * one


def composed(around: Around) -> float:
    """A campaign's recipient, by the calls that were counted; the put itself is the mailbox's write."""
    campaigns, calls = around.settings.campaigns, prices.measured()["campaign_calls_by_name"]
    queue = calls["SendMessageBatch"] + 2 * calls["BatchGetItem"]
    return float(
        (1 + calls["GetItem"]) * prices.UNREAD * prices.READ_UNIT
        + calls["UpdateItem"] * prices.WRITE_UNIT
        + queue * prices.SQS_REQUEST
        + calls["BatchGetItem"] * prices.LAMBDA_REQUEST
        + prices.lambda_time(PUT_SECONDS, campaigns.compose.memory_mb)
    )


def kept(around: Around) -> float:
    """The mailbox's and the ledger's item for as long as they are kept, and their backups."""
    retention = around.settings.retention
    ledger = prices.measured()["ledger_item_bytes"] + assumed.ITEM_OVERHEAD_BYTES
    if around.lane.channel in {"sms", "fax"}:
        ledger += assumed.INDEX_BYTES
    mailbox = assumed.MAILBOX_BYTES + assumed.ITEM_OVERHEAD_BYTES
    byte_days = ledger * retention.ledger_days + mailbox * (retention.mailbox_days or assumed.YEAR_DAYS)
    recoverable = around.settings.deployment.point_in_time_recovery
    price = prices.TABLE_GB + (prices.RECOVERY_GB if recoverable else 0)
    return float(byte_days / assumed.DAYS / GB * price)


def pdf(around: Around) -> float:
    """A fax's PDF: put, fetched by the provider, and kept."""
    size = assumed.PDF_BYTES / GB
    months = around.settings.retention.payload_days / assumed.DAYS
    return prices.S3_PUT + 2 * prices.S3_GET + size * (prices.OUT_GB + months * prices.BUCKET_GB)


def invocations(around: Around) -> float:
    """Of all functions, for one message."""
    feedback = around.events / around.settings.feedback.batch_size + (around.events if around.by_calls else 0)
    callbacks = assumed.CALLBACKS.get(around.lane.channel, 1) / around.settings.webhook.batch_size
    return 1 / prices.DISPATCHED + 1 / around.lane.batch + feedback + (callbacks if around.callbacks else 0)


def request(settings: Settings) -> dict[str, float]:
    """A message that comes by the HTTP API, one a request, beside what the message itself costs."""
    messages = settings.api.messages
    return {
        "HTTP API": prices.HTTP_API_REQUEST,
        "invocations": prices.LAMBDA_REQUEST,
        "function's time": prices.lambda_time(assumed.API_SECONDS, messages.memory_mb),
        "logs": assumed.LOG_BYTES / GB * prices.LOGGED_GB,
    }
