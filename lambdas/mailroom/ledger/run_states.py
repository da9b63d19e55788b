"""States of campaign runs. The functions that send a run's messages read before each batch whether an
operator has stopped or paused the run, because most of its messages are composed long before they are
sent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo_batches import batch_get
from mailroom.aws.dynamo_values import Sets, string
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
        self.table = table
        self._clock = clock
        self._goes_on_until: dict[RunKey, float] = {}

    def keys(self, ids: Iterable[str]) -> list[Sets]:
        """Return the keys of the runs of these message ids that have to be read now."""
        if not self.table:
            return []
        moment = self._clock()
        runs = {run_of(id_) for id_ in ids if begun_of(id_) is not None}
        unknown = sorted(run for run in runs if self._goes_on_until.get(run, 0.0) <= moment)
        return [{"campaign": string(campaign), "run": string(run)} for campaign, run in unknown]

    def halted(self, ids: Sequence[str]) -> dict[str, str]:
        """Return STOPPED or PAUSED by message id, for each message whose run is stopped or paused now. An id
        that a producer has chosen in the form of a run's message ids matches no run. Raises UnprocessedKeys
        and botocore's errors."""
        moment, keys = self._clock(), self.keys(ids)
        if not keys:
            return {}
        try:
            items = batch_get(self._client, {self.table: keys}, consistent=(self.table,))[self.table]
        except self._client.exceptions.ResourceNotFoundException:
            items = []  # the table is missing, because the stage's campaigns are not deployed yet
        return self.states(ids, keys, items, moment)

    def states(
        self, ids: Sequence[str], keys: Sequence[Sets], items: Sequence[Mapping[str, Any]], moment: float
    ) -> dict[str, str]:
        """Return the result of `halted`. `items` are the runs' items of `keys`, by consistent reads that
        began at `moment` (epoch seconds)."""
        states = {
            ((item["campaign"], item["run"]), int(item["begun_at"])): STOPPED if stopped else PAUSED
            for item in items
            if (stopped := item["state"] == STOPPED) or item.get("paused")
        }
        halted = {run for run, _ in states}
        read = {(key["campaign"]["S"], key["run"]["S"]) for key in keys}
        fresh = {run: until for run, until in self._goes_on_until.items() if until > moment}
        self._goes_on_until = fresh | dict.fromkeys(read - halted, moment + FRESH_SECONDS)
        runs = ((id_, (run_of(id_), begun_of(id_))) for id_ in ids)
        return {id_: states[run] for id_, run in runs if run in states}
