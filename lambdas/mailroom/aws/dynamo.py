"""DynamoDB's own forms: attribute values, and one update's expression."""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from mailroom.aws.attribute_values import Value as Value
from mailroom.aws.attribute_values import plain as plain

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


def string(value: str) -> Value:
    """A string attribute."""
    return {"S": value}


def number(value: int | float) -> Value:
    """A whole number attribute."""
    return {"N": str(int(value))}


_ONE = number(1)


def strings(value: str | list[str]) -> Value:
    """One string, or a list of them."""
    return {"S": value} if isinstance(value, str) else {"L": [{"S": each} for each in value]}


Sets = dict[str, Value]
"""New values by attribute."""
ONCE = "if_not_exists({name}, {value})"
"""The form of an attribute that keeps the value it has."""


class Change(Struct):
    """One conditional update of one item, or of the one entry of a map that `within` names."""

    sets: Sets
    condition: str
    values: Sets = {}
    """What the condition refers to, by placeholder (`:own`)."""
    forms: dict[str, str] = {}
    """How an attribute is set where not to its value alone, such as `ONCE`."""
    removes: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    """Counters that grow by one."""
    unions: dict[str, Value] = {}
    """Sets that grow by these elements."""
    names: dict[str, str] = {}
    """Aliases that the condition and `within` use beside those of what is set; they win over those."""
    within: str = ""
    """The path, in aliases, of the map that holds what is set and removed: `#map.#entry`."""

    def request(self) -> dict[str, Any]:
        """The arguments of UpdateItem that say it."""
        text, names = _expression(
            (*self.sets,), (*self.forms.items(),), self.removes, self.adds, (*self.unions,), self.within
        )
        values = {":" + name: value for name, value in self.sets.items()}
        values.update(self.values)
        for name, value in self.unions.items():
            values[":" + name] = value
        if self.adds:
            values[":one"] = _ONE
        return {
            "UpdateExpression": text,
            "ConditionExpression": self.condition,
            "ExpressionAttributeNames": {**names, **self.names},
            "ExpressionAttributeValues": values,
            # The answer to a failed condition carries the item: no read is needed to tell why.
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


@lru_cache(maxsize=128)  # the verbs are few, and their texts are always the same
def _expression(
    sets: tuple[str, ...],
    forms: tuple[tuple[str, str], ...],
    removes: tuple[str, ...],
    adds: tuple[str, ...],
    unions: tuple[str, ...],
    within: str,
) -> tuple[str, dict[str, str]]:
    """The update's text and its names, every one aliased: `status`, `ttl` and others are reserved words."""
    form, path = dict(forms), f"{within}.#" if within else "#"
    clauses = [
        f"{path}{name} = " + form.get(name, "{value}").format(name=f"{path}{name}", value=f":{name}")
        for name in sets
    ]
    text = "SET " + ", ".join(clauses)
    if removes:
        text += " REMOVE " + ", ".join(f"{path}{name}" for name in removes)
    if adds or unions:
        grows = [*(f"#{name} :one" for name in adds), *(f"#{name} :{name}" for name in unions)]
        text += " ADD " + ", ".join(grows)
    return text, {f"#{name}": name for name in (*sets, *removes, *adds, *unions)}


class ConditionFailed(Exception):
    """The condition did not hold; `item` is what stood there, in plain Python ({}: no item)."""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__("the condition did not hold")
        self.item = item


def update(
    client: "DynamoDBClient",
    table: str,
    key: Mapping[str, Value],
    change: Change,
    returns: Literal["NONE", "ALL_OLD", "ALL_NEW"] = "NONE",
) -> dict[str, Any]:
    """UpdateItem; what `returns` asks for, in plain Python. Raises ConditionFailed with the item."""
    try:
        reply = client.update_item(TableName=table, Key=key, ReturnValues=returns, **change.request())
    except client.exceptions.ConditionalCheckFailedException as refusal:
        raise ConditionFailed(plain(item_of(refusal.response))) from None
    found = reply.get("Attributes")
    return plain(found) if found else {}


def item_of(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """The item beside a failed condition; its type is missing from the client's own description."""
    item: Mapping[str, Any] = response.get("Item", {})
    return item
