"""Dead letters: how many lie in each queue, what and why, and back on their way with a progress bar."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from ops.console.site import Answer, Asked, Goto, Shown, Site, link
from ops.dead_letters.command import count_letters, find_letters, sentences_of
from ops.dead_letters.queues import DeadQueues
from ops.dead_letters.redrive import Redrive, Redriven
from ops.screen import AWS_FAULTS, Refused
from ops.screen import sentences_of as words_of

LISTED = 50


class Stopped(Exception):
    """Somebody stopped the redrive."""


class Job:
    """A redrive in a thread of its own. `answer` when it has ended well, `sentences` when it has not."""

    def __init__(self, planned: Redrive) -> None:
        self.queue, self.stage = planned.queue.queue, planned.stage
        self.done, self.total = 0, len(planned.only) or planned.found
        self.answer: Redriven | None = None
        self.sentences: list[str] = []
        self.stopping = False
        self._planned = planned
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Return when it is over."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self.answer = self._planned.run(self._advance)
        except Stopped:
            self.sentences = [f"It was stopped. {self.done} were moved, and stay so."]
        except AWS_FAULTS as error:
            self.sentences = words_of(error, self.stage)

    def _advance(self, done: int, total: int | None = None, name: str | None = None) -> None:  # noqa: ARG002
        self.done, self.total = done, max(done, total or self.total)
        if self.stopping:
            raise Stopped


def show(site: Site, asked: Asked) -> Answer:
    """How many there are; of the queue that is asked for, what and why."""
    queues = _queues(site)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda each: count_letters(queues, each, 0), queues.named(None)))
    # To look into a queue takes a second or more, and hides its letters meanwhile: only on request.
    found = (
        find_letters(queues, asked["queue"], site.stage, None, LISTED, body=False) if asked["queue"] else None
    )
    return Shown(
        template="dead_letters.html",
        values={"counts": counts, "total": sum(each.letters for each in counts), "found": found},
    )


def redrive(site: Site, asked: Asked) -> Answer:
    """What a redrive would do, and then does; while it runs, how far it is."""
    name = asked["queue"]
    job = site.jobs.get(name)
    if asked.form is not None and asked["stop"]:
        if job is not None:
            job.stopping = True
        return Goto(link("/dead-letters/redrive", queue=name, run="1"))
    if asked.form is not None and job is not None and job.running:
        raise Refused(f"The dead letters of {name} are on their way already.")
    if asked["run"] and asked.form is None and job is not None:
        return Shown(template="redrive.html", title=f"Redrive {name}", values={"job": job, "sentences": []})
    queues = _queues(site)
    (queue,) = queues.named(name or "")
    planned = Redrive(queues, site.stage, queue, [asked["only"]] if asked["only"] else ())
    if asked.form is not None:
        site.jobs[name] = Job(planned)
        return Goto(link("/dead-letters/redrive", queue=name, run="1"))
    return Shown(
        template="redrive.html",
        title=f"Redrive {name}",
        values={"job": None, "sentences": sentences_of(planned)},
    )


def _queues(site: Site) -> DeadQueues:
    return site.kept("dead queues", partial(DeadQueues, site.session, site.stage))
