"""Whom a message is for, as it may stand on a screen that others see."""

import re

_ADDRESS = re.compile(r"([^\s@'\"<>,;()]+)@([^\s@'\"<>,;()]*)")
_NUMBER = re.compile(r"\+?\d(?:[ ().-]{0,2}\d){6,}")
_TOKEN = re.compile(r"[A-Za-z0-9_:/.+=-]{25,}")
_KEPT = 4
"""Characters of a number or a token that stay."""


def recipient(to: str | list[str] | None) -> str:
    """The first of whom it is for, masked, and how many more there are."""
    if not to:
        return ""
    if isinstance(to, str):
        return text(to)
    more = f" and {len(to) - 1} more" if len(to) > 1 else ""
    return text(to[0]) + more


def text(words: str) -> str:
    """Words with every address, number and token in them masked: `v***@example.com`, `***1234`."""
    masked = _ADDRESS.sub(lambda found: f"{found[1][0]}***@{found[2]}", words)
    # Before the numbers: an ARN has one in it.
    return _NUMBER.sub(lambda found: f"***{found[0][-_KEPT:]}", _TOKEN.sub(_short, masked))


def whole(to: str | list[str] | None) -> str:
    """All of them as they are."""
    return ", ".join(to) if isinstance(to, list) else to or ""


def _short(found: re.Match[str]) -> str:
    """A token of a device, or the ARN of one. A host's name is nobody's."""
    token = found[0]
    is_name = "@" in token or "://" in token or (token.islower() and "." in token and ":" not in token)
    return token if is_name else f"***{token[-_KEPT:]}"
