"""The settings that have other defaults in the stage on this machine: what takes AWS minutes is seen within
seconds."""

from collections.abc import Mapping
from typing import Any

from mailroom_stacks.merging import merged

_ROWS: Mapping[str, Any] = {
    "channels": {"timeout_seconds": 13, "submit_seconds": 8, "longest_throttling_seconds": 300},
    "databases": {"statement_seconds": 6},
}
_SECTIONS: Mapping[str, Any] = {
    "webhook": {"delays_seconds": [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 5, 5, 5, 5]},
    "campaigns": {"collect": {"timeout_seconds": 20}, "compose": {"timeout_seconds": 20}},
}
_FAX: Mapping[str, Any] = {"retry_delay_seconds": 1}


def with_local_defaults(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stage's section over the defaults of this machine, which add no row and no fax gateway."""
    tables = {name: section.get(name) for name in _ROWS}
    rows = {
        name: dict.fromkeys(table, _ROWS[name]) for name, table in tables.items() if isinstance(table, dict)
    }
    fax = {"fax": _FAX} if section.get("fax") else {}
    return merged({**_SECTIONS, **rows, **fax}, section)
