"""Pauses the runs of campaigns of which too many messages bounce or cause complaints.

SES reviews an account for its bounces and complaints, so one run to an old list can end all sending. Such a
run is paused until a person resumes it.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from mailroom.aws import clients
from mailroom.campaigns.runs import BY_ITSELF, Runs
from mailroom.clock import Clock, iso
from mailroom.environment import IndexSettings
from mailroom.ledger.items import run_of
from mailroom.message.message import begun_of
from mailroom.message.outcome import ACCEPTED
from mailroom.search.campaign_tallies import Tallies
from mailroom.telemetry import count, logger

LEAST_BOUNCED, LEAST_COMPLAINED, COMPLAINED_SHARE = 20, 8, 0.001
"""Parts of the limits that are the same for all campaigns. A test computes that fewer than one in two hundred
healthy runs, with 2 % bounces and 0.03 % complaints, exceeds the limits; with 5 complaints it would be one in
fifty."""
RAISED = 2
"""Factor by which the limits of a paused or stopped run are greater than its shares. So a run that a person
has resumed is paused again only if it becomes twice as bad."""
BOUNCED, COMPLAINED = "bounced", "complained"


class Limit(Struct, frozen=True):
    """Limit for the messages of a run that have a certain status. Number and share must both be exceeded,
    because the share of a few messages proves little."""

    status: str
    effect: str
    """Words for people."""
    least: int
    """Minimum number of these messages."""
    share: float
    """Maximum share of these messages among the accepted ones."""

    def share_above(self, counts: Mapping[str, int]) -> float:
        """Return the share of a run with these numbers of messages by status, or 0 within the limit."""
        number = counts.get(self.status, 0)
        share = number / (accepted(counts) or 1)
        return share if number >= self.least and share > self.share else 0


def accepted(counts: Mapping[str, int]) -> int:
    """Return how many messages of a run a provider has accepted, from the numbers by status."""
    return sum(counts.get(status, 0) for status in ACCEPTED)


def limits_of(stop_at: float, raised: Mapping[str, float]) -> tuple[Limit, Limit]:
    """Return the limits for a run of a campaign with the setting `stop_at`, which is in percent. `raised` are
    the run's own, higher limits, by status."""
    bounced, complained = raised.get(BOUNCED, 0), raised.get(COMPLAINED, 0)
    return (
        Limit(BOUNCED, "bounced", LEAST_BOUNCED, max(stop_at / 100, bounced)),
        Limit(COMPLAINED, "caused complaints", LEAST_COMPLAINED, max(COMPLAINED_SHARE, complained)),
    )


def shares_above(limits: Iterable[Limit], counts: Mapping[str, int]) -> dict[Limit, float]:
    """Return the exceeded limits, each with the run's share."""
    return {limit: share for limit in limits if (share := limit.share_above(counts))}


class BadRuns(Struct, frozen=True):
    """Pauses runs whose counted messages exceed a limit."""

    tallies: Tallies
    runs: Runs
    stop_at: Mapping[str, float | None]
    """Setting `stop_at` by campaign; None for a campaign whose runs are never paused."""
    clock: Clock = time.time

    @classmethod
    def of(cls, settings: IndexSettings) -> "BadRuns":
        """Build the object from the settings of the function `index-messages`."""
        dynamodb = clients.dynamodb()
        tallies = Tallies(dynamodb, settings.search_table)
        return cls(tallies, Runs(dynamodb, settings.runs_table), settings.campaigns)

    def pause(self, items: Iterable[Mapping[str, Any]]) -> None:
        """Pause the bad runs among the runs of messages that have bounced or caused a complaint. `items` are
        ledger items in plain Python, which were counted before. A repeated call is harmless. Raises errors of
        DynamoDB."""
        bad = (item for item in items if item.get("status") in (BOUNCED, COMPLAINED))
        for campaign, run, begun_at in {(*run_of(item), begun_of(item["id"])) for item in bad}:
            stop_at = self.stop_at.get(campaign)
            if begun_at is not None and stop_at is not None:
                self._look(campaign, run, begun_at, stop_at)

    def _look(self, campaign: str, name: str, begun_at: int, stop_at: float) -> None:
        counts = self.tallies.of_run(campaign, name, begun_at)
        shares = shares_above(limits_of(stop_at, {}), counts)
        # Most bounces are those of healthy runs, so the run is read only if it may be bad.
        run = self.runs.read(campaign, name) if shares else None
        # A late event may be about an earlier run of the same name.
        if run is None or run.begun_at != begun_at:
            return
        limits = dict(run.limits)
        for limit, share in shares.items():
            limits[limit.status] = max(RAISED * share, limits.get(limit.status, 0))
        is_paused = run.paused_by_itself
        if run.phase in ("paused", "stopped"):
            # Messages that were sent before still bounce. With the limits of the pause, the first of them
            # after a resumption or a later start would pause the run again.
            self.runs.set_limits(run, limits)
        elif exceeded := shares_above(limits_of(stop_at, run.limits), counts):
            parts = " and ".join(f"{share:.2%} {limit.effect}" for limit, share in exceeded.items())
            reason = f"of {accepted(counts):,} accepted messages, {parts}"
            words = f"since {iso(self.clock())} by {BY_ITSELF}: {reason}"
            is_paused = self.runs.pause_by_itself(run, words, limits)
        # A pause is counted again at each further event, because a crash may have lost its first count.
        if is_paused:
            logger.error("the run of a campaign has paused itself", campaign=campaign, run=name)
            count("RunsPaused")
