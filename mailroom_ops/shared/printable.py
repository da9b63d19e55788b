"""Text from outside, made safe to show."""

import re

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 and C1 control characters except tab and newline, line separators, and bidirectional controls (Unicode's
property Bidi_Control)."""


def printable(text: str) -> str:
    """Replace each character that could control a terminal."""
    return _UNSAFE.sub("�", text)


def escaped(json: str) -> str:
    """Escape characters in JSON that could control a terminal. They occur only in strings, whose values the
    escapes do not change."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json)
