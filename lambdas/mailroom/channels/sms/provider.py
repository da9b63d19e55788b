"""What an SMS provider has to be able to do."""

from collections.abc import Container
from typing import Protocol

from msgspec import Struct

from mailroom.channels.provider import Provider
from mailroom.message.outcome import Evidence, Facts


class SmsRequest(Struct, frozen=True):
    """One text message to be submitted: to a number in E.164, text ("" where media are all), URLs of media.

    `reference` is ours and comes back in the provider's events; `expires` is in epoch seconds; `facts` are
    for the ledger.
    """

    to: str
    text: str
    media: tuple[str, ...]
    reference: str
    expires: float | None = None
    facts: Facts = {}
    exact: bool = True
    """Whether the text is what was submitted before: a template may have been deployed anew since."""


class SmsProvider(Provider[SmsRequest], Protocol):
    """An SMS provider's API."""

    def find(self, request: SmsRequest, since: float, known: Container[str]) -> Evidence:
        """Whether it has this message, created at `since` (epoch seconds) or later. `known` ids are other
        messages'. Raises where it cannot tell this time."""


def seconds_left(expires: float | None, now: float, bounds: tuple[int, int]) -> int | None:
    """For how long a provider may still try, within the bounds that it takes; None: as long as it likes."""
    if expires is None:
        return None
    least, most = bounds
    return int(max(least, min(most, expires - now)))
