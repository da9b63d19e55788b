"""A run's results: the outcomes of its messages, and the opt-outs since then."""

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.campaigns.runs import Run
from mailroom.clock import epoch
from mailroom.recipients.choices import Preferences
from mailroom.search.campaign_tallies import Tallies
from mailroom_ops.shared.deployed_stage import name, search_of
from mailroom_ops.shared.refusals import percent
from mailroom_stacks.settings.constants import BOUNCE_RATE, COMPLAINT_RATE

if TYPE_CHECKING:
    import boto3


ALWAYS = ("accepted", "delivered", "bounced", "complained", "failed")
"""Names of figures that are shown even if they are 0."""


class Figure(Struct, frozen=True):
    """Number of messages of one kind."""

    name: str
    count: int
    rate: str = ""
    """Share of the accepted messages, as a text; empty for a figure without a rate."""
    status: str = ""
    """Status by which the messages can be listed; empty if there is none."""
    bad: bool = False
    """Whether an operator has to act."""


class Results(Struct, frozen=True):
    """Numbers of a run's messages by their present state."""

    put: int
    """Number of messages that were put into the mailbox."""
    under_way: int
    """Number of messages without an outcome."""
    waiting: int
    """Number of messages in `under_way` that wait, such as for the daily limit, a window or `send_at`."""
    sent: int
    delivered: int
    undelivered: int
    bounced: int
    complained: int
    failed: int
    suppressed: int
    """Number of recipients who had opted out before the run, and of messages that a worker did not submit
    because of a suppression or an opt-out."""
    cancelled: int
    opted_out_since: int | None
    """Number of recipients who have opted out of the campaign's topic since the run's time; None for a
    campaign without a topic."""

    @property
    def accepted(self) -> int:
        """Number of messages that a provider has accepted."""
        return self.sent + self.delivered + self.undelivered + self.bounced + self.complained

    @property
    def arrived(self) -> int:
        """Number of delivered messages. A message with a complaint was delivered before."""
        return self.delivered + self.complained

    @property
    def wrong(self) -> int:
        """Number of messages that failed, bounced, were not delivered or caused a complaint."""
        return self.undelivered + self.bounced + self.complained + self.failed

    @property
    def figures(self) -> list[Figure]:
        """Figures in the order of a message's statuses. Figures that are 0 are left out unless they are in
        ALWAYS."""
        figures = [
            Figure("under way", self.under_way),
            Figure("waiting", self.waiting, status="scheduled"),
            Figure("accepted", self.accepted),
            self._rated("delivered", self.arrived),
            self._rated("bounced", self.bounced, BOUNCE_RATE),
            self._rated("complained", self.complained, COMPLAINT_RATE),
            self._rated("undelivered", self.undelivered),
            Figure("failed", self.failed, status="failed", bad=self.failed > 0),
            Figure("suppressed", self.suppressed, status="suppressed"),
            Figure("cancelled", self.cancelled, status="cancelled"),
        ]
        since = [] if self.opted_out_since is None else [Figure("opted out since", self.opted_out_since)]
        return [*(figure for figure in figures if figure.count or figure.name in ALWAYS), *since]

    def _rated(self, status: str, count: int, limit: float = math.inf) -> Figure:
        """Return a figure with its share of the accepted messages. SES reviews an account whose share reaches
        `limit`."""
        if not count:
            return Figure(status, count, status=status)
        part, beside = count / self.accepted, f"; SES reviews at {percent(limit)}" if limit < 1 else ""
        return Figure(status, count, f"{percent(part)}{beside}", status, bad=part >= limit)


class ResultsReader:
    """Reads the results of one stage's runs. Raises NotDeployed."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        facts, rows = search_of(session, stage)
        dynamodb = session.client("dynamodb")
        self._tallies = None if rows is None else Tallies(dynamodb, facts.search_table)
        self._preferences = Preferences(dynamodb, name(stage, "preferences"))

    def of(self, run: Run, topic: str | None) -> Results | None:
        """Return a run's results. Return None for a stage without search, because the table `search` has the
        counts."""
        if self._tallies is None:
            return None
        tally = self._tallies.of_run(run.campaign, run.run, run.begun_at)
        counts = {status: tally[status] for status in Results.__struct_fields__[3:-1]}
        # People who had opted out before the run have a ledger entry but no message.
        left_out = min(run.opted_out, counts["suppressed"])
        # A lost run has no `scheduled_at`: only its stop is recorded.
        since = int(epoch(run.scheduled_at) * 1000) if run.scheduled_at else run.begun_at * 1000
        return Results(
            run.composed,
            max(0, run.composed + left_out - sum(counts.values())),
            tally["scheduled"],
            **counts,
            opted_out_since=self._preferences.opted_out_since(topic, since) if topic else None,
        )
