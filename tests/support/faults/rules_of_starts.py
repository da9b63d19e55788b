"""A model of the two rules about stops, for random worlds: the starts that each moment permits, by the acts
of operators. It does not read the ledger.

I. A message goes on only if its run exists. II. Each start has a number, and a stop or a later start ends all
earlier starts.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from mailroom.ledger.run_states import FRESH_SECONDS


class Permission(NamedTuple):
    """Permissions of the run from a moment on."""

    since: float
    valid_from: float
    """Lowest number of a start that is permitted; infinite after a stop, or if the run is missing or
    paused."""


class RulesOfStarts:
    """Permissions of one run over time."""

    def __init__(self) -> None:
        self._permissions = [Permission(-math.inf, math.inf)]
        self.latest = math.inf
        """Lowest number of a start that is not stopped, whether the run is paused or not."""
        self.exists = True
        self.paused = False

    def begun(self, moment: float, number: int) -> None:
        """A start has begun: it ends earlier starts, and a pause."""
        self.latest, self.paused = number, False
        self._changed(moment)

    def stopped(self, moment: float) -> None:
        if self.exists:
            self.latest, self.paused = math.inf, False
            self._changed(moment)

    def pause(self, moment: float, *, paused: bool) -> None:
        """The run is paused or resumed, unless it is missing or stopped."""
        if self.exists and self.latest < math.inf:
            self.paused = paused
            self._changed(moment)

    def lost(self, moment: float) -> None:
        """The table has lost the run."""
        self.exists = False
        self._changed(moment)

    def restored(self, moment: float, latest: float) -> None:
        """The run has come back from a backup, in which `latest` was the lowest number."""
        self.exists, self.latest, self.paused = True, latest, True
        self._changed(moment)

    def permits(self, number: int, begun: float) -> bool:
        """Return whether a batch that has begun at a moment may send messages of a start. A worker may know
        what the run permitted up to FRESH_SECONDS before.
        """
        return number >= min(self._within(begun - FRESH_SECONDS, begun))

    def _within(self, first: float, last: float) -> Iterable[float]:
        ends = [*(permission.since for permission in self._permissions[1:]), math.inf]
        for permission, end in zip(self._permissions, ends, strict=True):
            if permission.since <= last and end >= first:
                yield permission.valid_from

    def _changed(self, moment: float) -> None:
        goes_on = self.exists and not self.paused
        self._permissions.append(Permission(moment, self.latest if goes_on else math.inf))
