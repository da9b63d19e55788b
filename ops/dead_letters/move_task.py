"""SQS's own way to put dead letters back: a task that goes on by itself, at a rate, and can be cancelled.

SQS developer guide, "dead-letter queue redrive", and API reference, StartMessageMoveTask: at most 500 letters
a second, one task a queue, FIFO queues too, the oldest first; what is moved is a new message with a new id,
and its retention starts anew. Without a destination SQS sends each letter where it came from, which it cannot
tell of those that it did not bring there itself, such as EventBridge Scheduler's: so it is always named.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from msgspec import Struct

from ops.dead_letters.queues import DeadQueue

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

MAX_RATE = 500
POLL_SECONDS = 1.0
PATIENCE = 60
"""Polls until a task that was started shows among a queue's tasks: that need not be at once."""
CUT_OFF_PATIENCE = 5
"""The same where it is not known whether one was started, and somebody waits at the terminal."""
_UNKNOWN = ("InvalidAction", "UnknownOperationException", "UnknownOperation", "NotImplemented")
"""How a service that is not AWS's says that it has no such call."""
_GOING_ON = ("RUNNING", "CANCELLING")


class NoSuchCall(Exception):
    """The service has no move tasks: an emulator's."""


class Progress(Struct, frozen=True):
    """How far a task has come. `handle` cancels it, while it runs; `reason` says why it failed."""

    status: str
    moved: int
    expected: int
    handle: str | None = None
    reason: str | None = None

    @property
    def going_on(self) -> bool:
        """Whether it still moves letters."""
        return self.status in _GOING_ON


class MoveTask:
    """The tasks of one dead-letter queue."""

    def __init__(
        self, client: "SQSClient", queue: DeadQueue, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client = client
        self._queue = queue
        self._sleep = sleep
        self._before: int | None = None
        self._handle: str | None = None

    def latest(self) -> Progress | None:
        """The task that was started last; None: none was, as far as SQS remembers. Raises NoSuchCall."""
        task = self._newest()
        return None if task is None else _progress(task)

    def ours(self) -> Progress | None:
        """The task that was started here; without one, the latest. None: SQS does not tell of it yet."""
        task = self._newest()
        if task is None or (self._before is not None and _started(task) <= self._before):
            return None
        return _progress(task)

    @property
    def begun(self) -> bool:
        """Whether SQS may have been asked to start one."""
        return self._before is not None

    def standing(self) -> Progress | None:
        """How the task stands after a cut; None: none was started, as far as SQS tells."""
        for _ in range(CUT_OFF_PATIENCE):
            if (now := self.ours()) is not None:
                return now
            self._sleep(POLL_SECONDS)
        return None if self._handle is None else self._unseen()

    def start(self, rate: int | None) -> None:
        """Start one, with `rate` letters a second at most (None: SQS finds its own). Raises NoSuchCall."""
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

    def follow(self, tell: Callable[[Progress], None]) -> Progress:
        """Tell of it until it ends; how it ended. One that SQS does not tell of for a minute is left running:
        what became of it is not known."""
        unseen = 0
        while unseen < PATIENCE:
            now = self.ours()
            unseen = unseen + 1 if now is None else 0
            if now is not None:
                tell(now)
                if not now.going_on:
                    return now
            self._sleep(POLL_SECONDS)
        return self._unseen()

    def cancel(self) -> None:
        """Let it move no more; what it has moved stays moved."""
        now = self.ours() or self._unseen()
        if now.handle is not None and now.status == "RUNNING":
            self._call("cancel_message_move_task", TaskHandle=now.handle)

    def _unseen(self) -> Progress:
        return Progress(
            "RUNNING", 0, 0, self._handle, "SQS took the task and does not tell of it; list it later"
        )

    def _newest(self) -> Any:
        reply = self._call("list_message_move_tasks", SourceArn=self._queue.arn, MaxResults=10)
        return max(reply.get("Results", ()), key=_started, default=None)

    def _call(self, operation: str, **arguments: Any) -> Any:
        try:
            return getattr(self._client, operation)(**arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] in _UNKNOWN:
                raise NoSuchCall from None
            raise


def _started(task: Any) -> int:
    return int(task.get("StartedTimestamp", 0))


def _progress(task: Any) -> Progress:
    return Progress(
        task["Status"],
        int(task.get("ApproximateNumberOfMessagesMoved", 0)),
        int(task.get("ApproximateNumberOfMessagesToMove", 0) or 0),
        task.get("TaskHandle"),
        task.get("FailureReason"),
    )
