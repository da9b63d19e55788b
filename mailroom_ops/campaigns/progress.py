"""Progress of a run: its step, and its recipients by the state of their messages."""

from msgspec import Struct

from mailroom.campaigns.runs import Run
from mailroom_ops.campaigns.results import Results

STEPS = ("Collecting", "Composing", "Sending", "Done")
ENDED = ("stopped", "expired")


class Part(Struct, frozen=True):
    """Recipients whose messages have the same state."""

    name: str
    meaning: str
    count: int
    before: int
    """Number of recipients in the parts before this one."""


class Progress(Struct, frozen=True):
    """Progress of a run, derived from its counters and from the results of its messages."""

    run: Run
    results: Results | None
    """Results of the run's messages; None for a stage without search."""

    @property
    def accounted(self) -> int | None:
        """Number of recipients whose message was put, or who get none. None if this number is unknown,
        because several starts put messages, or some recipients were counted twice."""
        run = self.run
        of_latest = run.existed + run.conflicts + run.opted_out + run.left_out + run.expired
        if len(run.starts) > 1:  # `composed` counts the messages of all starts
            return of_latest if of_latest == run.recipients else None
        return of_latest + run.composed if of_latest + run.composed <= run.recipients else None

    @property
    def can_stop(self) -> bool:
        """Whether a stop would have an effect."""
        # A paused run that is stopped was restored: it may have been started again after the backup.
        return (self.run.state not in ENDED or self.run.paused != "") and self.step != "Done"

    @property
    def step(self) -> str:
        """Present or last step of the run, one of `STEPS`. Without results, the step is never Done."""
        run, accounted = self.run, self.accounted
        if run.cursor is not None or not run.pages:
            return "Collecting"
        if accounted is not None and accounted < run.recipients:
            return "Composing"
        return "Done" if run.state == "collected" and self.unsent == 0 else "Sending"

    @property
    def unsent(self) -> int | None:
        """Number of recipients whose message is still without an outcome; None for a stage without search."""
        if self.results is None:
            return None
        outcomes = self.results.accepted + self.results.failed + self._without(self.results)
        return max(self.results.under_way, self.run.recipients - outcomes)

    def _without(self, results: Results) -> int:
        """Return the number of recipients who get no message."""
        run = self.run
        return run.left_out + run.expired + run.conflicts + results.suppressed + results.cancelled

    @property
    def parts(self) -> list[Part]:
        """Recipients by the state of their messages, the messages with an outcome first."""
        run, results, accounted = self.run, self.results, self.accounted
        counts = {"accounted": ("have their message, or get none", accounted or 0)}
        if results is not None:
            counts = {
                "delivered": ("delivered", results.delivered),
                "accepted": ("accepted", results.sent),
                "wrong": ("went wrong", results.wrong),
                "none": ("get none", self._without(results)),
                "unsent": ("to be sent", results.under_way),
            }
        if accounted is not None:
            counts["without"] = ("without a message yet", run.recipients - accounted)
        parts: list[Part] = []
        for name, (meaning, count) in counts.items():
            parts.append(Part(name, meaning, count, sum(part.count for part in parts)))
        return parts

    @property
    def total(self) -> int:
        """Sum of the parts, or the number of recipients if that is larger."""
        return max(1, self.run.recipients, sum(part.count for part in self.parts))


CONFLICT = "were not put, because another message has their id"
MEANING = {
    "collecting": "more pages follow",
    "collected": "every page was read",
    "stopped": "nothing more is collected, composed or sent",
    "expired": "its messages have expired, and are not sent any more",
    "paused": "nothing more is collected or sent until it is resumed",
    "waits for the day": "the next page is collected when the daily quota has capacity",
}
