"""Counts orders without a message and messages without an order, if an application dies while it writes the
order and sends the message.

The process of the application dies once, before or after one of its calls to the outside. After that, the
request is not repeated, as with a web request, or it is repeated, as with a queue.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

from mailroom.aws.dynamo_values import plain
from mailroom.mailbox import MailboxWriter
from mailroom.message.message import Reference
from mailroom.providers.resend.sender import Request
from tests.proof.counting import SIDES, Counts
from tests.support.faults.outside import Stopped
from tests.support.faults.world import World, create_table, mail

ORDER = "order-42"
COLUMNS = ("stops", "order_alone", "message_alone", "sent_twice")
LABELS = {
    "transaction": "one transaction with Mailroom",
    "ses_commit_first": "SES: commit, then call",
    "ses_call_first": "SES: call, then commit",
    "resend_commit_first": "Resend with a key: commit, then call",
    "resend_call_first": "Resend with a key: call, then commit",
}
"""Titles of the ways, in the order of the table."""


class Shop(World):
    """Application with a table of orders. Mailroom sends the messages in the mailbox."""

    def __init__(self, way: Callable[["Shop"], None], *, keyed: bool = False) -> None:
        super().__init__(keyed=keyed)
        create_table(self.dynamodb, "orders", "id", None)
        self.tables = self.outside.watch(self.dynamodb, "put_item", "transact_write_items")
        self._way = way

    def ask(self) -> None:
        """Make a request for the order."""
        with suppress(Stopped):
            self._way(self)

    def finish(self) -> None:
        """Let Mailroom send the messages in the mailbox."""
        self.items = [plain(image) for image in self.dynamodb.scan(TableName="mailbox")["Items"]]
        self.stream()
        self.settle()

    def orders(self) -> int:
        return int(self.dynamodb.scan(TableName="orders")["Count"])

    def commit(self) -> None:
        """Put the order if the table lacks it."""
        with suppress(self.dynamodb.exceptions.ConditionalCheckFailedException):
            self.tables.put_item(**self.order()["Put"])

    def order(self) -> dict[str, Any]:
        """Return the order as an entry of a transaction."""
        item = {"id": {"S": ORDER}}
        return {
            "Put": {"TableName": "orders", "Item": item, "ConditionExpression": "attribute_not_exists(id)"}
        }

    def call(self) -> None:
        """Send the message by the provider's own API."""
        reference, to = Reference(ORDER).text, "ada@example.com"
        if self.resend is not None:
            body = json.dumps({"to": [to], "headers": {"X-Correlation-ID": reference}}).encode()
            key = hashlib.sha256(ORDER.encode()).hexdigest()
            self.outside.watch(self.resend, "submit").submit(Request(key, body, "Your order"))
            return
        header = {"Name": "X-Correlation-ID", "Value": reference}
        self.outside.watch(self.ses, "send_email").send_email(
            Destination={"ToAddresses": [to]}, Content={"Simple": {"Headers": [header]}}
        )


def _in_one(shop: Shop) -> None:
    entry = MailboxWriter(shop.dynamodb, "mailbox").entry(mail(ORDER))
    # The transaction is cancelled if the table has the order already. Then the mailbox has its message too.
    with suppress(shop.dynamodb.exceptions.TransactionCanceledException):
        shop.tables.transact_write_items(TransactItems=[shop.order(), entry])


def _commit_first(shop: Shop) -> None:
    shop.commit()
    shop.call()


def _call_first(shop: Shop) -> None:
    shop.call()
    shop.commit()


WAYS: dict[str, Callable[[], Shop]] = {
    "transaction": partial(Shop, _in_one),
    "ses_commit_first": partial(Shop, _commit_first),
    "ses_call_first": partial(Shop, _call_first),
    "resend_commit_first": partial(Shop, _commit_first, keyed=True),
    "resend_call_first": partial(Shop, _call_first, keyed=True),
}


def count(begin: Callable[[], Shop], *, again: bool) -> Counts:
    """Return how often an order had no message, a message had no order, and a message was sent twice, summed
    over all stops."""
    whole = begin()
    whole.ask()
    total: Counter[str] = Counter()
    for place in product(range(len(whole.outside.calls)), SIDES):
        shop = begin()
        shop.outside.stop = place
        shop.ask()
        if again:
            shop.ask()
        shop.finish()
        orders, messages = shop.orders(), shop.sends()[ORDER]
        total["stops"] += 1
        total["order_alone"] += orders > messages
        total["message_alone"] += messages > 0 == orders
        total["sent_twice"] += messages > 1
    return {name: total[name] for name in COLUMNS}


def counted() -> dict[str, dict[str, Counts]]:
    """Return the counts of each way, if the request is made once and if it is repeated."""
    return {
        when: {name: count(begin, again=again) for name, begin in WAYS.items()}
        for when, again in (("asked once", False), ("asked again", True))
    }
