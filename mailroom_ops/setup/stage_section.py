"""The section of a stage in cdk.json: its channels, and its settings by their keys."""

from collections.abc import Mapping, Sequence
from typing import Any

from mailroom_stacks.settings.channels import OWN_SECTIONS
from mailroom_stacks.settings.content import Items
from mailroom_stacks.settings.settings import Settings

_REMOVABLE = ("sms", "push", "fax")
"""Sections that are removed together with their channel."""


def new_section(stage: str) -> dict[str, Any]:
    """Return the section of a new stage, without its channels."""
    # If a first deployment fails, CloudFormation must be able to delete its tables.
    tags = {"service": "mailroom", "stage": stage}
    deployment = {"deletion_protection": False, "tags": tags}
    return {"deployment": deployment, "items": {"unknown": Items().unknown}}


def channels_of(section: Mapping[str, Any]) -> list[str]:
    """List the channels of a section, except webhooks, which every stage has."""
    return [*section.get("channels", ()), *(["fax"] if section.get("fax") else [])]


def set_channels(section: dict[str, Any], channels: Sequence[str]) -> None:
    """Set the channels of a section. The settings of channels that it has already are not changed; other
    channels are removed."""
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
    section.setdefault("mail", {})  # every stage needs this section


def _row(channel: str) -> dict[str, Any]:
    # Campaigns need mail's second lane, `bulk`.
    shares = {"normal": 0.5, "bulk": 0.5} if channel == "mail" else {"normal": 1}
    lanes = {lane: {"share": share} for lane, share in shares.items()}
    return {"handler": f"send_{channel}", "messages_per_second": 1, "lanes": lanes}


def put(section: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a setting, by its key in the section, such as sms.provider."""
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
