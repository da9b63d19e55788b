"""Merging of settings. Imports no module of the app, because operators' commands merge settings too."""

from collections.abc import Mapping
from typing import Any


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `below`, overridden section by section by `above`."""
    whole = dict(below)
    for key, value in above.items():
        section = whole.get(key)
        if isinstance(section, Mapping) and isinstance(value, Mapping):
            whole[key] = merged(section, value)
        else:
            whole[key] = value
    return whole
