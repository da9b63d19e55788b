"""Putting a queue's dead letters back on their way, all of them or chosen ones.

SQS has a task for that (StartMessageMoveTask). The task cannot choose, and emulators do not have it. So one
way serves every redrive, and what tests have seen happens on AWS too.
"""

from collections.abc import Collection, Mapping, Sequence

from ops.dead_letters.answer import Redriven, State
from ops.dead_letters.mover import DeadLetterMover
from ops.dead_letters.queues import DeadQueue, DeadQueues
from ops.screen import Advance

_NAMED = 3
"""Dead letters that a sentence names."""


class Redrive:
    """Redrives one queue: all that it has, or `only` the dead letters with these ids. Making one changes
    nothing. `found` dead letters lie there."""

    def __init__(
        self,
        queues: DeadQueues,
        stage: str,
        queue: DeadQueue,
        only: Collection[str] = (),
        rate: int | None = None,
    ) -> None:
        self.stage, self.queue, self.only, self.rate = stage, queue, tuple(only), rate
        self.found = queues.depth(queue).all
        self._client = queues.client

    def run(self, advance: Advance) -> Redriven:
        """Do it; returns when it is over."""
        mover = DeadLetterMover(self._client, self.queue, self.rate)
        moved = 0
        # SQS's count may be too low: it bounds only what else could go round for ever.
        for count in mover.move(None if self.only else self.found, self.only):
            moved += count
            advance(moved, len(self.only) or self.found)
        if not self.only:
            return self.answer("done", moved, self.found - moved)
        return self.answer(
            "done", moved, mover.kept + len(set(self.only) - mover.found), _behind(mover.behind)
        )

    def answer(
        self, state: State, moved: int, left: int, reason: str | None = None, *, dry_run: bool = False
    ) -> Redriven:
        """How it stands."""
        return Redriven(
            self.stage,
            self.queue.queue,
            self.queue.source_arn.rsplit(":", 1)[1],
            dry_run,
            state,
            self.found,
            moved,
            max(0, left),
            reason,
        )


def _behind(lines: Mapping[str, Sequence[str]]) -> str | None:
    """Which dead letters stand before those that would have overtaken them."""
    if not lines:
        return None
    said = "; ".join(f"{id_} stands behind {_some(before)}" for id_, before in sorted(lines.items()))
    return f"A line keeps its order: {said}. Move those first, or the whole queue."


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return ", ".join(ids[:_NAMED]) + more
