"""A whole stage: both tables looked through, and what is missing looked for a second time later."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mailroom.message.message import Key
from ops.reconcile.following import Following
from ops.reconcile.lock import locked
from ops.reconcile.look import Head, Look, Table
from ops.reconcile.looking import Looking, segments_of
from ops.reconcile.memory import DAY
from ops.reconcile.patience import Patience
from ops.reconcile.reading import parts
from ops.reconcile.tables import Tables
from ops.resend.deployed import Deployed

TOGETHER = 100
"""Messages that are read and put back at once: of 400 KB each, at most."""


class Whole:
    """`folder` is where the look is kept until it is done with."""

    named = False

    def __init__(
        self,
        deployed: Deployed,
        patience: Patience,
        tables: Tables,
        folder: Path,
        sleep: Callable[[float], None],
    ) -> None:
        self._deployed = deployed
        self._patience = patience
        self._sleep = sleep
        mailbox, ledger = tables.mailbox, tables.ledger
        self._items = mailbox.items + ledger.items
        about = f"{ledger.arn} {patience.older_than:g}"
        segments: dict[Table, int] = {
            "mailbox": segments_of(mailbox.items),
            "ledger": segments_of(ledger.items),
        }
        self._head = Head(about, deployed.clock(), segments)
        arn = ledger.arn.split(":")
        self._path = folder / f"reconcile-{deployed.stage}-{arn[4]}-{arn[3]}.jsonl"
        self._look: Look
        self.unknown: list[Key] = []

    @property
    def seen(self) -> dict[Table, int]:
        """Items that were looked at, by table."""
        return self._look.seen

    @property
    def count(self) -> int:
        """How many messages there are to judge."""
        return sum(self._look.found.values())

    @property
    def file(self) -> str:
        """What keeps them for the next run."""
        return str(self._path)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Everything else is called within it. Raises Refused where another run on this machine works with
        the file: what both wrote would be neither's look."""
        busy = (
            f"Another `mailroom reconcile` of {self._deployed.stage} runs on this machine: wait for its end, "
            f"or stop it and run this again; it goes on from {self._path}."
        )
        with locked(self._path, busy):
            now = self._deployed.clock()
            look = Look.at(self._path, self._head, self._head.began - DAY)
            self._look = look.renewed(now, self._patience.older_than)
            yield

    def go(self, following: Following) -> None:
        """Look through both tables, where an earlier run has not; then wait until what was missing counts as
        lost. What is merely on its way shows up until then."""
        seen = sum(self.seen.values())
        with following.step(f"looking through {self._deployed.stage}", self._items, seen) as advance:
            for items in Looking(self._deployed, self._look, self._patience).go():
                advance(items)
        wait = self._wait()
        if wait > 0:
            following.waits(self._look.found["mailbox"], wait)
            with following.step("waiting", round(wait)) as advance:
                while (left := self._wait()) > 0:
                    self._sleep(min(1.0, left))
                    advance(min(1.0, left))

    def batches(self) -> Iterator[list[Key]]:
        """Those that were found."""
        for page in self._look.pages():
            yield from parts(page.keys, TOGETHER)

    def close(self) -> None:
        """The look is done with."""
        self._look.close()

    def _wait(self) -> float:
        """Seconds until the second look."""
        if not self._look.found["mailbox"]:
            return 0
        return self._look.latest + self._patience.older_than - self._deployed.clock()
