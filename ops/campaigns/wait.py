"""Wait until a run is in the mailbox, or until it will not come there by itself."""

from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote

from mailroom.campaigns.runs import Run
from ops import stage as stages
from ops.campaigns.deployed import DeployedCampaigns, RunStart

QUIET_POLLS = 3
"""Polls without a change, after which a run that is accounted for is over. SQS's depths are approximate: one
zero proves nothing."""
BESIDE_POLLS = 15
"""Polls without a change while messages lie in the queues. All campaigns of a stage share these queues, so
the messages are another campaign's, which may take hours."""
LOST_POLLS = 60
"""Polls without a change where recipients are missing: a depth may lag a minute behind what was sent (SQS,
GetQueueAttributes), and messages that are on their way must not be reported as lost."""


@dataclass(frozen=True)
class Ended:
    """What became of a run; None: it never began. `problem` is what went wrong and where to look; "": all of
    the run is in the mailbox, or has a reason not to be there."""

    run: Run | None
    problem: str


def wait(
    campaigns: DeployedCampaigns,
    start: RunStart,
    seen: Callable[[Run], None],
    sleep: Callable[[float], None],
) -> Ended:
    """Look every second until a run is over, or until nothing of it can be on its way. When each recipient is
    accounted for once, a run is over whatever lies in the queues."""
    dead = campaigns.dead()
    before, quiet = None, 0
    while True:
        run = campaigns.begun(start)
        if run is not None:
            seen(run)
        over, beside = run is not None and _is_over(run, start), campaigns.depth() > 0
        # A recipient that was counted twice would hide one without an outcome.
        exact = run is not None and accounted(run, start) <= run.recipients
        moves = run != before or (beside and not (over and exact))
        before, quiet = run, 0 if moves else quiet + 1
        if quiet >= (LOST_POLLS if not over else BESIDE_POLLS if beside else QUIET_POLLS):
            return Ended(run, _problem(run, start, campaigns, campaigns.dead() - dead))
        sleep(1.0)


def accounted(run: Run, start: RunStart) -> int:
    """How many recipients of this start have an outcome. One that was composed again after a fault may count
    twice."""
    composed = run.composed - (start.known.composed if start.known else 0)
    return composed + run.existed + run.opted_out + run.left_out + run.expired


def _is_over(run: Run, start: RunStart) -> bool:
    """Whether no more news can come. With failures there may be dead letters, whatever the sum is."""
    if run.state == "collected":
        return run.failed == 0 and accounted(run, start) >= run.recipients
    return run.state != "collecting"


def _problem(run: Run | None, start: RunStart, campaigns: DeployedCampaigns, dead: int) -> str:
    which = f"{quote(start.campaign)} --run {quote(start.run)} --stage {campaigns.stage}"
    status = f"mailroom campaign status {which}"
    collect, audience = (stages.name(campaigns.stage, f"{each}-dlq") for each in ("collect", "audience"))
    if run is None:
        return f"Run {start.run} of {start.campaign} did not begin. See the dead letters in {collect}."
    if run.state == "stopped":
        return "It was stopped by an operator."
    if run.state == "expired":
        return "It has expired: what was not composed by then is not sent."
    if run.state == "collecting":
        return (
            f"Page {run.next_page} was not collected, and nothing of the run is on its way. "
            f"See {status}, and the dead letters in {collect}."
        )
    missing = run.recipients - accounted(run, start)
    if missing > 0:
        return (
            f"{missing:,} of {run.recipients:,} recipients were not composed. "
            f"See the dead letters in {audience}, and {status}."
        )
    if dead > 0:
        more = "is 1 dead letter" if dead == 1 else f"are {dead:,} dead letters"
        return f"There {more} more than before. See those in {audience}, and {status}."
    return ""
