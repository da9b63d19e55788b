"""How long the only mail of an idle stage waits in its sender: the real worker of each function, at a stage's
settings, on a clock of its own that only waits and submits move."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench import REPOSITORY
from bench.functions import FUNCTION, answer_at_once, context, in_a_process, queue_batch, report
from mailroom import environment

if TYPE_CHECKING:
    from stacks.settings.channels import LaneRow

ARRIVALS = (0.0, 1.0, 3600.0, 3601.0)
"""Seconds: in new processes, alone and a second after another; then again, in processes that have sent."""
STAGES = ("prod", "dev")
SUBMIT_SECONDS = 0.1
"""SES's answer, as the counts assume it."""


def measure() -> dict[str, Any]:
    """The longest wait in seconds, by stage."""
    return {"lone_mail_wait_seconds": in_a_process("bench.idle_stage_wait")}


def _by_stage() -> dict[str, float]:
    from stacks.settings.load import load

    stages = json.loads((REPOSITORY / "cdk.json").read_text())["context"]["mailroom"]
    rows = {stage: load(stages, stage).lane_rows() for stage in STAGES}
    lanes = {stage: [each for each in found if each.event_type == "mail"] for stage, found in rows.items()}
    return {stage: round(max(max(_waits(lane)) for lane in found), 3) for stage, found in lanes.items()}


def _waits(lane: "LaneRow") -> Iterator[float]:
    """Seconds from each arrival to its submit. A mail goes to a function that is free, or to the one that is
    free first."""
    clock = _Clock()
    workers = [_worker(lane.pace, clock) for _ in range(lane.polling.maximum_concurrency)]
    free = [0.0] * len(workers)
    for number, arrival in enumerate(ARRIVALS):
        first = free.index(min(free))
        clock.now = max(arrival, free[first])
        answer = workers[first].handle(queue_batch(number, 1), context().get_remaining_time_in_millis)
        if answer["batchItemFailures"]:
            raise RuntimeError("a record came back; the figure would be wrong")
        free[first] = clock.now
        yield clock.submitted - arrival


class _Clock:
    """Time that submits and sleeps move, and when SES was asked."""

    def __init__(self) -> None:
        self.now = 0.0
        self.submitted = -1.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def submit(self, **_: Any) -> None:
        self.submitted = self.now
        self.now += SUBMIT_SECONDS


def _worker(gap: float, clock: _Clock) -> Any:
    """A new process's worker, without a network."""
    from mailroom.aws import clients
    from mailroom.channels.mail.ses import SesMail
    from mailroom.delivery.delivery import to_people
    from mailroom.delivery.worker import Pace, Tools, Worker

    settings = environment.read(environment.MailSender, FUNCTION)
    clients.sesv2.cache_clear()
    ses = clients.sesv2(settings.submit_seconds)
    ses.meta.events.register("before-send.*", clock.submit)
    answer_at_once(clients.dynamodb(), clients.sqs(), ses)
    paced = Pace(gap, clock, clock.sleep)
    tools = replace(Tools.of(settings), pace=paced, clock=clock, sleep=clock.sleep)
    return Worker(settings.queue_url, tools, to_people(settings, SesMail.of(settings), tools))


if __name__ == "__main__":
    report(_by_stage())
