"""The one message of `mailroom send`: from a file, from what was typed, or from both."""

import json
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import Clock
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import decode
from ops.messages.attributes import attributes_of, pairs
from ops.screen import Refused

STDIN = "-"
_LETTERS = "bcdfghjkmnpqrstvwxz23456789"
"""Without vowels, which make words, and without what is taken for another one."""
_RANDOM = 6


def read(place: str) -> dict[str, Any]:
    """The item in a file, or on standard input. Raises Refused."""
    name = "standard input" if place == STDIN else place
    try:
        text = sys.stdin.read() if place == STDIN else Path(place).read_text("utf-8-sig")
        return decode(text)
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Refused(f"{name} is not UTF-8; save it as UTF-8.") from None
    except Malformed:
        raise Refused(f"{name}: {_why(text)}") from None


def draft(
    channel: str | None,
    given: Mapping[str, Any],
    typed: Mapping[str, str | Sequence[str] | None],
    sets: Sequence[str],
    clock: Clock = time.time,
) -> dict[str, Any]:
    """The item: what a file gave, and over it what was typed. Raises Refused for what cannot be meant."""
    item = dict(given)
    named = item.get("event_type")
    if channel is not None and named is not None and named != channel:
        raise Refused(f"The file's event_type is {named!r:.60}, and {channel} was asked for; leave one out.")
    kind = channel or named
    if not isinstance(kind, str) or kind not in CONTRACTS:
        there = ", ".join(CONTRACTS)
        raise Refused(f"Which channel is it? Name one of {there}, as in: mailroom send mail --to …")
    item["event_type"] = kind
    for name, value in typed.items():
        if value:
            item[name] = value if isinstance(value, str) else _one_or_several(value)
    try:
        item |= {name: attributes_of(kind).value(name, text) for name, text in pairs(sets, "--set").items()}
    except Invalid as fault:
        raise Refused(f"--set {fault}.") from None
    if item.get("id") is None:
        item["id"] = new_id(kind, clock)
    return item


def new_id(channel: str, clock: Clock = time.time) -> str:
    """An id that nobody else has, and that a person can read out: mail-20261121-221503-k7wq3f."""
    random = "".join(secrets.choice(_LETTERS) for _ in range(_RANDOM))
    return f"{channel}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(clock()))}-{random}"


def _one_or_several(values: Sequence[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else list(values)


def _why(text: str) -> str:
    """In which line and column it is no JSON object; never what stands there."""
    try:
        value = json.loads(text)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            return f"line {error.lineno}, column {error.colno}: is not JSON ({error.msg})."
        return "is not JSON."
    several = isinstance(value, list)
    return f"is no JSON object{'; of several messages make a file of lines: mailroom import' * several}."
