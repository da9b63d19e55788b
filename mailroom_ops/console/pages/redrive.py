"""Page of a redrive: its plan, and its progress."""

import re
import threading

from mailroom.errors import quantity
from mailroom_ops.console.job import Job
from mailroom_ops.console.pages.dead_letters import queues_at
from mailroom_ops.console.site import Answer, Goto, Request, Shown, Site, View, link
from mailroom_ops.repair.redrive import Redrive, Redriven
from mailroom_ops.shared.refusals import Refused

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


class DeadLettersRedrive(View, frozen=True):
    """Values of the page of a redrive: its job, or its plan if it has not started."""

    job: RedriveJob | None = None
    planned: Redrive | None = None
    shown: int | None = None
    """Number of dead letters that the previous page showed; None unless there are many more now."""


def redrive(site: Site, request: Request) -> Answer:
    """Show a redrive's plan, and then start it; while it runs, show its progress."""
    # While a job runs, its page makes no request to AWS: the URL has the queue's full name.
    job = site.job(RedriveJob, request["queue"])
    if job is not None and request.form is None and request["run"]:
        return Shown(DeadLettersRedrive(job), f"Put back the dead letters of {job.queue}")
    if job is not None and request.form is not None and request["stop"]:
        job.stopping = True
        return _to(job.queue)
    (queue,) = queues_at(site).named(request["queue"])
    planned = Redrive(queues_at(site), queue, request["only"].split())
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
