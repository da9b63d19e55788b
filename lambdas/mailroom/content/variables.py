"""Converts the variables of a message to the values that a template gets."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_MAX_EXACT = 2**53
"""Number up to which a double can represent every whole number."""


def values_of(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of variables for `Engine.render`, in a form that a template cannot change.

    A number that a double can represent exactly becomes an int or a float. Any other number becomes a text
    with all its digits.
    """
    # In a template, `self` contains the template's blocks, and MiniJinja's binding does not accept a variable
    # of that name.
    return {name: _value(value) for name, value in variables.items() if name != "self"}


def _value(value: Any) -> Any:
    match value:
        case str() | bool() | None:
            return value
        case dict():
            return _Entries({name: _value(entry) for name, entry in value.items()})
        case list():
            return _Rows([_value(entry) for entry in value])
        case int() | float() | Decimal():
            return _number(Decimal(repr(value) if isinstance(value, float) else value))
    return value


def _number(value: Decimal) -> int | float | str:
    if value == value.to_integral_value():
        return int(value) if abs(value) <= _MAX_EXACT else f"{value:f}"
    double = float(value)
    return double if Decimal(repr(double)) == value else f"{value:f}"


class _Entries(dict[str, Any]):
    """Map for a template, which cannot change it, and in which an entry takes precedence over a method of
    dict with the same name.

    MiniJinja looks for an entry, and if it is missing, for an attribute of the same name. So the attribute is
    treated as missing if the entry was looked for just before. Without an entry `items`, `order.items` is
    then undefined, while `order.items()` calls the method.
    """

    __slots__ = ("_missing",)

    def __missing__(self, name: object) -> Any:
        self._missing = name
        raise KeyError

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):  # MiniJinja refuses these names, and Python needs them
            missing, self._missing = getattr(self, "_missing", None), None
            if name == missing or name not in ("get", "items", "keys", "values"):
                raise AttributeError(f"a map has no method {name!r:.60}")
        return super().__getattribute__(name)


class _Rows(list[Any]):
    """List for a template, without the methods that change a list."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            raise AttributeError(f"a list has no method {name!r:.60}")
        return super().__getattribute__(name)
