"""The numbers of collecting and composing. All times are in seconds."""

from collections.abc import Iterable

from stacks.derived.queues import QueueRules, queue_rules
from stacks.settings import Campaigns, Polling

PUT_SECONDS = 0.02
"""What is reckoned for one person: a put takes some 10 ms, and its share of what is asked before is less."""

PATIENCE_SECONDS = 2
"""How long a function waits for a connection to a database beyond two tries to make one."""
FIRST_PAGE_QUERIES = 2
"""Of collect: the rows without a key are counted once."""


def collect_polling(section: Campaigns) -> Polling:
    """One page an invocation: a page is as large as an invocation may hold."""
    return Polling(batch_size=1, maximum_concurrency=section.collect.maximum_concurrency)


def compose_polling(section: Campaigns, concurrencies: Iterable[int]) -> Polling:
    """So many as the campaign allows that allows the fewest: they all share the queue."""
    return Polling(batch_size=section.compose.batch_size, maximum_concurrency=min(concurrencies, default=2))


def collect_rules(section: Campaigns, lease_margin: int) -> QueueRules:
    """The rules of the queue that starts and pages come in on."""
    chosen = section.collect
    return queue_rules(chosen, collect_polling(section), chosen, lease_margin)


def compose_rules(section: Campaigns, lease_margin: int) -> QueueRules:
    """The rules of the queue that recipients come in on."""
    chosen = section.compose
    polling = compose_polling(section, ())
    return queue_rules(chosen, polling, chosen, lease_margin)
