"""Merging of settings. The module imports no other module of the app, because operators' commands use it
too."""

from collections.abc import Mapping
from typing import Any


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings `below`, overridden by `above`. Sections are merged key by key."""
    whole = dict(below)
    for key, value in above.items():
        section = whole.get(key)
        if isinstance(section, Mapping) and isinstance(value, Mapping):
            whole[key] = merged(section, value)
        else:
            whole[key] = value
    return whole
