"""Putting a queue's dead letters back on their way: by SQS's own task or, where that cannot, one by one.

The task goes on by itself, at a rate, and can be cancelled. SQS developer guide, "dead-letter queue redrive",
and API reference, StartMessageMoveTask: at most 500 dead letters a second, one task a queue, FIFO queues too,
the oldest first; what is moved is a new message with a new id, and its retention starts anew. Without a
destination SQS sends each dead letter where it came from. It does not know that for dead letters that it did
not bring there itself, such as EventBridge Scheduler's: so the destination is always named."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import ClientError
from msgspec import Struct

from ops.dead_letters.answer import Redriven, State
from ops.dead_letters.mover import DeadLetterMover
from ops.dead_letters.queues import DeadQueue, DeadQueues
from ops.screen import Advance

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

MAX_RATE = 500
POLL_SECONDS = 1.0
POLLS_UNTIL_SEEN = 60
"""Polls until a task that was started shows among a queue's tasks: that need not be at once."""
POLLS_AFTER_CTRL_C = 5
"""The same where it is not known whether one was started, and somebody waits at the terminal."""
_UNKNOWN = ("InvalidAction", "UnknownOperationException", "UnknownOperation", "NotImplemented")
"""How a service that is not AWS's says that it has no such call."""
_NAMED = 3
"""Dead letters that a sentence names."""
_STATES: dict[str, State] = {
    "COMPLETED": "done",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
    "RUNNING": "running",
    "CANCELLING": "running",
}


class NoMoveTasks(Exception):
    """The service has no move tasks: an emulator's."""


class MoveProgress(Struct, frozen=True):
    """How far a task has come. `handle` cancels it, while it runs; `reason` says why it failed."""

    status: str
    moved: int
    expected: int
    handle: str | None = None
    reason: str | None = None

    @property
    def state(self) -> State:
        """What has become of it."""
        return _STATES.get(self.status, "failed")


class MoveTask:
    """The tasks of one dead-letter queue."""

    def __init__(self, client: "SQSClient", queue: DeadQueue) -> None:
        self._client = client
        self._queue = queue
        self._before: int | None = None
        self._handle: str | None = None

    @property
    def begun(self) -> bool:
        """Whether SQS may have been asked to start one."""
        return self._before is not None

    def current(self) -> MoveProgress | None:
        """The task that was started here; without one, the latest. None: SQS does not show it yet, or
        remembers no task. Raises NoMoveTasks."""
        task = self._newest()
        if task is None or (self._before is not None and _started(task) <= self._before):
            return None
        return MoveProgress(
            task["Status"],
            int(task.get("ApproximateNumberOfMessagesMoved", 0)),
            int(task.get("ApproximateNumberOfMessagesToMove", 0) or 0),
            task.get("TaskHandle"),
            task.get("FailureReason"),
        )

    def start(self, rate: int | None) -> None:
        """Start one, with `rate` dead letters a second at most (None: SQS finds its own)."""
        bound = {} if rate is None else {"MaxNumberOfMessagesPerSecond": rate}
        newest = self._newest()
        self._before = 0 if newest is None else _started(newest)
        reply = self._call(
            "start_message_move_task",
            SourceArn=self._queue.arn,
            DestinationArn=self._queue.source_arn,
            **bound,
        )
        self._handle = reply.get("TaskHandle")

    def follow(self, report: Callable[[MoveProgress], None]) -> MoveProgress:
        """Wait for its end; how it ended. A task that SQS does not show for a minute is left running: what
        became of it is not known."""
        while (now := self._seen_within(POLLS_UNTIL_SEEN)) is not None:
            report(now)
            if now.state != "running":
                return now
            time.sleep(POLL_SECONDS)
        return self._unseen()

    def after_interruption(self) -> MoveProgress | None:
        """How the task stands after Ctrl-C; None: none was started, as far as SQS shows."""
        now = self._seen_within(POLLS_AFTER_CTRL_C)
        return self._unseen() if now is None and self._handle is not None else now

    def _seen_within(self, polls: int) -> MoveProgress | None:
        for _ in range(polls):
            if (now := self.current()) is not None:
                return now
            time.sleep(POLL_SECONDS)
        return None

    def cancel(self) -> None:
        """Let it move no more; what it has moved stays moved."""
        now = self.current() or self._unseen()
        if now.handle is not None and now.status == "RUNNING":
            self._call("cancel_message_move_task", TaskHandle=now.handle)

    def _unseen(self) -> MoveProgress:
        reason = "SQS took the task and does not tell of it; list it later"
        return MoveProgress("RUNNING", 0, 0, self._handle, reason)

    def _newest(self) -> Any:
        reply = self._call("list_message_move_tasks", SourceArn=self._queue.arn, MaxResults=10)
        return max(reply.get("Results", ()), key=_started, default=None)

    def _call(self, operation: str, **arguments: Any) -> Any:
        try:
            return getattr(self._client, operation)(**arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] in _UNKNOWN:
                raise NoMoveTasks from None
            raise


class Redrive:
    """Redrives one queue: all that it has, or `only` the dead letters with these ids. Making one changes
    nothing.

    `found` dead letters lie there; `running` is a task that somebody has started.
    """

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
        self.way: Literal["move_task", "one_by_one"] = "one_by_one" if only else "move_task"
        self.running: MoveProgress | None = None
        self._client = queues.client
        self._task = MoveTask(queues.client, queue)
        try:
            latest = self._task.current()
        except NoMoveTasks:
            self.way = "one_by_one"
        else:
            self.running = latest if latest is not None and latest.state == "running" else None

    def run(self, advance: Advance) -> Redriven:
        """Do it, or follow the task that runs already; returns when it is over."""
        if self.way == "one_by_one":
            return self._one_by_one(advance)
        if self.running is None:
            self._task.start(self.rate)
        return self._follow(advance)

    def _one_by_one(self, advance: Advance) -> Redriven:
        mover = DeadLetterMover(self._client, self.queue, self.rate)
        moved = 0
        # SQS's count may be too low: it bounds only what else could go round for ever.
        for count in mover.move(None if self.only else self.found, self.only):
            moved += count
            advance(moved, len(self.only) or self.found)
        if not self.only:
            return self.answer("done", moved, self.found)
        left = mover.kept + len(set(self.only) - mover.found)
        return self.answer("done", moved, moved + left, _behind(mover.behind))

    def cancel(self, advance: Advance) -> Redriven:
        """End the task; what it has moved stays moved."""
        self._task.cancel()
        return self._follow(advance)

    def after_interruption(self) -> Redriven | None:
        """How a run that Ctrl-C has interrupted ended; None: its task goes on."""
        asked = self._task.begun or self.running is not None
        now = self._task.after_interruption() if asked else None
        if now is None:
            return self.answer("cancelled", 0, self.found, "no task was started, as far as SQS tells")
        return None if now.state == "running" else self._ended(now)

    def leave(self) -> Redriven:
        """The task goes on without this process."""
        now = self._task.current()
        return self.answer("running", now.moved if now else 0, self.found)

    def _follow(self, advance: Advance) -> Redriven:
        return self._ended(self._task.follow(lambda now: advance(now.moved, now.expected or self.found)))

    def _ended(self, ended: MoveProgress) -> Redriven:
        # SQS's count of a queue lags behind by up to a minute, so it cannot say what is left just now.
        meant = ended.expected if self.running is not None else max(ended.expected, self.found)
        return self.answer(ended.state, ended.moved, meant, ended.reason)

    def answer(
        self, state: State, moved: int, meant: int, reason: str | None = None, *, dry_run: bool = False
    ) -> Redriven:
        """How it stands, where `meant` dead letters should be moved."""
        return Redriven(
            self.stage,
            self.queue.queue,
            self.queue.source_arn.rsplit(":", 1)[1],
            dry_run,
            state,
            None if state == "nothing" else self.way,
            self.found,
            moved,
            max(0, meant - moved),
            reason,
        )


def _started(task: Any) -> int:
    return int(task.get("StartedTimestamp", 0))


def _behind(lines: Mapping[str, Sequence[str]]) -> str | None:
    """Which dead letters stand before those that would have overtaken them."""
    if not lines:
        return None
    said = "; ".join(f"{id_} stands behind {_some(before)}" for id_, before in sorted(lines.items()))
    return f"A line keeps its order: {said}. Move those first, or the whole queue."


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return ", ".join(ids[:_NAMED]) + more
