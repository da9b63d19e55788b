"""Runs of campaigns that an operator has stopped or paused. Functions that send a run's messages ask before
they do, because most of a run's messages are composed long before they are sent."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mailroom.aws.dynamo_batches import batch_get
from mailroom.aws.dynamo_values import string
from mailroom.clock import Clock
from mailroom.ledger.items import PAUSED
from mailroom.message.message import begun_of, run_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

STOPPED = "stopped"
"""State of a stopped run, and code of the `error` of a message that was cancelled because of it."""
REASON = "its campaign's run was stopped before it was sent; it is sent if the run goes on"
"""Reason of such a message's end, for people."""
FRESH_SECONDS = 5.0
"""Seconds for which a run that is neither stopped nor paused counts as such without another read."""
RunKey = tuple[str, str]
"""Ids of a campaign and of its run."""


class RunStates:
    """States of the runs of one stage, as far as messages ask for them."""

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock) -> None:
        """`table`: the table of runs, which is never read if its name is empty: the stage is without
        campaigns."""
        self._client = client
        self._table = table
        self._clock = clock
        self._goes_on_until: dict[RunKey, float] = {}

    def halted(self, ids: Iterable[str]) -> dict[str, str]:
        """Return STOPPED or PAUSED by the id of each message whose run is so at this moment. A producer's own
        ids of the same form belong to no run. Raises UnprocessedKeys and botocore's errors."""
        if not self._table:
            return {}
        begins = {id_: begun_at for id_ in ids if (begun_at := begun_of(id_)) is not None}
        moment = self._clock()
        runs = {run_of(id_) for id_ in begins}
        unknown = sorted(run for run in runs if self._goes_on_until.get(run, 0.0) <= moment)
        if not unknown:
            return {}
        states = self._states(unknown)
        halted = {run for run, _ in states}
        fresh = {run: until for run, until in self._goes_on_until.items() if until > moment}
        self._goes_on_until = fresh | {run: moment + FRESH_SECONDS for run in unknown if run not in halted}
        keys = {id_: (run_of(id_), begun_at) for id_, begun_at in begins.items()}
        return {id_: states[key] for id_, key in keys.items() if key in states}

    def _states(self, runs: Sequence[RunKey]) -> dict[tuple[RunKey, int], str]:
        """Return the states of those runs that do not go on, each by its key and the time when it began."""
        keys = [{"campaign": string(campaign), "run": string(run)} for campaign, run in runs]
        try:
            items = batch_get(self._client, {self._table: keys}, consistent=True)[self._table]
        except self._client.exceptions.ResourceNotFoundException:
            return {}  # the table is missing, because the stage's campaigns are not deployed yet
        return {
            ((item["campaign"], item["run"]), int(item["begun_at"])): STOPPED if stopped else PAUSED
            for item in items
            if (stopped := item["state"] == STOPPED) or item.get("paused")
        }
