"""Spans of time as operators write them."""

import re

from ops.screen import Refused

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def seconds_of(text: str) -> int:
    """`15m` in seconds. Raises Refused."""
    form = re.fullmatch(r"([0-9]{1,6})([smhd])", text.strip(), re.ASCII)
    if form is None:
        raise Refused(f"{text!r:.40} is no span of time; use one like 90s, 15m, 2h or 1d.")
    return int(form[1]) * _UNITS[form[2]]


def written(seconds: float) -> str:
    """The same for people: in the largest unit that leaves no fraction."""
    whole = round(seconds)
    for unit in ("d", "h", "m"):
        if whole and whole % _UNITS[unit] == 0:
            return f"{whole // _UNITS[unit]}{unit}"
    return f"{whole}s"
