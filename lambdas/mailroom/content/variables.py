"""Converts the variables of a message to the values that a template gets."""

from collections.abc import Iterator, Mapping, Sequence
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
        case dict():
            return _Entries({name: _value(entry) for name, entry in value.items()})
        case list():
            return _Rows([_value(entry) for entry in value])
        case bool():
            return value
        case int() | float() | Decimal():
            return _number(Decimal(repr(value) if isinstance(value, float) else value))
    return value


def _number(value: Decimal) -> int | float | str:
    if value == value.to_integral_value():
        return int(value) if abs(value) <= _MAX_EXACT else f"{value:f}"
    double = float(value)
    return double if Decimal(repr(double)) == value else f"{value:f}"


class _Entries:
    """Map for a template, in which an entry takes precedence over a method of dict with the same name.

    MiniJinja looks for an entry, and if it is missing, for an attribute of the same name. So the attribute is
    treated as missing if the entry was looked for just before. Without an entry `items`, `order.items` is
    then undefined, while `order.items()` calls the method.
    """

    __slots__ = ("_entries", "_missing")

    def __init__(self, entries: dict[str, Any]) -> None:
        self._entries = entries
        self._missing: object = None

    def __getitem__(self, name: Any) -> Any:
        try:
            return self._entries[name]
        except (KeyError, TypeError):  # TypeError is raised if the name is a list
            self._missing = name
            raise KeyError(name) from None

    def __getattr__(self, name: str) -> Any:
        missing, self._missing = self._missing, None
        if name == missing or name not in ("get", "items", "keys", "values"):
            raise AttributeError(f"a map has no method {name!r:.60}")
        return getattr(self._entries, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Entries | dict) and dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]  # as dict

    def __repr__(self) -> str:
        return repr(self._entries)


class _Rows:
    """List for a template, without the methods that change a list."""

    __slots__ = ("_rows",)

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a list has no method {name!r:.60}")

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Rows | list) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]  # as list

    def __repr__(self) -> str:
        return repr(self._rows)


Sequence.register(_Rows)  # MiniJinja recognises a list by this base class
