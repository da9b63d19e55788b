"""What a fax provider has to be able to do, and what it may say of a fax."""

from typing import Protocol

from msgspec import Struct

from mailroom.channels.provider import Provider


class FaxRequest(Struct, frozen=True):
    """One fax to be submitted. `reference` is ours, unique to the attempt, for providers that keep it."""

    to: str
    sender: str
    media_url: str
    reference: str


class Pending(Struct, frozen=True):
    """The provider is still at it: the line may be in use."""

    status: str


class Delivered(Struct, frozen=True):
    """The whole fax arrived."""


class Undelivered(Struct, frozen=True):
    """It ended without success. `status` is for callbacks (`busy`, `no-answer`), `again` tells whether
    another attempt may do better, `detail` is the provider's own explanation."""

    status: str
    again: bool
    detail: str = ""


FaxState = Pending | Delivered | Undelivered


class FaxProvider(Provider[FaxRequest], Protocol):
    """A fax provider's API."""

    def fetch(self, provider_id: str) -> FaxState:
        """How it stands. Raises whatever went wrong: that says nothing about the fax."""

    def find(self, to: str, reference: str, since: float) -> list[str]:
        """The ids of faxes that may be the one: to that number, created at `since` (epoch seconds) or later;
        with that reference alone where the provider keeps it. Oldest first. Raises where it cannot tell.

        By nothing that the settings say, such as our own number: they may have changed since."""

    def cancel(self, provider_id: str) -> None:
        """Ask for it to be stopped; whether it was, `fetch` tells. Raises whatever went wrong."""
