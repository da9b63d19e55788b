"""The section of a stage in cdk.json: its channels, and its settings by their keys."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mailroom_stacks.settings.channels import OWN_SECTIONS
from mailroom_stacks.settings.content import Items
from mailroom_stacks.settings.settings import Settings

_REMOVABLE = ("sms", "push", "fax")
"""Sections that leave with their channel."""


def new_section(stage: str) -> dict[str, Any]:
    """Return the start of a new stage's section."""
    # A first deployment that fails must be able to delete its tables.
    tags = {"service": "mailroom", "stage": stage}
    deployment = {"deletion_protection": False, "tags": tags}
    return {"deployment": deployment, "items": {"unknown": Items().unknown}}


def channels_of(section: Mapping[str, Any]) -> list[str]:
    """List the channels of a section, except webhooks, which every stage has."""
    return [*section.get("channels", ()), *(["fax"] if section.get("fax") else [])]


def set_channels(section: dict[str, Any], channels: Sequence[str]) -> None:
    """Give the section these channels. Present ones stay as they are, others are removed."""
    rows = section.get("channels", {})
    section["channels"] = {name: row for name, row in rows.items() if name in channels}
    for name in _REMOVABLE:
        if name not in channels:
            section.pop(name, None)
        elif section.get(name) is None:
            section[name] = {}
    for name in channels:
        if name not in OWN_SECTIONS:
            section["channels"].setdefault(name, _row(name))
    section.setdefault("mail", {})  # needed in each stage


def _row(channel: str) -> dict[str, Any]:
    # Campaigns use the second lane of mail.
    shares = {"normal": 0.5, "bulk": 0.5} if channel == "mail" else {"normal": 1}
    lanes = {lane: {"share": share} for lane, share in shares.items()}
    return {"handler": f"send_{channel}", "messages_per_second": 1, "lanes": lanes}


def put(section: dict[str, Any], key: str, value: Any) -> None:
    """Set a setting, by its key below the stage."""
    *path, last = key.split(".")
    for name in path:
        inner = section.get(name)
        section[name] = inner if isinstance(inner, dict) else {}
        section = section[name]
    section[last] = value


def get(section: Mapping[str, Any], key: str) -> Any:
    """Return the value of a setting, or None if the section does not have it."""
    value: Any = section
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def in_order(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a valid section in the order in which `mailroom docs settings` lists the settings."""
    return {name: section[name] for name in Settings.model_fields if name in section}


def changes(former: Mapping[str, Any], section: Mapping[str, Any]) -> Iterator[str]:
    """Write a sentence about each setting of the former section that is changed or removed."""
    values = dict(_settings(section))
    for key, value in _settings(former):
        if key not in values:
            yield f"{key} is removed; it was {json.dumps(value)}."
        elif values[key] != value:
            yield f"{key} is {json.dumps(values[key])}; it was {json.dumps(value)}."
    removed = [name for name in channels_of(former) if name not in channels_of(section)]
    if removed:
        yield (
            f"The stage has no {', '.join(removed)} any more. If that is deployed, first read "
            "`mailroom docs deploy-update-go-back#taking-parts-out`."
        )


def _settings(section: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in section.items():
        if isinstance(value, dict) and value:
            yield from _settings(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value
