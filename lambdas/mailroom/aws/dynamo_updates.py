"""UpdateItem of DynamoDB: one conditional update.

Producers import this module as well, so it needs boto3 only.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from mailroom.aws.dynamo_values import Sets, Value, plain

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_ALIAS = re.compile(r"#(\w+)")


def values_of(sets: Mapping[str, Value]) -> Sets:
    """The values of an expression that calls an attribute's new value by the attribute's name: `:ttl`."""
    return {f":{name}": value for name, value in sets.items()}


def assigned(names: Iterable[str]) -> str:
    """A SET clause's text for attributes that not every message has: `#to = :to, #topic = :topic`."""
    return ", ".join(f"#{name} = :{name}" for name in names)


def assigned_once(names: Iterable[str], within: str = "") -> str:
    """The same for attributes that keep the value they have. `within` is the path of the map that has them:
    `recipients.#recipient.`."""
    return ", ".join(f"{within}#{name} = if_not_exists({within}#{name}, :{name})" for name in names)


def also(text: str) -> str:
    """The text as the end of a clause that has something else already."""
    return f", {text}" if text else ""


@lru_cache(maxsize=512)  # the verbs are few, and their texts are nearly always the same
def _in_one_line(text: str) -> str:
    """DynamoDB takes lines; moto and emulators do not."""
    return " ".join(text.split())


@lru_cache(maxsize=512)
def _aliases(*texts: str) -> dict[str, str]:
    return {f"#{name}": name for text in texts for name in _ALIAS.findall(text)}


class ConditionFailed(Exception):
    """The condition did not hold; `item` is what stood there, in plain Python ({}: no item)."""

    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__("the condition did not hold")
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
    returns: Literal["NONE", "ALL_OLD", "ALL_NEW"] = "NONE",
) -> dict[str, Any]:
    """UpdateItem; what `returns` asks for, in plain Python. Raises ConditionFailed with the item.

    `#ttl` in a text is the attribute `ttl`, unless `names` says otherwise: DynamoDB has that word reserved
    (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html).
    """
    request: dict[str, Any] = {
        "UpdateExpression": _in_one_line(expression),
        "ConditionExpression": _in_one_line(condition),
        "ReturnValues": returns,
        # The answer to a failed condition carries the item: no read is needed to tell why.
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    # Neither may be there and empty.
    if aliases := {**_aliases(expression, condition), **(names or {})}:
        request["ExpressionAttributeNames"] = aliases
    if values:
        request["ExpressionAttributeValues"] = values
    try:
        reply = client.update_item(TableName=table, Key=key, **request)
    except client.exceptions.ConditionalCheckFailedException as refusal:
        raise ConditionFailed(plain(item_of(refusal.response))) from None
    found = reply.get("Attributes")
    return plain(found) if found else {}


def try_update(
    client: "DynamoDBClient",
    table: str,
    key: Mapping[str, Value],
    expression: str,
    condition: str,
    values: Sets,
    *,
    names: Mapping[str, str] | None = None,
    returns: Literal["NONE", "ALL_NEW"] = "NONE",
) -> tuple[bool, dict[str, Any]]:
    """UpdateItem; whether the condition held, and in plain Python what `returns` asks for, or the item that
    the condition did not hold for."""
    try:
        return True, update(client, table, key, expression, condition, values, names=names, returns=returns)
    except ConditionFailed as failed:
        return False, failed.item


def item_of(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """The item beside a failed condition; its type is missing from the client's own description."""
    item: Mapping[str, Any] = response.get("Item", {})
    return item
