"""Values of PostgreSQL, and of what a campaign composes, as queue messages and templates take them."""

import math
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

_PORTABLE_DIGITS = 18
"""Whole numbers beyond are not the same number to every reader of JSON."""


def plain(value: Any) -> Any:
    """The value as JSON has it. Raises ValueError that says what is wrong, and never the value.

    Times become ISO 8601, UUIDs text, arrays lists. A `numeric` without decimals becomes a whole number; one
    with them becomes text, exactly as the database shows it: 12.50 stays a price, which a number would make
    12.5.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        return _number(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    bytes_like = isinstance(value, bytes | bytearray | memoryview)
    what = "holds bytes" if bytes_like else "is of a type that a message cannot carry"
    raise ValueError(f"{what}; leave it out, or make a text of it")


def _number(value: float | Decimal) -> float | int | str:
    if not math.isfinite(value):
        raise ValueError("is no number (NaN or infinity); use NULL or a number")
    if isinstance(value, float):
        return value
    whole = value == value.to_integral_value() and value.as_tuple().exponent == 0
    return int(value) if whole and len(value.as_tuple().digits) <= _PORTABLE_DIGITS else f"{value:f}"
