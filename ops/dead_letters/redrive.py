"""Putting a queue's dead letters back on their way: by SQS's own task or, where that cannot, one by one."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct, structs

from ops.dead_letters.answers import Redriven, State
from ops.dead_letters.move_task import MoveTask, NoSuchCall, Progress
from ops.dead_letters.one_by_one import OneByOne
from ops.dead_letters.queues import DeadQueue, DeadQueues

Way = Literal["move_task", "one_by_one"]
_NAMED = 3
"""Letters that a sentence names."""
Tell = Callable[[int, int], None]
"""How many have been moved, of how many."""
_STATES: dict[str, State] = {
    "COMPLETED": "done",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
    "RUNNING": "running",
    "CANCELLING": "running",
}


class Plan(Struct, frozen=True):
    """What a redrive would do: `found` letters lie there; `running` is a task that somebody has started."""

    stage: str
    queue: DeadQueue
    found: int
    way: Way
    running: Progress | None = None
    only: tuple[str, ...] = ()
    rate: int | None = None


class Redrive:
    """Redrives one queue of a stage."""

    def __init__(self, queues: DeadQueues, stage: str) -> None:
        self._queues = queues
        self._stage = stage
        self._tasks: dict[str, MoveTask] = {}

    def plan(self, queue: DeadQueue, only: Collection[str] = (), rate: int | None = None) -> Plan:
        """What there is to be done, and which way. Changes nothing."""
        found = self._queues.counts(queue).all
        try:
            latest = self._task(queue).latest()
        except NoSuchCall:
            return Plan(self._stage, queue, found, "one_by_one", None, tuple(only), rate)
        running = latest if latest is not None and latest.going_on else None
        way: Way = "one_by_one" if only else "move_task"
        return Plan(self._stage, queue, found, way, running, tuple(only), rate)

    def run(self, plan: Plan, tell: Tell) -> Redriven:
        """Do it, or follow the task that runs already; returns when it is over."""
        if plan.way == "move_task":
            return self._by_task(plan, tell)
        moving = OneByOne(self._queues.client, plan.queue, plan.rate)
        moved = 0
        # SQS's count may be too low: it bounds only what else could go round for ever.
        for count in moving.move(None if plan.only else plan.found, plan.only):
            moved += count
            tell(moved, len(plan.only) or plan.found)
        if not plan.only:
            return self.answer(plan, "done", moved, plan.found)
        left = moving.kept + len(set(plan.only) - moving.found)
        return self.answer(plan, "done", moved, moved + left, _behind(moving.behind))

    def _by_task(self, plan: Plan, tell: Tell) -> Redriven:
        task = self._task(plan.queue)
        if plan.running is None:
            task.start(plan.rate)
        return self._followed(plan, task, tell)

    def cancel(self, plan: Plan, tell: Tell) -> Redriven:
        """End the task; what it has moved stays moved."""
        task = self._task(plan.queue)
        task.cancel()
        return self._followed(plan, task, tell)

    def standing(self, plan: Plan) -> Redriven | None:
        """How the task stands of a run that was cut off; None: it goes on."""
        task = self._task(plan.queue)
        now = task.standing() if task.begun or plan.running is not None else None
        if now is None:
            return self.answer(plan, "cancelled", 0, plan.found, "no task was started, as far as SQS tells")
        return None if now.going_on else self._ended(plan, now)

    def leave(self, plan: Plan) -> Redriven:
        """The task goes on without us."""
        now = self._task(plan.queue).ours()
        return self.answer(plan, "running", now.moved if now else 0, plan.found)

    def untouched(self, plan: Plan, *, dry_run: bool) -> Redriven:
        """Nothing was to be moved, or nothing should be."""
        return structs.replace(self.answer(plan, "nothing", 0, plan.found), dry_run=dry_run)

    def _followed(self, plan: Plan, task: MoveTask, tell: Tell) -> Redriven:
        return self._ended(plan, task.follow(lambda now: tell(now.moved, now.expected or plan.found)))

    def _ended(self, plan: Plan, ended: Progress) -> Redriven:
        # SQS's count of a queue lags behind by up to a minute, so it cannot say what is left just now.
        meant = ended.expected if plan.running is not None else max(ended.expected, plan.found)
        return self.answer(plan, _STATES.get(ended.status, "failed"), ended.moved, meant, ended.reason)

    def answer(self, plan: Plan, state: State, moved: int, meant: int, reason: str | None = None) -> Redriven:
        """How it stands, where `meant` letters should be moved."""
        return Redriven(
            plan.stage,
            plan.queue.queue,
            plan.queue.source_arn.rsplit(":", 1)[1],
            False,
            state,
            None if state == "nothing" else plan.way,
            plan.found,
            moved,
            max(0, meant - moved),
            reason,
        )

    def _task(self, queue: DeadQueue) -> MoveTask:
        if queue.arn not in self._tasks:
            self._tasks[queue.arn] = MoveTask(self._queues.client, queue)
        return self._tasks[queue.arn]


def _behind(lines: Mapping[str, Sequence[str]]) -> str | None:
    """Which letters stand before those that would have overtaken them."""
    if not lines:
        return None
    said = "; ".join(f"{id_} stands behind {_some(before)}" for id_, before in sorted(lines.items()))
    return f"A line keeps its order: {said}. Move those first, or the whole queue."


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return ", ".join(ids[:_NAMED]) + more
