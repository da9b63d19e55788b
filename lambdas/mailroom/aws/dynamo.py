"""DynamoDB: items in its form and in Python's, conditional updates, and reads of many items at once.

Producers use this as well, so it needs boto3 and no more.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, DecimalException
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from mailroom.errors import NUMBERS, Invalid

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Value = dict[str, Any]
"""An attribute value in DynamoDB's form: `{"S": "text"}`."""
MAX_LEVELS = 32
"""How deep DynamoDB lets lists and maps lie in each other."""
_MAX_PLAIN_DIGITS = 18
"""Digits of a whole number that is portable as a JSON integer."""


def image_of(item: Mapping[str, Any]) -> dict[str, Value]:
    """An item in DynamoDB's form; floats become decimals. Raises Invalid for what DynamoDB cannot hold."""
    return {_name("item", name): _value(name, value, 1) for name, value in item.items()}


def _value(path: str, value: Any, level: int) -> Value:
    if isinstance(value, (list, tuple, Mapping)):
        return _nested(path, value, level)
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": _text(path, value)}
        case int() | float() | Decimal():
            return {"N": _number(path, value)}
    return _odd(path, value)


def _odd(path: str, value: Any) -> Value:
    """What JSON knows nothing of."""
    from boto3.dynamodb.types import Binary  # half of what a command needs to start, and seldom asked for

    if isinstance(value, (bytes, bytearray, Binary)):
        return {"B": bytes(value)}  # type: ignore[arg-type]  # boto3's own type knows how, its stub does not
    if isinstance(value, (set, frozenset)):
        return _set(path, value)
    raise Invalid(path, f"is a {type(value).__name__}, which DynamoDB has no type for")


def _nested(path: str, value: Sequence[Any] | Mapping[Any, Any], level: int) -> Value:
    if level > MAX_LEVELS:
        raise Invalid(path, f"lies too deep; use at most {MAX_LEVELS} levels")
    if not isinstance(value, Mapping):
        return {"L": [_value(f"{path}[{at}]", each, level + 1) for at, each in enumerate(value)]}
    named = {_name(path, name): each for name, each in value.items()}
    return {"M": {name: _value(f"{path}.{name:.60}", each, level + 1) for name, each in named.items()}}


def _name(path: str, name: Any) -> str:
    if not isinstance(name, str):
        raise Invalid(path, f"has the name {name!r:.60}, which is no string")
    return _text(path, name)


def _text(path: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(path, "holds half of a surrogate pair, which UTF-8 has no bytes for") from None
    return text


def _number(path: str, value: int | float | Decimal) -> str:
    # A float's shortest text is what its writer meant: 0.1, and not the 55 digits of its binary value.
    exact = Decimal(float.__repr__(value)) if isinstance(value, float) else value
    try:
        number = NUMBERS.create_decimal(exact)
    except DecimalException:
        raise Invalid(path, "is no number that DynamoDB takes: 38 digits, 1E-130 to 1E+125") from None
    if not number.is_finite():
        raise Invalid(path, "is no finite number")
    return str(number)


def _set(path: str, values: set[Any] | frozenset[Any]) -> Value:
    members = [_value(path, each, 1) for each in values]
    kinds = {kind for member in members for kind in member}
    if len(kinds) != 1 or not kinds <= {"S", "N", "B"}:
        raise Invalid(path, "is no set for DynamoDB: give it strings, or numbers, or bytes, one at least")
    (kind,) = kinds
    return {f"{kind}S": sorted(member[kind] for member in members)}


def plain(image: Mapping[str, Any]) -> dict[str, Any]:
    """An item as JSON could carry it: whole numbers as int, binary as base64, sets as sorted lists."""
    return {name: _plain(value) for name, value in image.items()}


def _plain(value: Value) -> Any:
    ((kind, held),) = value.items()
    match kind:
        case "N":
            return _plain_number(held)
        case "B":
            # A stream record has base64 already; boto3 hands out bytes.
            return held if isinstance(held, str) else base64.b64encode(bytes(held)).decode()
        case "NULL":
            return None
        case "L":
            return [_plain(each) for each in held]
        case "M":
            return plain(held)
        case "SS" | "NS" | "BS":
            return sorted(_plain({kind[0]: each}) for each in held)
    return held  # a string or a bool


def _plain_number(text: str) -> int | Decimal:
    whole = len(text) <= _MAX_PLAIN_DIGITS and text.lstrip("-").isdigit()
    return int(text) if whole else Decimal(text)


def same(one: Mapping[str, Value], other: Mapping[str, Value]) -> bool:
    """Whether two items say the same: numbers by value, sets in any order, true and 1 apart."""
    return bool(_canonical({"M": one}) == _canonical({"M": other}))


def _canonical(value: Value) -> Any:
    ((kind, held),) = value.items()
    match kind:
        case "N":
            return kind, Decimal(held)
        case "B":
            return kind, bytes(held)
        case "L":
            return kind, [_canonical(each) for each in held]
        case "M":
            return kind, {name: _canonical(each) for name, each in held.items()}
        case "SS" | "NS" | "BS":
            return kind, {_canonical({kind[0]: each}) for each in held}
    return kind, held  # a string, a bool or null


def size_of(image: Mapping[str, Value]) -> int:
    """The bytes that DynamoDB counts, by "Item sizes and formats" of its developer guide; numbers a little
    above, as the guide gives them by a rule of thumb."""
    return sum(len(name.encode()) + _size(value) for name, value in image.items())


def _size(value: Value) -> int:
    ((kind, held),) = value.items()
    match kind:
        case "S":
            return len(held.encode())
        case "N":
            return len(held) // 2 + 2
        case "B":
            return len(held)
        case "L":
            return 3 + sum(1 + _size(each) for each in held)
        case "M":
            return 3 + len(held) + size_of(held)
        case "SS" | "NS" | "BS":
            return sum(_size({kind[0]: each}) for each in held)
    return 1  # null or a bool


def string(value: str) -> Value:
    return {"S": value}


def number(value: int | float) -> Value:
    return {"N": str(int(value))}


def strings(value: str | list[str]) -> Value:
    """One string, or a list of them."""
    return {"S": value} if isinstance(value, str) else {"L": [{"S": each} for each in value]}


Sets = dict[str, Value]
"""New values by attribute."""
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


MAX_STATEMENTS = 25
"""Statements of one BatchExecuteStatement."""


def insert(client: "DynamoDBClient", table: str, items: Sequence[Sets]) -> list[str | None]:
    """Put items that are new, in one call for every 25; DynamoDB decides on each by itself.

    None: the item was written. An error's code is no proof of the opposite: an item of the key was there
    (DuplicateItem), which may be this one by a repeat of the call, or DynamoDB was too busy, or did not know.
    """
    codes: list[str | None] = []
    for first in range(0, len(items), MAX_STATEMENTS):
        statements: Any = [
            {"Statement": _insert_statement(table, (*each,)), "Parameters": [*each.values()]}
            for each in items[first : first + MAX_STATEMENTS]
        ]
        reply = client.batch_execute_statement(Statements=statements)
        codes += [each["Error"]["Code"] if "Error" in each else None for each in reply["Responses"]]
    return codes


@lru_cache(maxsize=128)
def _insert_statement(table: str, names: tuple[str, ...]) -> str:
    fields = ", ".join(f"'{name}': ?" for name in names)
    return f'INSERT INTO "{table}" VALUE {{{fields}}}'


def item_of(response: Mapping[str, Any]) -> Mapping[str, Any]:
    """The item beside a failed condition; its type is missing from the client's own description."""
    item: Mapping[str, Any] = response.get("Item", {})
    return item


MAX_PUTS = 25
"""Items of one BatchWriteItem."""


def batch_put(client: "DynamoDBClient", table: str, items: Sequence[Sets]) -> None:
    """Put items, or replace those of the same key; in as few calls as can be. No key may come twice.

    Raises UnprocessedKeys where DynamoDB goes on leaving some out.
    """
    for first in range(0, len(items), MAX_PUTS):
        left: Any = {table: [{"PutRequest": {"Item": each}} for each in items[first : first + MAX_PUTS]]}
        for _ in range(_CALLS):
            left = client.batch_write_item(RequestItems=left).get("UnprocessedItems")
            if not left:
                break
        else:
            raise UnprocessedKeys(f"{table} could not be written whole: DynamoDB throttles")


MAX_KEYS = 100
"""Keys of one call, over all tables."""
_CALLS = 4
"""Calls for the same keys, which the SDK has repeated by itself already where it was throttled."""


class UnprocessedKeys(RuntimeError):
    """DynamoDB did not hand out, or take, all that it was asked to: whoever asked must try again."""


def batch_get(
    client: "DynamoDBClient", wanted: Mapping[str, Sequence[Sets]], *, consistent: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """The items of these keys that there are, by table, in plain Python; in as few calls as can be.

    Raises UnprocessedKeys where DynamoDB goes on leaving some out.
    """
    found: dict[str, list[dict[str, Any]]] = {table: [] for table in wanted}
    for part in _parts(wanted):
        _read(client, part, found, consistent)
    return found


def _parts(wanted: Mapping[str, Sequence[Sets]]) -> Iterator[dict[str, list[Sets]]]:
    keys = ((table, key) for table, each in wanted.items() for key in each)
    while run := list(islice(keys, MAX_KEYS)):
        part: dict[str, list[Sets]] = {}
        for table, key in run:
            part.setdefault(table, []).append(key)
        yield part


def _read(
    client: "DynamoDBClient",
    part: Mapping[str, list[Sets]],
    found: dict[str, list[dict[str, Any]]],
    consistent: bool,
) -> None:
    asked: Any = {
        table: {"Keys": keys, **({"ConsistentRead": True} if consistent else {})}
        for table, keys in part.items()
    }
    idle = 0
    while asked:
        reply = client.batch_get_item(RequestItems=asked)
        got = 0
        for table, items in reply.get("Responses", {}).items():
            found[table] += map(plain, items)
            got += len(items)
        asked = reply.get("UnprocessedKeys")
        # A reply holds 16 MB at most, so large items take several; only those that bring nothing count.
        idle = 0 if got else idle + 1
        if asked and idle == _CALLS:
            raise UnprocessedKeys(f"{' and '.join(asked)} could not be read whole: DynamoDB throttles")
