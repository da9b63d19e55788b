"""Providers' words, as they may stand in the ledger and in a log."""

import re

MAX_READ = 4000
"""Characters of their words that are looked at: over ten times what is shown, for a URL becomes one word."""
# Bounded: no scheme is longer, and each place of a long text could begin one.
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{0,30}://\S+", re.IGNORECASE)
_NUMBER = re.compile(r"\+?\d(?:[ ().-]{0,2}\d){6,}")


def redact(text: str) -> str:
    """A provider's words as they may stand in the ledger and in a log: no numbers, no URLs, not endless."""
    shown = _NUMBER.sub(lambda number: f"…{number[0][-2:]}", _URL.sub("(URL)", text[:MAX_READ]))
    return shown if len(shown) <= 300 else f"{shown[:299]}…"
