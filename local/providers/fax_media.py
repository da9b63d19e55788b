"""Fetches a fax's PDF as the provider would, from this machine alone."""

from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 5.0


def is_pdf(url: str) -> bool | None:
    """Whether a PDF lies there; None for any other host: the simulators ask nobody outside."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname != "127.0.0.1":
        return None
    connection = HTTPConnection("127.0.0.1", parts.port or 80, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/")
        answer = connection.getresponse()
        return answer.status == 200 and answer.read(5) == b"%PDF-"
    except (HTTPException, OSError):
        return False
    finally:
        connection.close()
