"""Interfaces between a delivery and the provider of its channel."""

from collections.abc import Container
from typing import Protocol, TypeVar

from mailroom.message.message import Message
from mailroom.message.outcome import Evidence, Outcome

M = TypeVar("M", bound=Message)
M_contra = TypeVar("M_contra", bound=Message, contravariant=True)
R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class Session(Protocol[M_contra, R_contra]):
    """Access to one account at a provider. A look-up and a submit of one session go to the same account."""

    @property
    def account(self) -> str:
        """Name of the provider and its account, as stored in claims; ANY_ACCOUNT if a look-up has the same
        result for every account."""

    def look_up(self, message: M_contra, since: int, other_ids: Container[str]) -> Evidence:
        """Ask the provider about a try of the message that began at `since` (epoch milliseconds) and whose
        outcome is unknown. Returns the evidence.

        `other_ids` holds provider ids of other messages and of other attempts, which must not be mistaken for
        the id of this try. Raises an error if the look-up fails.
        """

    def submit(self, request: R_contra) -> Outcome:
        """Submit the message with one call to the provider, and return the outcome. Raises NotSent if the
        provider got no request, and any other error if its acceptance is unknown."""


class Adapter(Protocol[M, R]):
    """Access to the provider of one channel. An adapter is independent of queues, tables and retries."""

    @property
    def provider(self) -> str:
        """Name of the provider in the ledger."""

    @property
    def contract(self) -> type[M]:
        """Class of the messages that the adapter sends."""

    def open(self) -> Session[M, R]:
        """Load the credentials of the account in the settings, and return a session. Raises NotReady with the
        reason if the credentials cannot be loaded now."""

    def prepare(self, message: M) -> R:
        """Build the provider's request from the message, before the submit. Raises Invalid and NotReady;
        after any other error the message is retried, because it was not submitted."""
