"""States of campaign runs. The functions that send a run's messages read before each batch whether an
operator has stopped or paused the run, because most of its messages are composed long before they are
sent."""

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
"""State of a stopped run, and the code in the `error` of a message that was cancelled because its run was
stopped."""
REASON = "its campaign run was stopped before the message was sent; a restart of the run sends it"
"""Reason, for people, why a message of a stopped run was cancelled."""
FRESH_SECONDS = 5.0
"""Seconds for which a run that is neither stopped nor paused is not read again."""
RunKey = tuple[str, str]
"""Name of a campaign and name of its run."""


class RunStates:
    """Reads the states of a stage's campaign runs, with a cache."""

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock) -> None:
        """`table` is the name of the table of runs. For a stage without campaigns the name is empty, and no
        run is stopped or paused."""
        self._client = client
        self._table = table
        self._clock = clock
        self._goes_on_until: dict[RunKey, float] = {}

    def halted(self, ids: Iterable[str]) -> dict[str, str]:
        """Return STOPPED or PAUSED by message id, for each message whose run is stopped or paused now. An id
        that a producer has chosen in the form of a run's message ids matches no run. Raises UnprocessedKeys
        and botocore's errors."""
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
        """Return the states of the runs that are stopped or paused, by the run's key and the time when the
        run began."""
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
