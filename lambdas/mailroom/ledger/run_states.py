"""States of campaign runs. The functions that send a run's messages read before each batch whether an
operator has stopped or paused the run, because most of its messages are composed long before they are
sent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo_batches import batch_get
from mailroom.aws.dynamo_values import Sets, string
from mailroom.clock import Clock
from mailroom.ledger.items import PAUSED, RUN_UNKNOWN
from mailroom.message.message import CampaignStart
from mailroom.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

STOPPED = "stopped"
"""State of a stopped run, and the code in the `error` of a message that was cancelled because its start was
stopped, or was followed by a later start."""
REASON = (
    "its campaign run was stopped or started again before the message was sent; a start of the run sends it "
    "to the people who are still in the audience"
)
"""Reason, for people, why a message of a run was cancelled."""
FRESH_SECONDS = 5.0
"""Seconds for which a run that is not paused is not read again."""
RunKey = tuple[str, str]
"""Name of a campaign and name of its run."""
Starts = Iterable[CampaignStart | None]
"""Starts that composed messages; None for messages that a producer has put."""


class RunStates:
    """Reads the states of a stage's campaign runs, with a cache. A message goes on only if its run has
    answered so: if the run is missing or cannot be read, the message waits."""

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock) -> None:
        """`table` is the name of the table of runs."""
        self._client = client
        self.table = table
        self._clock = clock
        self._fresh: dict[RunKey, tuple[int, float]] = {}
        """Lowest valid number of a start, and the time until which this is not read again, by run."""

    def keys(self, starts: Starts) -> list[Sets]:
        """Return the keys of the runs that have to be read now for messages of these starts."""
        moment = self._clock()
        runs = {(start.campaign, start.run) for start in starts if start is not None}
        unread = sorted(run for run in runs if run not in self._fresh or self._fresh[run][1] <= moment)
        return [{"campaign": string(campaign), "run": string(run)} for campaign, run in unread]

    def halted(self, starts: Starts) -> dict[CampaignStart, str]:
        """Return STOPPED, PAUSED or RUN_UNKNOWN for each start whose messages must not be sent now. Never
        raises."""
        starts = [*starts]
        moment, keys = self._clock(), self.keys(starts)
        items: Sequence[Mapping[str, Any]] = ()
        if keys:
            try:
                items = batch_get(self._client, {self.table: keys}, consistent=(self.table,))[self.table]
            except Exception:  # noqa: BLE001 - logged; the messages of the runs wait until the runs are read
                logger.exception("the runs of campaigns could not be read; their messages wait")
        return self.states(starts, items, moment)

    def states(
        self, starts: Starts, items: Iterable[Mapping[str, Any]], moment: float
    ) -> dict[CampaignStart, str]:
        """Return the result of `halted`. `items` are the items of the runs of `keys`, by consistent reads
        that began at `moment` (epoch seconds)."""
        answers = {run: answer for run, answer in self._fresh.items() if answer[1] > moment}
        paused = set[RunKey]()
        # An incomplete item counts as missing.
        for item in (item for item in items if "valid_from" in item):
            run = item["campaign"], item["run"]
            answers[run] = int(item["valid_from"]), moment + FRESH_SECONDS
            if item.get("paused"):
                paused.add(run)
        self._fresh = {run: answer for run, answer in answers.items() if run not in paused}
        halted: dict[CampaignStart, str] = {}
        for start in starts:
            if start is None:
                continue
            run = start.campaign, start.run
            if run not in answers:
                halted[start] = RUN_UNKNOWN
            # A number below the lowest valid one never becomes valid again, so a stop needs no second look.
            elif start.start < answers[run][0]:
                halted[start] = STOPPED
            elif run in paused:
                halted[start] = PAUSED
        return halted
