"""What a provider has to be able to do."""

from collections.abc import Container
from typing import Protocol, TypeVar

from mailroom.message.message import Message
from mailroom.message.outcome import Evidence, Outcome

M = TypeVar("M", bound=Message)
R = TypeVar("R")


class Adapter(Protocol[M, R]):
    """A provider, as the worker sees it. It knows nothing of queues, tables or retries."""

    @property
    def provider(self) -> str:
        """Its name in the ledger."""

    @property
    def account(self) -> str | None:
        """Where the next submit goes, as far as that one's answer counts later: the provider, and our account
        there. None: nobody will be asked."""

    @property
    def contract(self) -> type[M]:
        """The messages that it takes."""

    def prepare(self, message: M) -> R:
        """All that comes before the provider is asked. Raises Invalid; any other error proves it unsent."""

    def submit(self, request: R) -> Outcome:
        """One call to the provider. An exception means that nobody knows whether it was accepted."""

    def look_up(self, message: M, since: int, known: Container[str]) -> Evidence:
        """What became of a try that began at `since` (epoch milliseconds) and was not heard of again.

        `known` holds provider ids that are other messages', or other attempts': none of them is this one.
        """
