"""Cost of one message in US dollars, by part. Parts below a hundredth of a mail's cost are left out."""

from mailroom.channels.contracts import CONTRACTS
from mailroom_ops.costs import prices
from mailroom_ops.costs.configured_lanes import ConfiguredLane
from mailroom_ops.costs.prices import invocation_part, lambda_time, queue_part
from mailroom_stacks.settings.feedback import FEEDBACK_BATCH
from mailroom_stacks.settings.sections import MEMORY_MB
from mailroom_stacks.settings.settings import Settings

DAYS_A_MONTH = 30.4
FOREVER_DAYS = 365
"""Days for which the storage of an item without expiry is counted."""
MAILBOX_BYTES, LEDGER_BYTES, ROW_BYTES = 1_100, 496, 230
"""Sizes of items, with the 100 bytes that DynamoDB adds: in the mailbox, assumed; in the ledger, of a mail
that was sent, by `make bench` (`ledger_item_bytes`); and in the table search."""
SEARCH_ROWS = 2
"""Number of rows that a message to one recipient has in the table `search`. A message with a template has one
more."""
FEEDBACK_SECONDS = 0.02
"""Seconds that the function `feedback` takes for each event of a provider, assumed."""
API_SECONDS = 0.05
"""Seconds that a function takes for each request to the HTTP API, assumed."""
ASSUMED = (
    "Assumed for the cost: batches are full, and every message is sent at its first attempt, without a wait "
    "for its send_at, its window or the daily limit. Mails, texts and pushes have a template. A mailbox item "
    f"has {MAILBOX_BYTES:,} bytes; without an expiry, its storage is counted for {FOREVER_DAYS} days.",
    f"Prices: {prices.DATED}. `mailroom docs limits` lists what is left out.",
)
"""Sentences about the assumptions of the costs."""


def message_parts(settings: Settings, lane: ConfiguredLane, plan: str = "") -> dict[str, float]:
    """Return the cost of one message by part, the provider's price last. `plan` is the account's plan, if the
    provider has plans; the default is that of a new account."""
    estimate = lane.estimate
    request = prices.SQS_FIFO_REQUEST if lane.fifo else prices.SQS_REQUEST
    parts = {
        "mailbox and ledger writes": (1 + estimate.ledger_units) * prices.WRITE_UNIT,
        "queue requests": queue_part(lane.batch, request),
        "sender's time": invocation_part(lane.working, lane.memory_mb, lane.batch),
        "sender's wait for its pace": lambda_time(lane.waiting, lane.memory_mb),
        "provider's events": estimate.events * _event_price(lane),
        "events on the bus": estimate.callbacks * prices.BUS_EVENT if settings.outcomes.event_bus else 0,
        "kept in tables": _kept_price(settings),
        "search": _search_price(settings, lane.channel) if settings.search else 0,
    }
    parts[lane.descriptor.title] = lane.descriptor.plans.get(plan, lane.descriptor.price)
    return {name: price for name, price in parts.items() if price}


def _event_price(lane: ConfiguredLane) -> float:
    """Return the cost of a provider's event: its delivery to a queue, the function `feedback`, and a
    write."""
    arrival = prices.SNS_PUBLISH
    if lane.descriptor.events:
        arrival = prices.HTTP_API_REQUEST + invocation_part(API_SECONDS, MEMORY_MB)
    function = invocation_part(FEEDBACK_SECONDS, MEMORY_MB, FEEDBACK_BATCH)
    return arrival + queue_part(prices.SENT_AT_ONCE, sent_at_once=1) + function + prices.WRITE_UNIT


def _kept_price(settings: Settings) -> float:
    """Return the cost of storing a message's items in the mailbox and the ledger."""
    mailbox_days = settings.retention.mailbox_days or FOREVER_DAYS
    byte_days = MAILBOX_BYTES * mailbox_days + LEDGER_BYTES * settings.retention.ledger_days
    return byte_days * _byte_day(settings)


def _search_price(settings: Settings, channel: str) -> float:
    """Return the cost of reading the ledger's item, and of writing and storing the message's rows in the
    table `search`."""
    row = prices.WRITE_UNIT + ROW_BYTES * settings.retention.ledger_days * _byte_day(settings)
    has_template = "template" in getattr(CONTRACTS.get(channel), "__struct_fields__", ())
    return prices.READ_UNIT + (SEARCH_ROWS + has_template) * row


def _byte_day(settings: Settings) -> float:
    """Return the price of storing a byte in a table, and in its backups, for a day."""
    backups = prices.RECOVERY_GB_MONTH if settings.deployment.point_in_time_recovery else 0
    return (prices.TABLE_GB_MONTH + backups) / DAYS_A_MONTH / 1e9
