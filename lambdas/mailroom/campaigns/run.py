"""One run of a campaign, as its item in the table of runs says it."""

import re
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct, convert

from mailroom.clock import epoch
from mailroom.errors import Malformed

State = Literal["collecting", "collected", "stopped", "expired"]
"""stopped: by an operator; expired: its messages are sent no more, so it stopped by itself."""

MAX_FAULTS = 20
"""Sentences about bad entries that a run keeps; the rest is counted."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]{0,39}", re.ASCII)


class Run(Struct, frozen=True, kw_only=True):
    """How far one run has come. `start` is the id of its latest start, `starts` are all that it had; pages,
    recipients (collected), refused and faults are of the latest. `composed` counts all messages that the run
    ever put into the mailbox; existed, opted_out, left_out, failed and expired are those that its latest
    start did not put, and may count one twice that was composed again after a crash."""

    campaign: str
    run: str
    scheduled_at: str
    start: str
    state: State
    starts: tuple[str, ...] = ()
    next_page: int = 1
    claimed_page: int = 0
    cursor: str | None = None
    pages: int = 0
    recipients: int = 0
    refused: int = 0
    faults: tuple[str, ...] = ()
    trouble: str = ""
    """Why the page that is next was not collected."""
    composed: int = 0
    existed: int = 0
    opted_out: int = 0
    left_out: int = 0
    failed: int = 0
    expired: int = 0
    startedAt: int | None = None  # noqa: N815 - the tables' own word
    claim_token: str | None = None
    updatedAt: str = ""  # noqa: N815


def run_of(item: dict[str, Any]) -> Run:
    """A plain item as a run."""
    return convert(item, Run)


def name_of(scheduled_at: str) -> str:
    """The name of the run of a time: `2026-11-18T13:00Z`. Raises Malformed for what is no ISO 8601 time."""
    try:
        moment = datetime.fromtimestamp(epoch(scheduled_at), UTC)
    except (ValueError, OverflowError):
        raise Malformed(f"scheduled_at {scheduled_at!r:.60} is no ISO 8601 time") from None
    return f"{moment:%Y-%m-%dT%H:%MZ}"


def canonical(name: str) -> str:
    """A run's name, of which a time has one spelling alone: two would be two runs. Raises Malformed."""
    try:
        return name_of(name) if "T" in name else checked(name)
    except Malformed:
        return checked(name)


def checked(name: str) -> str:
    """The name of a run, which becomes part of each message's id. Raises Malformed."""
    if not _NAME.fullmatch(name):
        raise Malformed(f"run {name!r:.60} is no name; use up to 40 letters, digits, and : . _ -")
    return name


def message_id(campaign: str, run: str, key: str) -> str:
    """The id of one recipient's message in a run."""
    return f"{campaign}#{run}#{key}"
