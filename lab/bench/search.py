"""How long a page takes among many messages. DynamoDB Local, for the emulator reads a whole partition."""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from lab import size
from mailroom.aws.dynamo_batches import batch_put
from mailroom.aws.dynamo_values import image_of
from mailroom.environment import IndexSettings
from mailroom.search.finder import Filter, Finder
from mailroom.search.indexer import Indexer
from mailroom.search.results import Tallies
from tests.oracle.engine import install, running
from tests.support.faults.world import create_table
from tests.support.unit.searching import in_run, record, rows_with

MESSAGES, BATCH = size(100_000, 200), 100
ROUNDS = size(40, 1)
RUN, BEGUN = "2026-11-21T09:00Z", 1_795_251_600
ADA = "ada@example.com"
ENDED = ("delivered",) * 18 + ("bounced", "failed")
SETTINGS = IndexSettings(
    ledger_table="ledger", search_table="search", search_key_name="key", campaigns=("spring",)
)


def measure() -> dict[str, Any]:
    """The median, and the longest, of each page's milliseconds. Half of the messages are to one recipient,
    and all are of one run."""
    install()
    with running() as client:
        create_table(client, SETTINGS.ledger_table)
        create_table(client, SETTINGS.search_table, "found_by", "put")
        batch_put(client, SETTINGS.ledger_table, [image_of(each) for each in _items()])
        indexer = Indexer(SETTINGS, client, rows_with())
        for first in range(0, MESSAGES, BATCH):
            indexer.handle([record(_id(number)) for number in range(first, first + BATCH)])
        finder = Finder(client, SETTINGS.search_table, SETTINGS.ledger_table, rows_with())
        tallies = Tallies(client, SETTINGS.search_table)
        pages: dict[str, Callable[[], object]] = {
            "newest": finder.newest,
            "to somebody": lambda: finder.to(ADA),
            "of a run": lambda: finder.newest(Filter(campaign=f"spring#{RUN}")),
            "bounced, 1,000 looked at": lambda: finder.newest(Filter(status="bounced")),
            "results of a run": lambda: tallies.of_run("spring", RUN, BEGUN),
        }
        return {"search_messages": MESSAGES, "search_ms": {name: _took(page) for name, page in pages.items()}}


def _id(number: int) -> str:
    return in_run("spring", RUN, BEGUN).id_of(str(number))


def _items() -> Iterator[dict[str, Any]]:
    now = int(time.time() * 1000)
    for number in range(MESSAGES):
        yield {
            "id": _id(number),
            "event_type": "mail",
            "status": ENDED[number % len(ENDED)],
            "to": ADA if number % 2 else f"person-{number}@example.com",
            "subject": "Your order is on its way",
            "template": "order",
            "putAt": now + number,
            "completedAt": now + number,
            "attempts": 1,
            "ttl": now // 1000 + 86_400,
        }


def _took(page: Callable[[], object]) -> list[float]:
    page()  # the first connects
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        page()
        times.append(1000 * (time.perf_counter() - began))
    return [round(statistics.median(times), 1), round(max(times), 1)]
