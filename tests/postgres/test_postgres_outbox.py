"""The outbox: rows of an application's own transactions, each put into the mailbox once."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from psycopg import Connection
from psycopg.types.json import Jsonb

from mailroom.aws.dynamo_values import plain
from mailroom.campaigns.databases import Databases
from mailroom.client import Mailroom
from mailroom.outbox import TABLE, relay
from tests.support.dynamodb import in_memory_client
from tests.support.faults.outside import Outside, Side, Stopped
from tests.support.faults.world import create_table

MAILBOX = "mailroom-test-mailbox"
Connect = Callable[[], AbstractContextManager[Any]]


class OutboxWorld:
    """A mailbox, the application's database, and what is called of both."""

    def __init__(self, databases: Databases) -> None:
        self.outside = Outside()
        self._databases = databases
        self.dynamodb = in_memory_client()
        create_table(self.dynamodb, MAILBOX, "id", "event_type")
        self.mailroom = Mailroom("test", self, workers=1)  # type: ignore[arg-type] # as a session: it has clients
        with databases.connection("app") as connection:
            connection.execute(TABLE)

    def client(self, _service: str, **_settings: Any) -> Any:
        return self.outside.watch(self.dynamodb, "put_item")

    @contextmanager
    def connect(self) -> Iterator[Any]:
        with self._databases.connection("app") as connection:
            yield self.outside.watch(connection, "execute")

    def order(self, *items: Any) -> None:
        """Put a message in the transaction of an order, as an application does."""
        with self._databases.connection("app") as connection:
            for each in items:
                connection.execute("INSERT INTO mailroom_outbox (item) VALUES (%s)", [Jsonb(each)])

    def relay(self, rows: int = 3) -> Any:
        return relay(self.connect, self.mailroom, rows)

    def rows(self) -> list[tuple[str, bool, str | None]]:
        with self._databases.connection("app") as connection:
            asked = "SELECT item->>'id', put_at IS NOT NULL, problem FROM mailroom_outbox ORDER BY row_id"
            return [(id_, put, problem) for id_, put, problem in connection.execute(asked).fetchall()]

    def mailbox(self) -> dict[str, Any]:
        items = (plain(each) for each in self.dynamodb.scan(TableName=MAILBOX)["Items"])
        return {each["id"]: each for each in items}


@pytest.fixture
def world(databases: Databases) -> OutboxWorld:
    return OutboxWorld(databases)


def order_item(at: int, **changes: Any) -> dict[str, Any]:
    return {"id": f"order-{at}", "event_type": "mail", "to": "ada@example.com", "template": "order"} | changes


def test_each_outbox_row_is_put_into_the_mailbox_unchanged_and_marked_as_put(world: OutboxWorld) -> None:
    orders = [order_item(at, total=at) for at in range(7)]
    world.order(*orders)
    assert world.relay().accepted == 7
    assert world.mailbox() == {each["id"]: each for each in orders}
    assert world.rows() == [(each["id"], True, None) for each in orders]


def test_a_relay_does_not_read_an_outbox_row_that_was_already_put(world: OutboxWorld) -> None:
    world.order(order_item(1))
    world.relay()
    assert world.relay().total == 0


def test_a_relay_marks_an_outbox_row_that_cannot_be_put_with_the_reason_and_puts_the_others(
    world: OutboxWorld,
) -> None:
    world.order(order_item(1), {"event_type": "mail"}, order_item(1, to="bob@example.com"), order_item(2))
    summary = world.relay()
    assert (summary.accepted, summary.refused, summary.conflict) == (2, 1, 1)
    assert world.rows() == [
        ("order-1", True, None),
        (None, False, "id: is missing or not a string; add it as a string"),
        ("order-1", False, "id: is used for another message; use a new one"),
        ("order-2", True, None),
    ]
    assert world.relay().total == 0


UNREADABLE = {
    "a number of 5,001 digits": ("1e5000", "n: is not a number that DynamoDB allows"),
    "a number that is too small": ("1e-400", "n: is not a number that DynamoDB allows"),
    "1,500 levels": ("[" * 1500 + "]" * 1500, "item: "),
    "300 levels": ("[" * 300 + "]" * 300, "n[0]"),
}


@pytest.mark.parametrize(("value", "problem"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_undecodable_row_of_the_outbox_does_not_stop_the_others(
    world: OutboxWorld, value: str, problem: str
) -> None:
    """Also a row that PostgreSQL takes and Python or DynamoDB does not."""
    world.order(order_item(1))
    with world.connect() as connection:
        bad = f'{{"id": "bad", "event_type": "mail", "n": {value}}}'
        connection.execute("INSERT INTO mailroom_outbox (item) VALUES (%s::jsonb)", [bad])
    world.order(order_item(2))
    summary = world.relay()
    assert (summary.accepted, summary.refused, summary.failed) == (2, 1, 0)
    (refused,) = summary.problems
    assert (refused.id, refused.event_type, refused.state) == ("bad", "mail", "refused")
    assert refused.error.startswith(problem)
    assert world.rows() == [("order-1", True, None), ("bad", False, refused.error), ("order-2", True, None)]
    assert world.relay().total == 0


def test_a_number_of_an_outbox_row_keeps_its_digits(world: OutboxWorld) -> None:
    with world.connect() as connection:
        numbers = '"price": 19.90, "n": 12345678901234567890.123456789'
        order = f'{{"id": "order-1", "event_type": "mail", "to": "ada@example.com", {numbers}}}'
        connection.execute("INSERT INTO mailroom_outbox (item) VALUES (%s::jsonb)", [order])
    assert world.relay().accepted == 1
    order = world.mailbox()["order-1"]
    assert (order["price"], order["n"]) == (Decimal("19.9"), Decimal("12345678901234567890.123456789"))


def test_the_next_relay_puts_the_outbox_rows_that_failed_because_dynamodb_was_unreachable(
    world: OutboxWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.order(order_item(1), order_item(2), order_item(3), order_item(4))
    with monkeypatch.context() as patch:
        patch.setattr(world.dynamodb, "put_item", _unreachable)
        assert world.relay().failed == 3
    assert [put for _, put, _ in world.rows()] == [False] * 4
    assert world.relay().accepted == 4


def _unreachable(**_request: Any) -> None:
    raise EndpointConnectionError(endpoint_url="https://dynamodb.example.com")


def test_a_relay_leaves_rows_that_another_transaction_has_locked_to_a_later_relay(
    world: OutboxWorld, app: Connection
) -> None:
    world.order(*(order_item(at) for at in range(6)))
    with app.transaction():
        app.execute("SELECT row_id FROM mailroom_outbox ORDER BY row_id LIMIT 2 FOR UPDATE")
        assert world.relay().accepted == 4
    assert world.relay().accepted == 2


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_repeated_relay_has_put_every_outbox_row_after_an_interruption_at_any_call(
    databases: Databases, side: Side
) -> None:
    orders = [order_item(at) for at in range(5)]
    at, stopped = 0, True
    while stopped:
        with databases.connection("app") as connection:
            connection.execute("DROP TABLE IF EXISTS mailroom_outbox")
        world = OutboxWorld(databases)
        world.order(*orders)
        world.outside.stop = (at, side)
        try:
            world.relay()
            stopped = False
        except Stopped:
            world.relay()
        assert world.mailbox() == {each["id"]: each for each in orders}, world.outside.stopped_at
        assert all(put for _, put, _ in world.rows()), world.outside.stopped_at
        at += 1
    assert at > 5 + 2 * 2  # each put, and each transaction's two statements
