"""A run: it puts messages on a stage, causes faults meanwhile, waits until the pipeline is idle, and checks
the results."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lab.harness.callbacks import read
from lab.harness.expected import Expected, Key
from lab.harness.judge import Judgement, Observation, judge
from lab.harness.stage_client import StageClient
from lab.harness.waiter import NotSettled, Waiter
from mailroom_local.aws import STAGE
from mailroom_ops.shared.terminal import Terminal
from mailroom_stacks.paths import PROJECT

THREADS = 4
Disturb = Callable[[Event], None]
"""Function that causes faults on the stage while messages are put. It returns early when the event is set."""


class Bars(Progress):
    """Progress bars, one for each count that a run waits for."""

    def __init__(self, console: Terminal) -> None:
        columns = TextColumn("- {task.description:<28}"), BarColumn(), MofNCompleteColumn()
        super().__init__(*columns, TimeElapsedColumn(), console=console)

    def bar(self, name: str, total: int) -> Callable[[int], None]:
        """Add a bar, and return a function that sets its count, which never exceeds its total."""
        task = self.add_task(name, total=total)

        def show(count: int) -> None:
            self.update(task, completed=min(count, total))
            # The shown time stops at the latest count, because a count may never reach its total.
            self.stop_task(task)

        return show


class Run:
    """A run on a stage. If the pipeline does not become idle, a sentence about it is added to `troubles`, and
    the results are checked nevertheless."""

    def __init__(self, stage: StageClient, bars: Bars, patience: float) -> None:
        """`patience` is the number of seconds without progress after which the run no longer waits."""
        self.stage = stage
        self.load: list[Expected] = []
        self.put_at: dict[Key, float] = {}
        self.troubles: list[str] = []
        self._bars = bars
        self._patience = patience
        self.waiter = Waiter(stage)

    def send(
        self,
        name: str,
        load: Sequence[Expected],
        *,
        rate: float | None = None,
        disturb: Disturb = lambda _: None,
    ) -> float:
        """Put all messages, `rate` per second or as fast as possible, while `disturb` runs. Wait until each
        message has ended. Return the seconds from the first put to the end of the last message."""
        self.load += load
        put, ended = (self._bars.bar(f"{name} {step}", len(load)) for step in ("put", "ended"))
        before, began, stop = len(self.put_at), time.monotonic(), Event()

        def show(count: int) -> None:
            for future in working:
                if future.done():
                    future.result()  # raises the thread's exception, if there was one
            put(len(self.put_at) - before)
            ended(count)

        with ThreadPoolExecutor(2) as threads:
            working = [threads.submit(self._put_all, load, rate, stop), threads.submit(disturb, stop)]
            try:
                keys = [message.key for message in load]
                self._rest(lambda: self.waiter.until_ended(keys, self._patience, show))
                seconds = time.monotonic() - began
                for future in working:
                    self._rest(future.result)
            finally:
                # After Ctrl-C, the threads must not put the remaining messages either.
                stop.set()
        return seconds

    def settle(self) -> None:
        """Wait until all reports have been sent, and all queues are empty."""
        self._rest(lambda: self.waiter.until_reported(self._patience))
        self._rest(lambda: self.waiter.until_quiet(self._patience))

    def judge(
        self, *, strict: bool, announced: Mapping[Key, Sequence[float]] | None = None, dead: str = ""
    ) -> Judgement:
        """Check all messages that were put. `announced` and `dead` are the fields of Observation."""
        stage = self.stage
        requests = read(stage.requests(), webhook_key(stage))
        observation = Observation(
            inbox=stage.accepted(),
            faxes=stage.faxes(),
            requests=requests,
            ledger=stage.ledger_items(),
            put_at=self.put_at,
            announced=announced or {},
            dead=dead,
        )
        judgement = judge(self.load, observation, strict=strict)
        judgement.wrong.extend(self.troubles)
        return judgement

    def _put_all(self, load: Sequence[Expected], rate: float | None, stop: Event) -> None:
        def put(message: Expected) -> None:
            if not stop.is_set():
                self.put_at[message.key] = time.time()
                self.stage.put(message.item)

        if rate is not None:
            put_steadily(load, rate, put)
            return
        with ThreadPoolExecutor(THREADS) as threads:
            for _ in threads.map(put, load):
                pass  # iterating raises the error of a failed put

    def _rest(self, wait: Callable[[], object]) -> None:
        try:
            wait()
        except NotSettled as trouble:
            self.troubles.append(str(trouble))


def put_steadily(
    load: Sequence[Expected],
    rate: float,
    put: Callable[[Expected], object],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Put messages at `rate` per second, each at its time, or at once if the schedule is behind."""
    began = clock()
    for number, message in enumerate(load):
        wait = began + number / rate - clock()
        if wait > 0:
            sleep(wait)
        put(message)


def webhook_key(stage: StageClient) -> str:
    """Return the key that verifies webhooks, from the operator's command that prints it for the owner of a
    receiver."""
    command = ["mailroom_ops", "webhook-key", stage.running.endpoints.providers, "--stage", STAGE]
    environment = os.environ | stage.running.variables()
    return subprocess.check_output(
        [sys.executable, "-m", *command], cwd=PROJECT, env=environment, text=True
    ).strip()
