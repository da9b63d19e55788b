"""Settings laid over settings. Imports nothing of the app's, for the operator's commands do so too."""

from collections.abc import Mapping
from typing import Any


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`below`, and over it `above`, section by section."""
    whole = dict(below)
    for key, value in above.items():
        section = whole.get(key)
        if isinstance(section, Mapping) and isinstance(value, Mapping):
            whole[key] = merged(section, value)
        else:
            whole[key] = value
    return whole
