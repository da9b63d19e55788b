"""DynamoDB's attribute values: encodes, decodes, compares and measures them.

Producers import this module as well, so boto3 is the only package that it may import.
"""

import base64
from collections.abc import Mapping, Sequence
from decimal import Decimal, DecimalException
from typing import Any

from mailroom.errors import NUMBERS, Invalid

Value = dict[str, Any]
"""An attribute value in DynamoDB's form: `{"S": "text"}`."""
Sets = dict[str, Value]
"""Attribute values in DynamoDB's form, by attribute."""
MAX_LEVELS = 32
"""Maximum number of levels of nested lists and maps that DynamoDB accepts."""
_MAX_PLAIN_DIGITS = 18
"""Maximum number of digits of a whole number that is portable as a JSON integer."""


def image_of(item: Mapping[str, Any]) -> dict[str, Value]:
    """Return an item in DynamoDB's form. Raises Invalid for a value that DynamoDB cannot store."""
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
    return _other_than_json(path, value)


def _other_than_json(path: str, value: Any) -> Value:
    """Encode a value of a type that JSON lacks."""
    from boto3.dynamodb.types import Binary  # this import is slow, and seldom needed

    if isinstance(value, (bytes, bytearray, Binary)):
        return {"B": bytes(value)}  # type: ignore[arg-type]  # Binary has the method, its type stub lacks it
    if isinstance(value, (set, frozenset)):
        return _set(path, value)
    raise Invalid(path, f"is a {type(value).__name__}, which DynamoDB cannot store")


def _nested(path: str, value: Sequence[Any] | Mapping[Any, Any], level: int) -> Value:
    if level > MAX_LEVELS:
        raise Invalid(path, f"has too many levels; use at most {MAX_LEVELS}")
    if not isinstance(value, Mapping):
        return {"L": [_value(f"{path}[{place}]", entry, level + 1) for place, entry in enumerate(value)]}
    fields = {_name(path, name): field for name, field in value.items()}
    return {"M": {name: _value(f"{path}.{name:.60}", field, level + 1) for name, field in fields.items()}}


def _name(path: str, name: Any) -> str:
    if not isinstance(name, str):
        raise Invalid(path, f"has the name {name!r:.60}, which is not a string")
    return _text(path, name)


def _text(path: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(path, "holds half of a surrogate pair, which is invalid in UTF-8; remove it") from None
    return text


def _number(path: str, value: int | float | Decimal) -> str:
    # A float is converted from its shortest text, such as 0.1, and not from the 55 digits of its binary
    # value.
    exact = Decimal(float.__repr__(value)) if isinstance(value, float) else value
    try:
        number = NUMBERS.create_decimal(exact)
    except DecimalException:
        raise Invalid(path, "is not a number that DynamoDB allows: 38 digits, 1E-130 to 1E+125") from None
    if not number.is_finite():
        raise Invalid(path, "is not a finite number")
    return str(number)


def _set(path: str, values: set[Any] | frozenset[Any]) -> Value:
    members = [_value(path, member, 1) for member in values]
    kinds = {kind for member in members for kind in member}
    if len(kinds) != 1 or not kinds <= {"S", "N", "B"}:
        raise Invalid(path, "is not a valid set: use only strings, only numbers, or only bytes, at least one")
    (kind,) = kinds
    return {f"{kind}S": sorted(member[kind] for member in members)}


def plain(image: Mapping[str, Any]) -> dict[str, Any]:
    """Decode an item to the types of JSON: whole numbers as int, binary as base64, sets as sorted lists."""
    return {name: _plain(value) for name, value in image.items()}


def _plain(value: Value) -> Any:
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return _plain_number(content)
        case "B":
            # A binary value is base64 text in a stream record, and bytes in a response of boto3.
            return content if isinstance(content, str) else base64.b64encode(bytes(content)).decode()
        case "NULL":
            return None
        case "L":
            return [_plain(entry) for entry in content]
        case "M":
            return plain(content)
        case "SS" | "NS" | "BS":
            return sorted(_plain({kind[0]: member}) for member in content)
    return content  # the remaining types: a string or a bool


def _plain_number(text: str) -> int | Decimal:
    whole = len(text) <= _MAX_PLAIN_DIGITS and text.lstrip("-").isdigit()
    return int(text) if whole else Decimal(text)


def same(first: Mapping[str, Value], second: Mapping[str, Value]) -> bool:
    """Return whether two items are equal. Numbers are compared by value, and sets without their order. A bool
    never equals a number."""
    return bool(_canonical({"M": first}) == _canonical({"M": second}))


def _canonical(value: Value) -> Any:
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return kind, Decimal(content)
        case "B":
            return kind, bytes(content)
        case "L":
            return kind, [_canonical(entry) for entry in content]
        case "M":
            return kind, {name: _canonical(field) for name, field in content.items()}
        case "SS" | "NS" | "BS":
            return kind, {_canonical({kind[0]: member}) for member in content}
    return kind, content  # the remaining types: a string, a bool or null


def size_of(image: Mapping[str, Value]) -> int:
    """Return an item's size in bytes in DynamoDB's count, by "Item sizes and formats" of its developer guide.

    The size of numbers is rounded up, because the guide only describes it approximately.
    """
    return sum(len(name.encode()) + _size(value) for name, value in image.items())


def _size(value: Value) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return len(content) // 2 + 2
        case "B":
            return len(content)
        case "L":
            return 3 + sum(1 + _size(entry) for entry in content)
        case "M":
            return 3 + len(content) + size_of(content)
        case "SS" | "NS" | "BS":
            return sum(_size({kind[0]: member}) for member in content)
    return 1  # the remaining types: null or a bool


def string(value: str) -> Value:
    return {"S": value}


def number(value: int | float) -> Value:
    return {"N": str(int(value))}


def strings(value: str | list[str]) -> Value:
    """Encode one string, or a list of strings, in DynamoDB's form."""
    return {"S": value} if isinstance(value, str) else {"L": [{"S": text} for text in value]}
