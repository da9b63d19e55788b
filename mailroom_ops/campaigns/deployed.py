"""Operations on a deployed stage's campaigns: start a run, read its state, pause it, stop it."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from mailroom.campaigns.runs import Run, Runs, canonical, name_of
from mailroom.clock import Clock, epoch
from mailroom.errors import Malformed
from mailroom.ledger.status_reader import REMEMBERED_SECONDS
from mailroom_ops.shared import deployed_stage as stages
from mailroom_ops.shared.deeds import Deed, Deeds
from mailroom_ops.shared.refusals import NotDeployed, Refused

if TYPE_CHECKING:
    import boto3

RESTART_SECONDS = REMEMBERED_SECONDS - 30 * 86_400
"""Seconds from the first start of a run within which an operator can start it again. A later start finds in
the ledger which messages were sent, and every ledger stores an item for REMEMBERED_SECONDS from its last
change. After that time, `compose` refuses the people of a later start, so a start needs time before it."""
Schedules = dict[str, Literal["enabled", "disabled"]]
"""The states of schedules, by campaign."""


def without_campaigns(thing: str, stage: str) -> NotDeployed:
    """Return the error for a missing queue or function of campaigns: the stage is not deployed, or was
    deployed without campaigns."""
    return NotDeployed(thing, f"Deploy {stage} with a campaign enabled")


@dataclass(frozen=True)
class RunStart:
    """Start of a run, which a message to the queue of `collect` requests. `known` is the run's present state
    if it was started before."""

    campaign: str
    run: str
    scheduled_at: str
    known: Run | None = None

    def body(self) -> str:
        """Return the body of a queue message, with a new id of the start."""
        body = {"campaign": self.campaign, "scheduled_at": self.scheduled_at, "run": self.run}
        return json.dumps(body | {"start": str(uuid4())})


class DeployedCampaigns:
    """Operations on the campaigns of one stage, with their queue, table of runs and schedules. The methods
    raise NotDeployed if the queue or the table is missing."""

    def __init__(self, session: "boto3.Session", stage: str, clock: Clock = time.time) -> None:
        self.stage = stage
        self.deeds = Deeds(session, stage, clock)
        self._sqs = session.client("sqs")
        self._scheduler = session.client("scheduler")
        self._dynamodb = session.client("dynamodb")
        self._table = stages.name(stage, "campaign-runs")
        self._runs = Runs(self._dynamodb, self._table, clock=clock)
        self.clock = clock

    def starting(self, campaign: str, run: str | None, *, new: bool = False) -> RunStart:
        """Return the start of the run with a name or, if `run` is None, of a run named after the present
        minute. Raises Refused if a run with the name does not exist, unless `new` is true, or if it cannot be
        started again."""
        if run is None:
            minute = _iso(self.clock() // 60 * 60)
            return RunStart(campaign, name_of(minute), minute, self._read(campaign, name_of(minute)))
        name = _canonical(run)
        earlier = self._read(campaign, name)
        if earlier is None and not new:
            raise Refused(
                f"There is no run of that name; the latest runs of {campaign} in {self.stage}: "
                f"{self._latest(campaign)}. Use --new to start one."
            )
        if earlier is not None:
            self._check_restart(earlier)
            return RunStart(campaign, name, earlier.scheduled_at, earlier)
        try:
            return RunStart(campaign, name, _iso(epoch(name)))
        except (ValueError, OverflowError):  # the name is not a time
            return RunStart(campaign, name, _iso(self.clock()))

    def _check_restart(self, run: Run) -> None:
        """Raise Refused if a start of a known run would send to people who have its message already."""
        if not run.starts:
            reason = "was recorded as stopped after the table of runs had lost it, so its ids are unknown"
        elif run.begun_at + RESTART_SECONDS < self.clock():
            reason = f"was first started over {RESTART_SECONDS // 86_400} days ago"
        else:
            return
        raise Refused(
            f"Run {run.run} of {run.campaign} {reason}: a start would send its messages a second time. Start "
            "a run of another name; it sends to the whole audience."
        )

    def start(self, start: RunStart) -> None:
        """Send the message that starts the run to the queue of the function `collect`."""
        url = self.queue()
        self._record("start again" if start.known else "start", start.campaign, start.run)
        self._sqs.send_message(QueueUrl=url, MessageBody=start.body())

    def queue(self) -> str:
        """Return the URL of the queue of the function `collect`. Raises NotDeployed for a stage without
        campaigns."""
        name = stages.name(self.stage, "collect")
        try:
            return self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
        except self._sqs.exceptions.QueueDoesNotExist:
            raise without_campaigns(f"queue {name}", self.stage) from None

    def runs(self, campaign: str, limit: int) -> list[Run]:
        """Return the latest runs, up to a `limit`, the newest first. Raises NotDeployed."""
        with self._deployed():
            return self._runs.of_campaign(campaign, limit)

    def run(self, campaign: str, run: str) -> Run:
        """Return a run. Its name may be its time in any ISO 8601 spelling. Raises Refused, which lists the
        latest runs, if the run does not exist."""
        name = _canonical(run)
        entry = self._read(campaign, name)
        if entry is None:
            raise Refused(
                f"{campaign} has no run {name!r} in {self.stage}; its latest: {self._latest(campaign)}."
            )
        return entry

    def stop(self, campaign: str, run: str, reason: str, *, lost: bool = False) -> bool:
        """Stop a run for a reason: it collects no further recipients, and composes and sends no further
        messages. With `lost`, record the stop of a run that is missing in the table. Return False if it was
        stopped already. Raises Refused if `lost` is true and the table has the run."""
        name = _canonical(run)
        earlier = self._read(campaign, name)
        if lost and earlier:
            raise Refused(f"The table of runs has run {name} of {campaign}: stop it without --lost.")
        if (earlier.phase == "stopped") if earlier else not lost:
            return False
        self._record("stop", campaign, name, reason)
        return self._runs.stop(campaign, name, lost=lost)

    def pause(self, campaign: str, run: str, reason: str) -> Run:
        """Pause a run for a reason, and return the run. Raises Refused if the run is stopped."""
        refusal = "is stopped; mailroom campaign start starts it again"
        return self._change("pause", self._runs.pause, self.run(campaign, run), reason, refusal)

    def resume(self, campaign: str, run: str, reason: str) -> Run:
        """Resume a run for a reason, and return the run. Raises Refused if the run is not paused."""
        return self._change("resume", self._runs.resume, self.run(campaign, run), reason, "is not paused")

    def _change(
        self, verb: str, change: Callable[[str, str, str], bool], run: Run, reason: str, refusal: str
    ) -> Run:
        refusal_error = Refused(f"Run {run.run} of {run.campaign} {refusal}.")
        if not run.paused if verb == "resume" else run.phase == "stopped":
            raise refusal_error
        self._record(verb, run.campaign, run.run, reason)
        if not change(run.campaign, run.run, f"since {_iso(self.clock())} by {self.deeds.by()}: {reason}"):
            raise refusal_error
        return self.run(run.campaign, run.run)

    def deeds_of(self, run: Run) -> list[Deed]:
        """Return the deeds on a run, the newest first."""
        deeds = self.deeds.of(f"campaign#{run.campaign}")
        return [deed for deed in deeds if deed.verb.endswith(f" run {run.run}")]

    def _record(self, verb: str, campaign: str, run: str, reason: str | None = None) -> None:
        if reason is not None and not reason.strip():
            raise Refused("The reason is empty; it tells later readers why somebody did this to the run.")
        self.deeds.record(f"{verb} run {run}", [f"campaign#{campaign}"], reason or "")

    def schedules(self) -> Schedules:
        """Return whether each deployed schedule is enabled or disabled, by campaign."""
        pages = self._scheduler.get_paginator("list_schedules").paginate(
            GroupName=stages.name(self.stage, "campaigns")
        )
        try:
            entries = (entry for page in pages for entry in page["Schedules"])
            return {row["Name"]: "enabled" if row["State"] == "ENABLED" else "disabled" for row in entries}
        except self._scheduler.exceptions.ResourceNotFoundException:
            return {}

    def _read(self, campaign: str, run: str) -> Run | None:
        with self._deployed():
            return self._runs.read(campaign, run)

    def _latest(self, campaign: str) -> str:
        return ", ".join(entry.run for entry in self.runs(campaign, 10)) or "none"

    @contextmanager
    def _deployed(self) -> Iterator[None]:
        try:
            yield
        except self._dynamodb.exceptions.ResourceNotFoundException:
            raise NotDeployed(f"table {self._table}", f"Deploy {self.stage}") from None


def _canonical(run: str) -> str:
    try:
        return canonical(run)
    except Malformed as malformed:
        raise Refused(f"{malformed}.") from None


def _iso(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
