"""Puts messages into the mailbox table, as a producer does."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from boto3.dynamodb.types import TypeSerializer

from local.aws import LocalSession, patient
from local.demo.scenarios.mails import Item
from local.stage.workspace import MAILBOX

THREADS = 4
UNLESS_THERE = "attribute_not_exists(id)"


class Postbox:
    """The producer's side: conditional puts, so that a run of an import can be repeated."""

    def __init__(self, url: str) -> None:
        self._dynamodb = LocalSession().client("dynamodb", endpoint_url=url, config=patient(THREADS))
        self._typed = TypeSerializer()

    def put_new(self, item: Item) -> bool:
        """Put unless the message is there already; False if it was."""
        try:
            self._dynamodb.put_item(
                TableName=MAILBOX, Item=self._serialized(item), ConditionExpression=UNLESS_THERE
            )
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def put_again(self, item: Item) -> None:
        """Put without a condition: replaces what is there."""
        self._dynamodb.put_item(TableName=MAILBOX, Item=self._serialized(item))

    def delete(self, item: Item) -> None:
        """Take the item out of the mailbox."""
        key = {name: item[name] for name in ("id", "event_type")}
        self._dynamodb.delete_item(TableName=MAILBOX, Key=self._serialized(key))

    def put_all(self, items: Sequence[Item], done: Callable[[], None]) -> int:
        """Put all by a few threads; `done` is called after each. How many were new."""

        def put(item: Item) -> bool:
            new = self.put_new(item)
            done()
            return new

        with ThreadPoolExecutor(THREADS) as pool:
            return sum(pool.map(put, items))

    def _serialized(self, item: Item) -> Item:
        return {name: self._typed.serialize(value) for name, value in item.items()}
