"""What a message costs beside what `plan` counts: its events, callbacks, storage and logs.

All are US dollars a message.
"""

from dataclasses import dataclass

from mailroom.campaigns.definition import RECIPIENTS_PER_MESSAGE
from mailroom.channels.channel import Estimate
from mailroom_ops.estimates import prices
from mailroom_ops.estimates.forecast import DISPATCH_SECONDS, FEEDBACK_SECONDS
from mailroom_ops.estimates.lanes import ConfiguredLane
from mailroom_ops.estimates.prices import estimate_of
from mailroom_stacks.settings.campaigns import PUT_SECONDS
from mailroom_stacks.settings.stage import Settings

GB = 1e9
DAYS = 30.4
"""Days of a month."""
YEAR_DAYS = 365
"""What is kept for ever is counted as so many days of it."""

# What no setting says and nothing has measured: `assumptions` names it where a cost is shown.
MAILBOX_BYTES = 1_000
ITEM_OVERHEAD_BYTES = 100
"""What DynamoDB adds to an item that it keeps, by its developer guide."""
INDEX_BYTES = 200
"""An entry of the ledger's index of numbers; each text message and each fax has one."""
ROW_BYTES = 130
"""A row of the table search."""
BUDGET_UNITS = 2
"""Write units of the budget for each batch: its item has a number or two for every hour."""
LOG_BYTES = 1_000
"""An invocation's: Lambda's own three lines, and one of metrics."""
PDF_BYTES = 100_000
COMPOSED = RECIPIENTS_PER_MESSAGE
"""Recipients of one queue message, unless a campaign says otherwise."""

TWILIO_CALLBACK_SECONDS = 0.05
API_SECONDS = 0.05
"""Seconds of a function for each call of Twilio's, and for each request."""
CALLBACK_SECONDS = estimate_of("webhook").latency
POLLS, POLL_SECONDS = 5, 20
"""Long polls of 20 s that Lambda keeps open at a queue, empty or not."""


@dataclass(frozen=True)
class MessagePath:
    """The lane that a message goes by, and whether it has a `callback_url`."""

    settings: Settings
    lane: ConfiguredLane
    has_callback: bool = False

    @property
    def estimate(self) -> Estimate:
        return self.lane.estimate

    @property
    def events_by_calls(self) -> bool:
        """Whether the provider tells by calling the API, one call an event."""
        by_twilio = self.estimate.events_by_twilio and self.settings.twilio is not None
        return by_twilio or self.lane.by_resend


def parts(path: MessagePath) -> dict[str, float]:
    """All of them; those that cost nothing are left out."""
    found = {
        "dispatch's time": prices.lambda_time(DISPATCH_SECONDS, path.settings.dispatch.memory_mb),
        "what the provider tells": events_cost(path),
        "callbacks": callbacks_cost(path) if path.has_callback else 0.0,
        "events on the bus": bus_cost(path) if path.settings.outcomes.event_bus else 0.0,
        "composing": composing_cost(path) if path.lane.name == "bulk" else 0.0,
        "the day's budget": budget_cost(path),
        "kept in tables": storage_cost(path),
        "search": search_cost(path) if path.settings.search else 0.0,
        "PDFs": pdf_cost(path.settings) if path.estimate.stores_pdf else 0.0,
        "logs": _invocations(path) * logs_cost(path.settings),
    }
    return {name: price for name, price in found.items() if price}


def budget_cost(path: MessagePath) -> float:
    """Counting a batch in its channel's day."""
    row = path.settings.channels.get(path.lane.channel)
    limited = row is not None and row.days
    return BUDGET_UNITS * prices.WRITE_UNIT / path.lane.batch if limited else 0.0


def events_cost(path: MessagePath) -> float:
    """The events of one message: their way here, and what they write into the ledger."""
    feedback = path.settings.feedback
    if path.events_by_calls:
        seconds = prices.lambda_time(TWILIO_CALLBACK_SECONDS, path.settings.api.memory_mb)
        arrival = prices.HTTP_API_REQUEST + prices.LAMBDA_REQUEST + seconds
    else:
        arrival = prices.SNS_PUBLISH
    event = (
        arrival
        + (1 + 2 / prices.QUEUED) * prices.SQS_REQUEST
        + prices.writes_of_event(path.lane.channel, bulk=path.lane.name == "bulk") * prices.WRITE_UNIT
        + prices.LAMBDA_REQUEST / feedback.batch_size
        + prices.lambda_time(FEEDBACK_SECONDS, feedback.memory_mb)
    )
    return float(path.estimate.events * event)


def callbacks_cost(path: MessagePath) -> float:
    """What telling a `callback_url` costs: outcomes, the webhook queue and sender, a write into the
    ledger."""
    webhook = path.settings.webhook
    one = (
        (1 / prices.DISPATCHED + 1 / webhook.batch_size) * prices.LAMBDA_REQUEST
        + prices.lambda_time(DISPATCH_SECONDS, path.settings.outcomes.memory_mb)
        + (1 / prices.QUEUED + 2 / webhook.batch_size) * prices.SQS_REQUEST
        + prices.lambda_time(CALLBACK_SECONDS, webhook.memory_mb)
        + prices.WRITE_UNIT
    )
    return path.estimate.callbacks * one


def bus_cost(path: MessagePath) -> float:
    """An event for each outcome of a message; and `outcomes`, unless callbacks have paid for it."""
    one = prices.BUS_EVENT
    if not path.has_callback:
        one += prices.LAMBDA_REQUEST / prices.DISPATCHED
        one += prices.lambda_time(DISPATCH_SECONDS, path.settings.outcomes.memory_mb)
    return path.estimate.callbacks * one


def composing_cost(path: MessagePath) -> float:
    """A campaign's recipient; the put itself is the mailbox's write. What is asked once a chunk is shared by
    its recipients: a queue message (sent ten at once, received, deleted), an invocation, the run and its
    counts. Their choices are read one by one."""
    chunk = 1 / COMPOSED
    return float(
        (1 + chunk) * prices.UNREAD * prices.READ_UNIT
        + chunk * prices.WRITE_UNIT
        + (2 + 1 / prices.QUEUED) * chunk * prices.SQS_REQUEST
        + chunk * prices.LAMBDA_REQUEST
        + prices.lambda_time(PUT_SECONDS, path.settings.campaigns.compose.memory_mb)
    )


def storage_cost(path: MessagePath) -> float:
    """The mailbox's and the ledger's item for as long as they are kept, and their backups."""
    retention = path.settings.retention
    ledger = prices.LEDGER_BYTES + ITEM_OVERHEAD_BYTES
    if path.estimate.indexed:
        ledger += INDEX_BYTES
    mailbox = MAILBOX_BYTES + ITEM_OVERHEAD_BYTES
    byte_days = ledger * retention.ledger_days + mailbox * (retention.mailbox_days or YEAR_DAYS)
    return byte_days * _byte_day(path)


def search_cost(path: MessagePath) -> float:
    """Making a message to one recipient findable: its ledger's item read, two rows written, and kept as long
    as the item, with their backups."""
    rows = 2
    return float(
        rows * prices.WRITE_UNIT
        + prices.READ_UNIT
        + prices.LAMBDA_REQUEST / prices.DISPATCHED
        + prices.lambda_time(DISPATCH_SECONDS, path.settings.outcomes.memory_mb)
        + rows * (ROW_BYTES + ITEM_OVERHEAD_BYTES) * path.settings.retention.ledger_days * _byte_day(path)
    )


def _byte_day(path: MessagePath) -> float:
    """A byte kept in a table for a day."""
    recoverable = path.settings.deployment.point_in_time_recovery
    return float((prices.TABLE_GB + (prices.RECOVERY_GB if recoverable else 0)) / DAYS / GB)


def pdf_cost(settings: Settings) -> float:
    """A PDF in the payload bucket: put, fetched by the provider, and kept."""
    months = settings.retention.payload_days / DAYS
    kept = PDF_BYTES / GB * (prices.OUT_GB + months * prices.BUCKET_GB)
    return prices.S3_PUT + 2 * prices.S3_GET + kept


def logs_cost(settings: Settings) -> float:
    """An invocation's log lines: written, and kept."""
    months = settings.retention.log_days / DAYS
    return LOG_BYTES / GB * (prices.LOGGED_GB + months * prices.KEPT_LOG_GB)


def _invocations(path: MessagePath) -> float:
    events = path.estimate.events
    feedback = events / path.settings.feedback.batch_size + (events if path.events_by_calls else 0)
    callbacks = path.estimate.callbacks / path.settings.webhook.batch_size if path.has_callback else 0
    return 1 / prices.DISPATCHED + 1 / path.lane.batch + feedback + callbacks


def request_parts(settings: Settings) -> dict[str, float]:
    """A message that comes by the HTTP API, one a request, beside what the message itself costs."""
    return {
        "HTTP API": prices.HTTP_API_REQUEST,
        "invocations": prices.LAMBDA_REQUEST,
        "function's time": prices.lambda_time(API_SECONDS, settings.api.messages.memory_mb),
        "logs": logs_cost(settings),
    }


def assumptions(*, forever: bool, callbacks: bool) -> list[str]:
    """What is assumed, for people. `forever`: the mailbox's items never go."""
    kept = "for ever (counted: a year of it)" if forever else "as long as the settings say"
    told = ", each with a callback_url" if callbacks else "; callbacks are not in it (--callbacks)"
    mail, sms = estimate_of("mail"), estimate_of("sms")
    return [
        "Batches are full, as in a backlog, and every message goes well at the first attempt" + told + ".",
        "No message waits for its send_at, for the day or for a window.",
        f"An item of the mailbox has {MAILBOX_BYTES:,} bytes and stays {kept}.",
        f"Providers tell {mail.events} events of a mail, {sms.events} of a text message.",
        f"An invocation writes {LOG_BYTES:,} bytes of logs; a fax's PDF has {PDF_BYTES // 1000} KB, in the "
        "payload bucket.",
        f"Function time: {FEEDBACK_SECONDS:g} s an event, {API_SECONDS:g} s a request, "
        f"{CALLBACK_SECONDS:g} s a callback, {DISPATCH_SECONDS:g} s a message in dispatch.",
        f"An empty queue costs {POLLS} long polls of {POLL_SECONDS} s, day and night.",
        "Keys rotate once a year. The rotation is counted as from a key's third year on; it costs nothing in "
        "the first year, and half as much in the second.",
        "Each stream's mapping is counted with all its metrics. Whether Lambda reports them while nothing "
        "comes is not documented.",
        "No free allowance is taken off but the first 10 alarms; no taxes, support, traffic between regions.",
    ]
