"""Messages that an operator names: nothing else is looked at, and for these alone the operator vouches."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from mailroom.message.message import Key
from ops.reconcile.following import Following
from ops.reconcile.look import Table
from ops.reconcile.reading import parts
from ops.reconcile.whole import TOGETHER
from ops.resend.contents import items_of
from ops.resend.deployed import Deployed
from ops.resend.ids import Asked
from ops.screen import Refused

_WORKERS = 8


class Named:
    """`unknown` are those that neither table has; "" is the channel of one whose channel was not given."""

    named = True
    file = ""

    def __init__(self, deployed: Deployed, asked: Sequence[Asked]) -> None:
        self._deployed = deployed
        self._asked = asked
        self._keys: list[Key] = []
        self.unknown: list[Key] = []

    @property
    def seen(self) -> dict[Table, int]:
        """No table is looked through."""
        return {"mailbox": 0, "ledger": 0}

    @property
    def count(self) -> int:
        """How many messages there are to judge."""
        return len(self._keys)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """There is nothing to open."""
        yield

    def go(self, following: Following) -> None:
        """Find which messages are meant. Raises Refused where several have an id."""
        found: dict[Key, bool] = {}
        with (
            following.step("looking", len(self._asked)) as advance,
            ThreadPoolExecutor(_WORKERS) as pool,
        ):
            for asked, channels in zip(self._asked, pool.map(self._channels, self._asked), strict=True):
                found[_key(asked, channels)] = bool(channels)
                advance(1)
        self._keys = [key for key, there in found.items() if there]
        self.unknown = [key for key, there in found.items() if not there]

    def batches(self) -> Iterator[list[Key]]:
        """Those that there are."""
        yield from parts(self._keys, TOGETHER)

    def close(self) -> None:
        """Nothing is kept."""

    def _channels(self, asked: Asked) -> set[str]:
        tables = (self._deployed.dispatch.ledger_table, self._deployed.mailbox)
        return {each["event_type"] for table in tables for each in items_of(self._deployed, table, asked)}


def _key(asked: Asked, channels: set[str]) -> Key:
    if len(channels) > 1:
        names = " and ".join(sorted(channels))
        raise Refused(f"{asked.id}: there are messages of {names} with that id; say which by --channel.")
    return Key(asked.id, next(iter(channels), asked.event_type or ""))
