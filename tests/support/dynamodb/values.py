"""Attribute values in DynamoDB's form: validation, copies, sizes, comparison and addition.

Stored values are never changed in place, so an item that was read before a write does not change.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import pytest

Value = dict[str, Any]
Item = dict[str, Value]


class Refusal(Exception):
    """An error response of DynamoDB.

    `item` is the item that failed a condition, and `reasons` are the reasons of a cancelled transaction.
    """

    def __init__(
        self,
        message: str,
        code: str = "ValidationException",
        item: Item | None = None,
        reasons: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.item = item
        self.reasons = reasons


def unknown(what: str) -> NoReturn:
    """End the test because the double does not support a request.

    The product's `except Exception` does not catch it as an error of AWS.
    """
    pytest.fail(f"the DynamoDB in memory does not know {what}; teach it, in tests/support/dynamodb")


def copied(image: Mapping[str, Value]) -> Item:
    """Return a deep copy of an item. Raises Refusal for a value that cannot be stored."""
    return {name: copy_of(value) for name, value in image.items()}


def copy_of(value: Value) -> Value:
    """Return a deep copy of one value. Raises Refusal if it cannot be stored."""
    ((kind, held),) = value.items()
    match kind:
        case "S" if isinstance(held, str):
            return {"S": held}
        case "N" if isinstance(held, str):
            _number(held)
            return {"N": held}
        case "B" | "BOOL" | "NULL":
            return {kind: held}
        case "L":
            return {"L": [copy_of(each) for each in held]}
        case "M":
            return {"M": copied(held)}
        case "SS" | "NS" | "BS" if held:
            return {kind: list(held)}
        case "SS" | "NS" | "BS":
            raise Refusal("One or more parameter values were invalid: A set may not be empty")
    unknown(f"attribute type {kind} of a {type(held).__name__}")


def _number(text: str) -> None:
    if len(text) < 100 and text.isdecimal():
        return
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or text != text.strip():
        raise Refusal(f"The parameter cannot be converted to a numeric value: {text}")
    if number and not Decimal("1e-130") <= abs(number) < Decimal("1e126"):
        raise Refusal(f"A number with magnitude outside of the supported range: {text}")


def size_of(image: Mapping[str, Value]) -> int:
    """Return the bytes of an item's names and values, by moto's rules."""
    return sum(len(name.encode()) + _size_of_value(value) for name, value in image.items())


def _size_of_value(value: Value) -> int:
    ((kind, held),) = value.items()
    match kind:
        case "S":
            return len(held.encode())
        case "L":
            return sum(map(_size_of_value, held))
        case "M":
            return size_of(held)
        case "SS" | "NS" | "BS":
            return sum(map(len, held))
        case "N" | "B":
            return len(held)
    return 1


def scalar(value: Value) -> Any:
    """Return the value by which a key is found and sorted; numbers are compared by value."""
    ((kind, held),) = value.items()
    if kind not in ("S", "N", "B"):
        unknown(f"an order of {kind}")
    return Decimal(held) if kind == "N" else held


def equal(one: Value | None, other: Value | None) -> bool:
    """Compare by type and value: numbers regardless of their text, sets in any order.

    A missing value equals no value.
    """
    if one is None or other is None or one.keys() != other.keys():
        return False
    return one == other or ("S" not in one and _comparable(one) == _comparable(other))


def _comparable(value: Value) -> Any:
    ((kind, held),) = value.items()
    match kind:
        case "N":
            return kind, Decimal(held)
        case "NS":
            return kind, frozenset(map(Decimal, held))
        case "SS" | "BS":
            return kind, frozenset(held)
        case "L":
            return kind, [_comparable(each) for each in held]
        case "M":
            return kind, {name: _comparable(each) for name, each in held.items()}
    return kind, held


def contains(whole: Value | None, part: Value | None) -> bool:
    """Return whether a set or a list contains an element, or a text a substring."""
    ((kind, held),) = (whole or {"L": []}).items()
    match kind:
        case "S":
            return part is not None and "S" in part and part["S"] in held
        case "SS" | "NS":
            return any(equal({kind[0]: each}, part) for each in held)
        case "L":
            return any(equal(each, part) for each in held)
    return False


def length(value: Value | None) -> Value | None:
    """Return the result of the function `size` of a condition."""
    if value is None:
        return None
    ((kind, held),) = value.items()
    if kind not in ("S", "SS", "NS", "L", "M"):
        unknown(f"size of {kind}")
    return {"N": str(len(held))}


def plus(one: Value, other: Value, sign: int = 1) -> Value:
    """Return the sum of two numbers, or their difference."""
    if "N" not in one or "N" not in other:
        raise Refusal("Invalid UpdateExpression: Incorrect operand type for operator or function; + or -")
    return {"N": str(Decimal(one["N"]) + sign * Decimal(other["N"]))}


def added(old: Value | None, value: Value) -> Value:
    """Return the result of ADD: a number grows, and a set gets the missing elements."""
    ((kind, held),) = value.items()
    if kind not in ("N", "SS", "NS") or (old is not None and kind not in old):
        raise Refusal("An operand in the update expression has an incorrect data type")
    if old is None:
        return copy_of(value)
    if kind == "N":
        return plus(old, value)
    return {kind: [*old[kind], *(each for each in held if not contains(old, {kind[0]: each}))]}
