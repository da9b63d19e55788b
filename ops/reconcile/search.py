"""Where a run gets the messages from that may be stuck."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from mailroom.message.message import Key
from ops.reconcile.following import Following
from ops.reconcile.look import Table


class Search(Protocol):
    """The messages that one run is about."""

    named: bool
    """Whether an operator named them, so that the answer tells of each."""
    unknown: list[Key]
    """Those that were named, and that neither table has."""

    @property
    def seen(self) -> dict[Table, int]:
        """Items that were looked at, by table."""

    @property
    def count(self) -> int:
        """How many messages there are to judge."""

    @property
    def file(self) -> str:
        """What keeps them for the next run; "": nothing does."""

    def opened(self) -> AbstractContextManager[None]:
        """Everything else is called within it. Raises Refused where another run is under way."""

    def go(self, following: Following) -> None:
        """Find them."""

    def batches(self) -> Iterator[list[Key]]:
        """Those that were found, as many at once as are judged together."""

    def close(self) -> None:
        """All is done; nothing of them is kept."""
