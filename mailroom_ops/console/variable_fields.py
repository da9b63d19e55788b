"""Fields for the variables of a template: a list is rows of cells, a map a group of cells."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from mailroom_ops.messages.items import variable_of

VARIABLE = "var."
"""Prefix of the names of the fields, such as `var.name`, `var.lines[0][price]` and `var.address[city]`.
Because of it, a variable may have the name of another field of the form."""
Rows = dict[str, dict[str, str]]
"""Names of a variable's fields by row and key. Variables other than lists have the row "", and rows other
than maps have the key ""."""
_NAME = re.compile(r"var\.([^\[]+)(?:\[([0-9]{1,3})\])?(?:\[([^\W\d]\w*)\])?")


def cells_of(variable: str, value: Any) -> dict[str, Any]:
    """Return the cells of a variable by the names of their fields. If a row of the value contains a list or a
    map, the whole value is a single cell."""
    rows = {f"[{index}]": row for index, row in enumerate(value)} if isinstance(value, list) else {"": value}
    cells: dict[str, Any] = {}
    for place, row in rows.items():
        keyed = {f"[{key}]": row[key] for key in row} if isinstance(row, dict) else {"": row}
        cells |= {VARIABLE + variable + place + key: cell for key, cell in keyed.items()}
    plain = (_NAME.fullmatch(name) and not isinstance(cell, dict | list) for name, cell in cells.items())
    return cells if cells and {} not in rows.values() and all(plain) else {VARIABLE + variable: value}


def tables_of(names: Iterable[str]) -> dict[str, Rows]:
    """Return the fields of variables, by variable, from the names of all fields."""
    tables: dict[str, Rows] = {}
    for match in filter(None, map(_NAME.fullmatch, names)):
        variable, row, key = match.groups("")
        tables.setdefault(variable, {}).setdefault(row, {})[key] = match[0]
    return tables


def read(fields: Mapping[str, str], samples: Mapping[str, Any], faults: dict[str, str]) -> dict[str, Any]:
    """Return the variables in the fields, without blank rows, and add `faults` by field. A cell has the type
    that its column has in the first row of the example's cells, `samples`."""
    variables = {}
    for variable, rows in tables_of(fields).items():
        values = []
        for row in rows.values():
            if any(fields[name].strip() for name in row.values()):
                cells = {key: _cell(name, fields[name], samples, faults) for key, name in row.items()}
                values.append(cells.get("", cells))
        if values:
            variables[variable] = values[0] if "" in rows else values
    return variables


def _cell(name: str, text: str, samples: Mapping[str, Any], faults: dict[str, str]) -> Any:
    sample, value = samples.get(re.sub(r"\[[0-9]+\]", "[0]", name)), variable_of(text)
    if isinstance(sample, bool | int | float):
        try:
            return msgspec.convert(text, bool if isinstance(sample, bool) else int | Decimal, strict=False)
        except msgspec.ValidationError:
            kind = "true or false" if isinstance(sample, bool) else f"a number, such as {sample}"
            faults[name] = f"{name.removeprefix(VARIABLE)}: {text!r:.60} is not {kind}"
    return text if isinstance(sample, str) and not isinstance(value, str) else value
