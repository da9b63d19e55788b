"""Runs of campaigns that an operator has stopped. Functions that send a run's messages ask before they do,
because most of a run's messages are composed long before they are sent."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mailroom.aws.dynamo_batches import batch_get
from mailroom.aws.dynamo_values import string
from mailroom.clock import Clock
from mailroom.message.message import begun_of, run_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

STOPPED = "stopped"
"""State of a stopped run, and code of the `error` of a message that was cancelled because of it."""
REASON = "its campaign's run was stopped before it was sent; it is sent if the run goes on"
"""Reason of such a message's end, for people."""
FRESH_SECONDS = 5.0
"""Seconds for which a run that is not stopped counts as such without another read."""
RunKey = tuple[str, str]
"""Ids of a campaign and of its run."""


class StoppedRuns:
    """States of the runs of one stage, as far as messages ask for them."""

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock) -> None:
        """`table`: the table of runs, which is never read if its name is empty: the stage is without
        campaigns."""
        self._client = client
        self._table = table
        self._clock = clock
        self._goes_on_until: dict[RunKey, float] = {}

    def among(self, ids: Iterable[str]) -> set[str]:
        """Return the ids of messages whose run is stopped at this moment. A producer's own ids of the same
        form belong to no run. Raises UnprocessedKeys and botocore's errors."""
        if not self._table:
            return set()
        begins = {id_: begun_at for id_ in ids if (begun_at := begun_of(id_)) is not None}
        moment = self._clock()
        runs = {run_of(id_) for id_ in begins}
        unknown = sorted(run for run in runs if self._goes_on_until.get(run, 0.0) <= moment)
        if not unknown:
            return set()
        stopped = self._stopped(unknown)
        fresh = {run: until for run, until in self._goes_on_until.items() if until > moment}
        self._goes_on_until = fresh | {run: moment + FRESH_SECONDS for run in unknown if run not in stopped}
        return {id_ for id_, begun_at in begins.items() if stopped.get(run_of(id_)) == begun_at}

    def _stopped(self, runs: Sequence[RunKey]) -> dict[RunKey, int]:
        """Return the stopped ones of some runs, each with the time when it began."""
        keys = [{"campaign": string(campaign), "run": string(run)} for campaign, run in runs]
        try:
            items = batch_get(self._client, {self._table: keys}, consistent=True)[self._table]
        except self._client.exceptions.ResourceNotFoundException:
            return {}  # the stage's campaigns are not deployed yet
        stopped = [item for item in items if item["state"] == STOPPED]
        return {(item["campaign"], item["run"]): int(item["begun_at"]) for item in stopped}
