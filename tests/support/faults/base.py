"""The base of all worlds of crash tests: a clock, places to stop at, queues, tables, and their pumps."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from mailroom.aws.dynamo_values import plain
from mailroom.content.payloads import Payloads
from mailroom.delivery.worker import Pace, Tools
from mailroom.environment import Sender
from mailroom.ledger.ledger import Ledger
from mailroom_stacks.settings.queues import RESEND_DELAYS
from tests.support.dynamodb import in_memory_client
from tests.support.faults.outside import NO_BUCKET, Clock, Outside, Queues, Stopped
from tests.support.tables import check_releases, create_ledger, create_table

FUNCTION_SECONDS = 60.0
LEASE, VISIBILITY = FUNCTION_SECONDS + 60, 6 * FUNCTION_SECONDS
MAX_RECEIVES = 12
KEYS = {
    "mailbox": ("id", "event_type"),
    "contents": ("message", "version"),
    "suppressions": ("recipient", "channel"),
    "preferences": ("recipient", "topic"),
    "budgets": ("name", None),
    "runs": ("campaign", "run"),
}
"""Keys of each table besides the ledger."""

Item = dict[str, Any]
Remaining = Callable[[], int]
"""Return the milliseconds that an invocation has left."""
Handle = Callable[[Item, Remaining], Item]


def sender_settings(channel: str, url: str, **changes: Any) -> Item:
    """Return the settings that the senders of all channels have."""
    return {
        "ledger_table": "ledger",
        "ledger_ttl_seconds": 1e6,
        "payload_bucket": "payloads",
        "channel": channel,
        "queue_url": url,
        "lease_seconds": LEASE,
        "pace_seconds": 0,
        "on_unknown": "resend",
        "resend_delays": RESEND_DELAYS,
        "backoff_seconds": 5,
        "backoff_cap_seconds": 300,
        "misconfigured_seconds": 20,
        "submit_seconds": 10,
        "record_seconds": 5,
        **changes,
    }


class BaseWorld:
    """AWS between the functions, on a virtual clock. A crash ends one invocation, and changes no other."""

    channel: ClassVar = "mail"
    """Channel of messages whose channel a test does not name."""

    def __init__(
        self,
        *tables: str,
        calls: Iterable[str] = ("update_item",),
        lease: float = LEASE,
        queues: Callable[[Clock], Queues] = lambda clock: Queues(clock, VISIBILITY, MAX_RECEIVES),
        time_is_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create the ledger and the named tables. `calls` are the calls of DynamoDB to stop at."""
        self.clock = Clock()
        self.outside = Outside(time_is_up=time_is_up)
        self.queues = queues(self.clock)
        self.dynamodb = in_memory_client()
        create_ledger(self.dynamodb)
        for table in tables:
            create_table(self.dynamodb, table, *KEYS[table])
        self.watched: Any = self.outside.watch(self.dynamodb, *calls)
        """Client of the function whose calls a test stops at. Other functions have `dynamodb`."""
        self.ledger = self.ledger_of(self.watched, lease)
        self.sqs: Any = self.outside.watch(
            self.queues, "send_message_batch", "change_message_visibility_batch"
        )
        self.payloads = Payloads(NO_BUCKET, "payloads")

    def ledger_of(self, client: Any, lease: float = LEASE) -> Ledger:
        """Return the ledger of a function with this client."""
        return Ledger(client, "ledger", lease=lease, ttl=1e6, clock=self.clock)

    def tools(self, settings: Sender, jitter: Callable[[], float] = lambda: 0.5) -> Tools:
        """Return what a worker of a new process works with."""
        return Tools(
            self.ledger,
            self.payloads,
            self.watched,
            self.sqs,
            Pace.of(settings, self.clock, self.clock.sleep),
            self.clock,
            self.clock.sleep,
            jitter,
        )

    def invoke(self, url: str, handle: Callable[[], Handle], most: int = 10) -> None:
        """Run one invocation of a new process for a queue, if a message is visible.

        After a crash, its records return at the end of their visibility timeout.
        """
        records = self.queues.receive(url, most)
        if not records:
            return
        try:
            response = handle()({"Records": records}, lambda: int(FUNCTION_SECONDS * 1000))
            self.queues.settle(url, records, response)
        except Stopped:
            pass
        check_releases(self.dynamodb)

    def play_until_empty(self, step: Callable[[], None], *urls: str, most: int = 400) -> None:
        """Run `step` each time that a message of these queues, or of any queue, becomes visible, until they
        are empty."""
        for _ in range(most):
            due = self.queues.next_visible(*urls)
            if due is None:
                return
            self.clock.now = max(self.clock.now, due)
            step()
        raise AssertionError(f"not settled: {self.queues.messages}")

    def found(self, name: str, event_type: str = "") -> Item:
        """Return the ledger's item, or {} if it does not exist."""
        return self.item("ledger", id=name, event_type=event_type or self.channel)

    def item(self, table: str, **key: str) -> Item:
        """Return the item of a table, or {} if it does not exist."""
        keys: Mapping[str, Any] = {name: {"S": value} for name, value in key.items()}
        return plain(self.dynamodb.get_item(TableName=table, Key=keys).get("Item", {}))
