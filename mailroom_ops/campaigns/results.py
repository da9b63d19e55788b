"""A run's results: how its messages ended, and who has opted out since."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.campaigns.runs import Run
from mailroom.clock import epoch
from mailroom.recipients.choices import Preferences
from mailroom.search.results import Tallies
from mailroom_ops.messages.search import search_of
from mailroom_ops.screen import percent
from mailroom_ops.stage import name
from mailroom_stacks.settings.monitoring import BOUNCE_RATE, COMPLAINT_RATE

if TYPE_CHECKING:
    import boto3


class Figure(Struct, frozen=True):
    """How many messages, and which part of the accepted ones they are in words ("": of no interest). `status`
    lists them ("": none does)."""

    name: str
    count: int
    rate: str = ""
    status: str = ""


class Results(Struct, frozen=True):
    """How a run's messages ended, each counted as what it is now. `put` are those that were put into the
    mailbox, `under_way` those of them without an outcome, and `waiting` those of these that may not be sent
    yet: for the day, for their window or for their `send_at`; `suppressed` were left out too, by the campaign
    or before the submit. `opted_out_since`: of the campaign's topic, since the run's time; None: it has no
    topic."""

    put: int
    under_way: int
    waiting: int
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

    @property
    def figures(self) -> list[Figure]:
        """What people want to know: what matters always, and whatever else there is."""
        always = [
            Figure("put", self.put),
            Figure("accepted", self.accepted),
            Figure("delivered", self.arrived, self._rate(self.arrived), "delivered"),
            Figure("bounced", self.bounced, self._rate(self.bounced, BOUNCE_RATE), "bounced"),
            Figure("complained", self.complained, self._rate(self.complained, COMPLAINT_RATE), "complained"),
            Figure("failed", self.failed, status="failed"),
        ]
        others = [
            Figure("under way", self.under_way),
            Figure("waiting", self.waiting, status="scheduled"),
            Figure("undelivered", self.undelivered, self._rate(self.undelivered), "undelivered"),
            Figure("suppressed", self.suppressed, status="suppressed"),
            Figure("cancelled", self.cancelled, status="cancelled"),
        ]
        since = [] if self.opted_out_since is None else [Figure("opted out since", self.opted_out_since)]
        return [*always, *(each for each in others if each.count), *since]

    def _rate(self, count: int, limit: float = 0) -> str:
        """The part of the accepted messages; `limit` is the one at which SES looks into the account."""
        if not self.accepted:
            return ""
        beside = f"; SES looks into {percent(limit)}" if limit else ""
        return percent(count / self.accepted) + beside


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
        tally = self._tallies.of_run(run.campaign, run.run, run.begun_at)
        ended = {each: tally[each] for each in Results.__struct_fields__[3:-1]}
        # Who had opted out before got an entry in the ledger, and no message.
        left_out = min(run.opted_out, ended["suppressed"])
        since = int(epoch(run.scheduled_at) * 1000)
        return Results(
            run.composed,
            max(0, run.composed + left_out - sum(ended.values())),
            tally["scheduled"],
            **ended,
            opted_out_since=self._preferences.opted_out_since(topic, since) if topic else None,
        )
