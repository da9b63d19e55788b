"""Defaults of a local stage that differ from the defaults of a stage on AWS: waits of seconds instead of
minutes."""

from collections.abc import Mapping
from typing import Any

from mailroom_stacks.merging import merged

_CHANNEL: Mapping[str, Any] = {"submit_seconds": 8, "longest_throttling_seconds": 300}
_WEBHOOK: Mapping[str, Any] = {
    "delays_seconds": [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 5, 5, 5, 5],
}
_MONITORING: Mapping[str, Any] = {"level": "full"}
_FAX: Mapping[str, Any] = {"retry_delay_seconds": 1}


def with_local_defaults(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a local stage, completed by the defaults. The defaults add no channel and no fax
    gateway."""
    rows = section.get("channels")
    channels = {"channels": dict.fromkeys(rows, _CHANNEL)} if isinstance(rows, dict) else {}
    fax = {"fax": _FAX} if section.get("fax") else {}
    defaults = {"webhook": _WEBHOOK, "monitoring": _MONITORING, **channels, **fax}
    return merged(defaults, section)
