"""The fax queue's numbers, and its retry queue's. All times are in seconds."""

import math
from dataclasses import dataclass, replace

from stacks.derived.queues import QueueRules, longest_stay, worker_rules
from stacks.derived.waits import RECEIVES_OVER, Waits
from stacks.settings import Fax

WAITING_RECEIVES = 2
"""A retry is received when its DelaySeconds end, then when its time has come; once more if clocks differ."""


@dataclass(frozen=True)
class FaxRules(QueueRules):
    """The fax queue's rules.

    lease        ├── function time-out ──┼─ margin ─┤            then the next worker may claim
    visibility   ├── lease ─────────────────────────┼─ margin ─┤ then the queue delivers again

    Not six time-outs, as AWS advises: a record that is not visible locks its line, and after a crash that
    would be for an hour and a half. The advice leaves room for throttled invocations: with one record each
    and bounded concurrency they are rare, and cost a receive of those that `crash_allowance` has.
    """

    to_finish: int
    """Receives that see a fax through once it was submitted, crashes included."""

    @property
    def last_submit_receive(self) -> int:
        """The last receive that may submit: what is left then suffices until the fax has ended, so one that
        may be under way is never dead-lettered."""
        return self.max_receives - self.to_finish


def fax_rules(fax: Fax, lease_margin: int) -> FaxRules:
    """The rules of the fax queue."""
    waits = Waits.of(fax)
    lease = fax.timeout_seconds + lease_margin
    visibility = lease + fax.visibility_margin_seconds
    to_finish = invocations_to_finish(fax) + fax.crash_allowance
    receives = min(waits.receives_to_cover(fax.longest_throttling_seconds) + to_finish, RECEIVES_OVER)
    return FaxRules(
        lease=lease,
        visibility=visibility,
        max_receives=receives,
        longest_stay=longest_stay(waits, receives, max(visibility, fax.misconfigured_seconds)),
        to_finish=to_finish,
    )


def invocations_to_finish(fax: Fax) -> int:
    """How many invocations watch the longest fax, each handing on to the next near its time-out."""
    if fax.watched_seconds <= 0:
        return RECEIVES_OVER
    return math.ceil(fax.longest_fax_seconds / fax.watched_seconds)


def mover_rules(fax: Fax, lease_margin: int) -> QueueRules:
    """The rules of the retry queue: moving can fail like anything, and before that a record waits."""
    rules = worker_rules(fax.retry, lease_margin)
    waiting = fax.retry_delay_cap_seconds + WAITING_RECEIVES * rules.visibility
    return replace(
        rules,
        max_receives=rules.max_receives + WAITING_RECEIVES,
        longest_stay=rules.longest_stay + waiting,
    )
