"""Where a message is, and what an operator can do about it."""

import dataclasses
from typing import Any

import msgspec
from msgspec import Struct

from mailroom.ledger.reader import MessageStatus
from ops.messages.advice import advice


class Standing(Struct, frozen=True, kw_only=True):
    """One message. Times are ISO 8601 in UTC. `since` is when it came to its status, where that is known;
    `advice` says what it means and what to do next."""

    id: str
    event_type: str
    status: str
    since: str | None
    attempts: int
    to: str | list[str] | None
    error: dict[str, str] | None
    trouble: dict[str, str] | None
    provider: str | None
    provider_id: str | None
    scheduled_for: str | None
    updated_at: str | None
    times: dict[str, str]
    details: dict[str, Any]
    history: list[dict[str, Any]]
    callbacks: dict[str, dict[str, Any]]
    recipients: dict[str, dict[str, Any]]
    advice: list[str]


class Status(Struct, frozen=True):
    """The answer of `status`: the messages of that id, one a channel; none: there is no such message."""

    id: str
    stage: str
    messages: list[Standing]


def standing(found: MessageStatus, stage: str, now: float) -> Standing:
    """A message with its advice, at `now` (epoch seconds)."""
    told = dataclasses.asdict(found)
    since = _since(found)
    said = list(advice(found, stage, now, since))
    return msgspec.convert({**told, "since": since, "advice": said}, Standing)


def _since(found: MessageStatus) -> str | None:
    """When it last came to its status: the history says it of an outcome and of a retry."""
    for entry in reversed(found.history):
        if entry.get("status") == found.status and "at" in entry:
            return str(entry["at"])
    if found.status == "sending":
        return found.times.get("startedAt", found.updated_at)
    return found.times.get(f"{found.status}At", found.updated_at)
