"""A stage's campaigns, as an operator handles them: started, watched, stopped."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import boto3
from botocore.config import Config

from mailroom.campaigns.run import Run, checked, name_of
from mailroom.campaigns.runs import Runs
from mailroom.clock import Clock, epoch
from mailroom.errors import Malformed
from ops.screen import Refused

QUEUES = ("collect", "audience")
_DEPTHS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_FUNCTION_SECONDS = 930
"""The longest that a function runs, and some: an invocation that was given up would go on all the same."""
QUIET_POLLS = 3
"""SQS's depths are approximate: one zero proves nothing."""


@dataclass(frozen=True)
class Start:
    """What is put on the collect queue. `known` is the run as it stands, where it had a start before."""

    campaign: str
    run: str
    scheduled_at: str
    known: Run | None = None

    def body(self) -> str:
        """A start of its own, each time."""
        return json.dumps(
            {
                "campaign": self.campaign,
                "scheduled_at": self.scheduled_at,
                "run": self.run,
                "start": str(uuid4()),
            }
        )


class Campaigns:
    """One stage's: its queues and its table of runs."""

    def __init__(self, session: boto3.Session, stage: str, clock: Clock = time.time) -> None:
        self.stage = stage
        self._sqs = session.client("sqs")
        self._scheduler = session.client("scheduler")
        self._runs = Runs(session.client("dynamodb"), f"mailroom-{stage}-campaign-runs", clock=clock)
        self._clock = clock

    def starting(self, campaign: str, run: str | None) -> Start:
        """The start of a new run, named by this minute, or of the one that is named. Raises Refused."""
        if run is None:
            now = _written(self._clock() // 60 * 60)
            return Start(campaign, name_of(now), now, self._runs.read(campaign, name_of(now)))
        try:
            known = self._runs.read(campaign, checked(run))
        except Malformed as malformed:
            raise Refused(f"{malformed}.") from None
        return Start(campaign, run, known.scheduled_at if known else self._time_in(run), known)

    def start(self, start: Start) -> None:
        """Put it on the collect queue."""
        self._sqs.send_message(QueueUrl=self._queue("collect"), MessageBody=start.body())

    def runs(self, campaign: str, most: int) -> list[Run]:
        """The latest runs, newest first."""
        return self._runs.of_campaign(campaign, most)

    def run(self, campaign: str, run: str) -> Run:
        """One run. Raises Refused with those that there are."""
        found = self._runs.read(campaign, run)
        if found is None:
            others = ", ".join(each.run for each in self.runs(campaign, 10)) or "none"
            raise Refused(f"{campaign} has no run {run!r} in {self.stage}; the latest: {others}.")
        return found

    def stop(self, campaign: str, run: str) -> bool:
        """Let no more of a run be collected or composed. False: it is stopped already."""
        return self._runs.stop(campaign, run)

    def depth(self) -> int:
        """How many messages wait to be collected or composed, in flight among them."""
        return sum(self._depth(self._queue(short)) for short in QUEUES)

    def schedules(self) -> dict[str, str]:
        """The schedules that are deployed, and whether each is enabled, by campaign."""
        pages = self._scheduler.get_paginator("list_schedules").paginate(
            GroupName=f"mailroom-{self.stage}-campaigns"
        )
        try:
            return {each["Name"]: each["State"].lower() for page in pages for each in page["Schedules"]}
        except self._scheduler.exceptions.ResourceNotFoundException:
            return {}

    def wait(
        self, start: Start, seen: Callable[[Run], None], sleep: Callable[[float], None] = time.sleep
    ) -> Run:
        """Look every second until a run is collected, or stopped, and nothing of it can be on its way."""
        quiet = 0
        while True:
            run = self._runs.read(start.campaign, start.run)
            begun = run is not None and (start.known is None or run.start != start.known.start)
            if run is not None and begun:
                seen(run)
            over = run is not None and begun and run.state != "collecting" and self.depth() == 0
            quiet = quiet + 1 if over else 0
            if run is not None and quiet == QUIET_POLLS:
                return run
            sleep(1.0)

    def _time_in(self, run: str) -> str:
        try:
            return _written(epoch(run))
        except (ValueError, OverflowError):
            return _written(self._clock())

    def _queue(self, short: str) -> str:
        name = f"mailroom-{self.stage}-{short}"
        try:
            return self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
        except self._sqs.exceptions.QueueDoesNotExist:
            raise Refused(
                f"There is no queue {name} in this account and region; deploy {self.stage} with a campaign "
                "enabled, or check the credentials and the region."
            ) from None

    def _depth(self, url: str) -> int:
        answer = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        attributes = {str(name): value for name, value in answer["Attributes"].items()}
        return sum(int(attributes.get(name, 0)) for name in _DEPTHS)


def patient() -> Config:
    """For invocations that take as long as a function may, and are not repeated in secret."""
    return Config(read_timeout=_FUNCTION_SECONDS, retries={"total_max_attempts": 1})


def _written(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
