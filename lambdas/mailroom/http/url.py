"""What of a URL may be told to anybody: its host. The path and the query may hold secrets."""

import re

MAX_URL = 2000
"""Characters of a URL."""

_HOST = re.compile(
    r"https?://(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^/?#:@\[\]]+)(?::[0-9]*)?(?:[/?#][!-~]*)?", re.IGNORECASE
)
_PRINTABLE = re.compile(r"[!-~]+")


def host_of(url: str) -> str:
    """The host of an http or https URL in lower case; "" where there is none. No check of any kind: see
    `guard`."""
    found = _HOST.fullmatch(url)
    host = found[1].lower() if found else ""
    return host if _PRINTABLE.fullmatch(host) else ""
