"""A run's results: the outcomes of its messages, and the opt-outs since then."""

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.campaigns.runs import Run
from mailroom.clock import epoch
from mailroom.recipients.choices import Preferences
from mailroom.search.campaign_tallies import Tallies
from mailroom_ops.messages.search import search_of
from mailroom_ops.shared.deployed_stage import name
from mailroom_ops.shared.screen import percent
from mailroom_stacks.settings.monitoring import BOUNCE_RATE, COMPLAINT_RATE

if TYPE_CHECKING:
    import boto3


ALWAYS = ("accepted", "delivered", "bounced", "complained", "failed")
"""Figures that are shown if they are 0, too."""


class Figure(Struct, frozen=True):
    """Number of messages of one kind."""

    name: str
    count: int
    rate: str = ""
    """Part of the accepted messages in words; empty if it is of no interest."""
    status: str = ""
    """Status that lists the messages; empty if none does."""
    bad: bool = False
    """Whether somebody has to act."""


class Results(Struct, frozen=True):
    """Numbers of a run's messages by their present state."""

    put: int
    """Messages that were put into the mailbox."""
    under_way: int
    """Messages without an outcome."""
    waiting: int
    """Part of `under_way` that may not be sent yet: for the day, for their window or for their `send_at`."""
    sent: int
    delivered: int
    undelivered: int
    bounced: int
    complained: int
    failed: int
    suppressed: int
    """Messages that were left out by the campaign, or before the submit."""
    cancelled: int
    opted_out_since: int | None
    """Recipients who opted out of the campaign's topic, if it has one, since the run's time."""

    @property
    def accepted(self) -> int:
        """How many a provider has accepted."""
        return self.sent + self.delivered + self.undelivered + self.bounced + self.complained

    @property
    def arrived(self) -> int:
        """How many were delivered; a complaint follows a delivery."""
        return self.delivered + self.complained

    @property
    def wrong(self) -> int:
        """Number of messages that went wrong."""
        return self.undelivered + self.bounced + self.complained + self.failed

    @property
    def figures(self) -> list[Figure]:
        """Return the figures in the order of a message's way; those that are rare, only if there are some."""
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
        """Return a figure with its part of the accepted messages. SES looks into an account at `limit`."""
        if not count:
            return Figure(status, count, status=status)
        part, beside = count / self.accepted, f"; SES looks into {percent(limit)}" if limit < 1 else ""
        return Figure(status, count, f"{percent(part)}{beside}", status, bad=part >= limit)


class ResultsReader:
    """Reader of the results of one stage's runs. Raises NotDeployed."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        search = search_of(session, stage)
        dynamodb = session.client("dynamodb")
        self._tallies = None if search is None else Tallies(dynamodb, search[0].search_table)
        self._preferences = Preferences(dynamodb, name(stage, "preferences"))

    def of(self, run: Run, topic: str | None) -> Results | None:
        """Return a run's results, or None for a stage without search, which counts them."""
        if self._tallies is None:
            return None
        tally = self._tallies.of_run(run.campaign, run.run, run.begun_at)
        counts = {status: tally[status] for status in Results.__struct_fields__[3:-1]}
        # People who had opted out before the run have a ledger entry but no message.
        left_out = min(run.opted_out, counts["suppressed"])
        since = int(epoch(run.scheduled_at) * 1000)
        return Results(
            run.composed,
            max(0, run.composed + left_out - sum(counts.values())),
            tally["scheduled"],
            **counts,
            opted_out_since=self._preferences.opted_out_since(topic, since) if topic else None,
        )
