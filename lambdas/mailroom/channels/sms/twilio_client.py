"""Twilio's client as it is used here, also for SignalWire, whose API has Twilio's shape."""

import logging

from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client

from mailroom.http.once import OnceSession, Unclear

# The client logs every request with its URL, at INFO.
_silent = logging.Logger("silent")
_silent.disabled = True

# An empty one would be replaced by the process's own, whose TWILIO_REGION and TWILIO_EDGE rewrite any host.
_ENVIRONMENT = {"TWILIO_REGION": "", "TWILIO_EDGE": ""}


def client(user: str, password: str, account: str, seconds: float) -> Client:
    """A client that asks once, in `seconds` at most, and never logs what it asks."""
    http = TwilioHttpClient(timeout=seconds, logger=_silent)
    http.session = OnceSession(seconds)
    return Client(user, password, account_sid=account, http_client=http, environment=dict(_ENVIRONMENT))


def next_page(base: str, uri: str) -> str:
    """Where a list's next page is: at the same host, `base`, which alone may see the credentials. Raises
    Unclear for any other."""
    if uri.startswith("/"):
        return base + uri
    if uri.startswith(f"{base}/"):
        return uri
    raise Unclear("a next page on another host")
