"""Filter criteria of an event source mapping: which records reach the function at all."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MISSING = object()

# AWS's comparison operators that the stacks use.
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "exists": lambda value, wanted: (value is not MISSING) == wanted,
    "prefix": lambda value, wanted: isinstance(value, str) and value.startswith(wanted),
    "anything-but": lambda value, wanted: (
        value is not MISSING and value not in (wanted if isinstance(wanted, list) else [wanted])
    ),
}


def parse(criteria: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The patterns of a mapping's FilterCriteria."""
    return [json.loads(each["Pattern"]) for each in (criteria or {}).get("Filters", [])]


def passes(record: Mapping[str, Any], patterns: Sequence[Mapping[str, Any]]) -> bool:
    """A record passes if any pattern matches, or if there are none."""
    return not patterns or any(_matches(record, pattern) for pattern in patterns)


def _matches(record: Any, pattern: Mapping[str, Any]) -> bool:
    if not isinstance(record, Mapping):
        return False
    return all(
        _matches(record.get(key), rule)
        if isinstance(rule, Mapping)
        else any(_equals(record.get(key, MISSING), wanted) for wanted in rule)
        for key, rule in pattern.items()
    )


def _equals(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    operator, operand = next(iter(wanted.items()))
    if operator not in OPERATORS:
        raise ValueError(f"The pump does not know the filter operator {operator!r}: {sorted(OPERATORS)}.")
    return OPERATORS[operator](value, operand)
