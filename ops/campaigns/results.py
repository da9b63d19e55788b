"""A run's results: how its messages ended, and who has opted out since."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.campaigns.runs import Run
from mailroom.clock import epoch
from mailroom.recipients.choices import Preferences
from mailroom.search.results import Tallies
from ops.messages.search import search_of
from ops.stage import name

if TYPE_CHECKING:
    import boto3


class Results(Struct, frozen=True):
    """How a run's messages ended, each counted as what it is now. `put` are those that were put into the
    mailbox, `under_way` those of them without an outcome; `suppressed` were left out too, by the campaign or
    before the submit. `opted_out_since`: of the campaign's topic, since the run's time; None: it has no
    topic."""

    put: int
    under_way: int
    sent: int
    delivered: int
    undelivered: int
    bounced: int
    complained: int
    failed: int
    suppressed: int
    cancelled: int
    opted_out_since: int | None

    @property
    def accepted(self) -> int:
        """How many a provider has accepted."""
        return self.sent + self.delivered + self.undelivered + self.bounced + self.complained

    @property
    def arrived(self) -> int:
        """How many were delivered; a complaint follows a delivery."""
        return self.delivered + self.complained

    def part(self, count: int) -> float | None:
        """The part of the accepted messages that a count is; None: none was accepted."""
        return count / self.accepted if self.accepted else None


class ResultsReader:
    """Reads the results of one stage's runs. Raises NotDeployed."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        search = search_of(session, stage)
        dynamodb = session.client("dynamodb")
        self._tallies = None if search is None else Tallies(dynamodb, search[0].search_table)
        self._preferences = Preferences(dynamodb, name(stage, "preferences"))

    def of(self, run: Run, topic: str | None) -> Results | None:
        """A run's results; None: the stage has no search, which counts them."""
        if self._tallies is None:
            return None
        tally = self._tallies.of_run(run.campaign, run.run)
        ended = {each: tally[each] for each in Results.__struct_fields__[2:-1]}
        # Who had opted out before got an entry in the ledger, and no message.
        left_out = min(run.opted_out, ended["suppressed"])
        since = int(epoch(run.scheduled_at) * 1000)
        return Results(
            run.composed,
            max(0, run.composed + left_out - sum(ended.values())),
            **ended,
            opted_out_since=self._preferences.opted_out_since(topic, since) if topic else None,
        )
