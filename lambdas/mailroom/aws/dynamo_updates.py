"""Conditional updates of one item by DynamoDB's UpdateItem.

Producers import this module as well, so boto3 is the only package that it may import.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mailroom.aws.dynamo_values import Sets, Value, plain

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Returns = Literal["NONE", "ALL_OLD", "ALL_NEW"]
"""Item that UpdateItem returns: none, the item before the update, or the item after it."""
_ALIAS = re.compile(r"#(\w+)")
_NO_ATTRIBUTES: Sets = {}
MAX_UPDATES = 100
"""Maximum number of writes in one TransactWriteItems."""


class Update(NamedTuple):
    """Changes of an item's attributes, in DynamoDB's form."""

    sets: Mapping[str, Value] = _NO_ATTRIBUTES
    """New values by attribute."""
    once: Mapping[str, Value] = _NO_ATTRIBUTES
    """Values by attribute, each set only if the item lacks the attribute."""
    appends: Mapping[str, Value] = _NO_ATTRIBUTES
    """Lists of further entries, by the attribute to whose list they are appended."""
    adds: Mapping[str, Value] = _NO_ATTRIBUTES
    """Increments of numbers, or members to be added to sets, by attribute."""
    removes: Sequence[str] = ()
    """Attributes that the item loses, except those that `sets` has."""

    @property
    def expression(self) -> str:
        """The update expression, in which `:name` is the placeholder for the value of the attribute
        `name`."""
        return _expression(*map(tuple, self))

    @property
    def values(self) -> Sets:
        """Values for the placeholders in the expression."""
        values = values_of({**self.sets, **self.once, **self.appends, **self.adds})
        if self.appends:
            values[":no_entries"] = {"L": []}
        return values


@lru_cache(maxsize=512)  # cached, because a process changes few different combinations of attributes
def _expression(*names: tuple[str, ...]) -> str:
    """Return the update expression from the names of the attributes in each field of an Update."""
    sets, first_values, appends, adds, removes = names
    firsts = [f"#{name} = if_not_exists(#{name}, :{name})" for name in first_values]
    entries = [f"#{name} = list_append(if_not_exists(#{name}, :no_entries), :{name})" for name in appends]
    clauses = {
        "SET": [*(f"#{name} = :{name}" for name in sets), *firsts, *entries],
        "REMOVE": [f"#{name}" for name in removes if name not in sets],
        "ADD": [f"#{name} :{name}" for name in adds],
    }
    return " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses.items() if parts)


def values_of(sets: Mapping[str, Value]) -> Sets:
    """Return the values for an expression in which `:name` is the placeholder for the value of `name`."""
    return {f":{name}": value for name, value in sets.items()}


@lru_cache(maxsize=512)  # cached, because a process uses few different expressions
def _frame(expression: str, condition: str, returns: Returns) -> dict[str, Any]:
    """Return the part of a request that is equal for all items. The expressions are in one line, because
    unlike DynamoDB, moto and emulators do not accept several lines."""
    frame: dict[str, Any] = {
        "UpdateExpression": " ".join(expression.split()),
        "ConditionExpression": " ".join(condition.split()),
        "ReturnValues": returns,
        # DynamoDB sends the item with the error of a failed condition, so that no read is needed.
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    if aliases := _ALIAS.findall(f"{expression} {condition}"):
        frame["ExpressionAttributeNames"] = {f"#{name}": name for name in aliases}
    return frame


class ConditionFailed(Exception):
    """Raised if the condition of an update is false. `item` is the item in plain Python; {} if the item does
    not exist."""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__("the condition is false")
        self.item = item


def update(
    client: "DynamoDBClient",
    table: str,
    key: Mapping[str, Value],
    expression: str,
    condition: str,
    values: Sets,
    *,
    names: Mapping[str, str] | None = None,
    returns: Returns = "NONE",
) -> dict[str, Any]:
    """Call UpdateItem, and return the item before or after the update, as `returns` requires, in plain
    Python. Raises ConditionFailed.

    In an expression, `#name` is an alias of the attribute `name`, unless `names` contains another attribute
    for this alias. An attribute such as `ttl` needs an alias, because DynamoDB reserves the word
    (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html).
    """
    request = {**_frame(expression, condition, returns), "TableName": table, "Key": key}
    # DynamoDB refuses an empty map of names or of values.
    if names:
        request["ExpressionAttributeNames"] = {**request.get("ExpressionAttributeNames", {}), **names}
    if values:
        request["ExpressionAttributeValues"] = values
    try:
        response = client.update_item(**request)
    except client.exceptions.ConditionalCheckFailedException as failure:
        raise ConditionFailed(plain(item_of(failure.response))) from None
    return plain(response["Attributes"]) if "Attributes" in response else {}


def try_update(
    client: "DynamoDBClient",
    table: str,
    key: Mapping[str, Value],
    expression: str,
    condition: str,
    values: Sets,
) -> tuple[bool, dict[str, Any]]:
    """Call UpdateItem, and return whether the condition was true, and the item if it was false."""
    try:
        return True, update(client, table, key, expression, condition, values)
    except ConditionFailed as failed:
        return False, failed.item


class Conditional(NamedTuple):
    """Arguments of `update` for one item."""

    key: Mapping[str, Value]
    expression: str
    condition: str
    values: Sets


def update_together(client: "DynamoDBClient", table: str, updates: Sequence[Conditional]) -> bool:
    """Update up to MAX_UPDATES items of different keys in one TransactWriteItems. Returns False, and updates
    no item, if a condition is false or another writer changes one of the items. Raises botocore's other
    errors."""
    writes: Any = []
    for key, expression, condition, values in updates:
        frame = _frame(expression, condition, "NONE")
        parts = {name: frame[name] for name in frame if not name.startswith("ReturnValues")}
        place = {"TableName": table, "Key": key, "ExpressionAttributeValues": values}
        writes.append({"Update": {**parts, **place}})
    try:
        client.transact_write_items(TransactItems=writes)
    except client.exceptions.TransactionCanceledException:
        return False
    return True


def item_of(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the item that DynamoDB sent with the error of a failed condition; the types of boto3 lack this
    item."""
    item: Mapping[str, Any] = response.get("Item", {})
    return item
