"""Pages of dead letters: their number in each queue, their causes, and a redrive with a progress bar."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mailroom.errors import quantity
from mailroom_ops.console.job import Job
from mailroom_ops.console.site import Answer, Goto, Request, Shown, Site, View, link
from mailroom_ops.repair.dead_letter_queues import DeadQueues
from mailroom_ops.repair.dead_letters import DeadLetterCounts, DeadLettersShown, count_letters, find_letters
from mailroom_ops.repair.redrive import Redrive, Redriven
from mailroom_ops.shared.deeds import Deed
from mailroom_ops.shared.screen import Refused

LISTED = 50
FEW = 10
"""Tolerance of a redrive: if the queue now has more than twice as many letters as were shown, plus this
number, the page asks again. The tolerance is needed because SQS's counts are approximate and new letters
arrive."""
_STARTING = threading.Lock()
"""Lock for the check whether a redrive of the queue is running, and for the start of a redrive."""


def _moved(count: int) -> str:
    return quantity(count, "dead letter was moved", "dead letters were moved")


class Stopped(Exception):
    """Request of a user to stop the redrive."""


class RedriveJob(Job):
    """Redrive of a queue. `answer` is None until the redrive has succeeded."""

    def __init__(self, planned: Redrive, stage: str) -> None:
        super().__init__(stage)
        self.queue = planned.queue.queue
        self.done, self.total = 0, len(planned.only) or planned.found
        self.answer: Redriven | None = None
        self._planned = planned
        self.begin(self._move)

    def remains(self) -> list[str]:
        """Return a sentence with the number of moved letters."""
        return [f"{_moved(self.done)} back before that. A few more may be in both queues."]

    def _move(self) -> None:
        try:
            self.answer = self._planned.run(self._advance)
        except Stopped:
            self.sentences = [f"It was stopped. {_moved(self.done)} back before that."]

    def _advance(self, done: int, total: int | None = None, name: str | None = None) -> None:  # noqa: ARG002
        self.done, self.total = done, max(done, total or self.total)
        if self.stopping:
            raise Stopped


class DeadLetters(View, frozen=True):
    """Values of the page of dead letters."""

    counts: list[DeadLetterCounts]
    found: DeadLettersShown | None
    """Dead letters of the selected queue; None without a selection."""
    deeds: list[Deed]


class DeadLettersRedrive(View, frozen=True):
    """Values of the page of a redrive: its job, or its plan if it has not started."""

    job: RedriveJob | None = None
    planned: Redrive | None = None
    shown: int | None = None
    """Number of dead letters that the previous page showed; None unless there are many more now."""


def show(site: Site, request: Request) -> Answer:
    """Show the number of dead letters in each queue, and the letters and causes of the selected queue."""
    queues = _queues(site)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda queue: count_letters(queues, queue, 0), queues.named(None)))
    # A queue is read only on request: reading takes a second or more, and hides the letters for a while.
    queue = request["queue"]
    letters = find_letters(queues, queue, site.stage, None, LISTED, body=False) if queue else None
    return Shown(DeadLetters(counts, letters, site.deeds_on("dead letters")))


def redrive(site: Site, request: Request) -> Answer:
    """Show a redrive's plan, and then start it; while it runs, show its progress."""
    # While a job runs, its page makes no request to AWS: the URL has the queue's full name.
    job = site.job(RedriveJob, request["queue"])
    if job is not None and request.form is None and request["run"]:
        return Shown(DeadLettersRedrive(job), f"Put back the dead letters of {job.queue}")
    if job is not None and request.form is not None and request["stop"]:
        job.stopping = True
        return _to(job.queue)
    (queue,) = _queues(site).named(request["queue"])
    planned = Redrive(_queues(site), queue, request["only"].split())
    if request.form is None or request["stop"]:
        return _plan(planned)
    if not planned.only and request["shown"] and planned.found > 2 * _count(request["shown"]) + FEW:
        return _plan(planned, _count(request["shown"]))
    with _STARTING:
        job = site.job(RedriveJob, queue.queue)
        if job is not None and job.running:
            raise Refused(f"The dead letters of {queue.queue} are being moved already.")
        site.jobs[RedriveJob, queue.queue] = RedriveJob(planned, site.stage)
    return _to(queue.queue)


def _to(queue: str) -> Goto:
    return Goto(link("/dead-letters/redrive", queue=queue, run="1"))


def _plan(planned: Redrive, listed: int | None = None) -> Shown:
    """Show the plan of a redrive. With `listed`, show it again because there are many more letters than
    `listed`."""
    title, status = f"Put back the dead letters of {planned.queue.queue}", 200 if listed is None else 400
    return Shown(DeadLettersRedrive(None, planned, listed), title, status)


def _count(typed: str) -> int:
    """Parse the count of a form; 0 if it is invalid."""
    return int(typed) if re.fullmatch("[0-9]{1,9}", typed) else 0


def _queues(site: Site) -> DeadQueues:
    return site.kept("dead queues", partial(DeadQueues, site.session, site.stage))
