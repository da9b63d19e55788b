"""Memory of a provider's refusals: the wait until a provider that refuses most messages accepts messages
again, and the evidence about refusals whose cause the provider's words do not show."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from mailroom.budget import CLOSED_SECONDS
from mailroom.delivery.waiting.reason import Answer, Due, Entry, WaitReason
from mailroom.delivery.worker import Tools
from mailroom.ledger.waits import PROVIDER_REFUSES
from mailroom.message.message import Key
from mailroom.message.outcome import Misconfigured, Refusal, Rejected, Retry, Sent
from mailroom.telemetry import logger

LATEST_MESSAGES, MOST_REFUSED = 20, 10
"""The bulk lane waits as soon as MOST_REFUSED of its LATEST_MESSAGES latest messages were refused because of
the configuration, not because of the message."""
MOST_UNDECIDED = 1000
"""Number of undecided messages that a sender remembers. A forgotten message is retried more often."""
SEPARATED = 2
"""Number of pairs of a message's refusals that acceptances must separate before the message is at fault."""


class Refused(NamedTuple):
    """Latest undecided refusal of a message."""

    number: int
    """Number of the refusal, counted from 1."""
    separated: int
    """Number of the message's refusals that an acceptance separates from the refusal before."""


class UndecidedRefusals:
    """Refusals for which either the message or the configuration may be at fault, such as "no number can send
    to this destination": also the words if the stage's pool of numbers was deleted.

    A fault of the configuration refuses every message. So if another message was submitted and accepted
    between two refusals of a message, the configuration was not at fault for the whole time. The message is
    at fault itself if acceptances separate three of its refusals: otherwise the fault of the configuration
    would have to come and go three times, each time while this message was submitted. A message without a
    newer acceptance is not at fault. Each execution environment decides by the messages that it has
    submitted."""

    def __init__(self) -> None:
        self.refusals = 0
        """Number of undecided refusals so far. A submit that begins at a lower number may have reached the
        provider before the latest refusal."""
        self.newest = 0
        """`refusals` when the latest of the accepted submits began."""
        self._refused: OrderedDict[Key, Refused] = OrderedDict()
        self._lock = Lock()

    def accepted(self, began: int) -> None:
        """Note that the provider has accepted a message. `began`: the attribute `refusals` when its submit
        began."""
        if began > self.newest:
            self.newest = began

    def decided(self, key: Key, refusal: Rejected, newest: int) -> Refusal:
        """Return the outcome of an undecided refusal of the message `key`. `newest`: the attribute of this
        name when the submit began. A later acceptance does not separate this refusal from the one before."""
        with self._lock:
            self.refusals += 1
            before = self._refused.pop(key, None)
            is_separated = before is not None and newest >= before.number
            separated = is_separated + (0 if before is None else before.separated)
            if separated >= SEPARATED:
                return refusal
            self._refused[key] = Refused(self.refusals, separated)
            if len(self._refused) > MOST_UNDECIDED:
                self._refused.popitem(last=False)
        is_misconfigured = before is not None and not is_separated
        return Misconfigured(refusal.reason) if is_misconfigured else Retry(refusal.reason)


class ProviderRefusals(WaitReason):
    """The provider refuses most bulk messages because of the configuration. New bulk messages wait, so that a
    campaign does not end as thousands of dead letters. Messages that were received before are still
    submitted. They show when the provider accepts messages again, or they become dead letters, which set off
    an alarm. Each execution environment of the Lambda function decides by the messages that it has submitted,
    so this costs no further call."""

    name, metric = PROVIDER_REFUSES, "WaitsForProvider"

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._refused: dict[Key, bool] = {}
        """Whether each of the latest messages was refused because of the configuration, by message, with the
        latest response last. A message that is retried counts once."""
        self._closed_until = 0.0

    def waits(self, entries: Sequence[Entry], moment: float) -> Mapping[Key, Due]:
        if moment >= self._closed_until:
            return {}
        return {entry.record.key: self._closed_until for entry in entries if entry.record.receives == 1}

    def learn(self, answers: Sequence[Answer]) -> None:
        """Let new messages wait for CLOSED_SECONDS if the provider has refused most of the latest messages,
        and one of this batch. Retry, DayUsedUp and Conflict do not count."""
        for answer in answers:
            if isinstance(answer.outcome, Sent | Rejected | Misconfigured):
                self._refused.pop(answer.key, None)
                self._refused[answer.key] = isinstance(answer.outcome, Misconfigured)
        self._refused = dict([*self._refused.items()][-LATEST_MESSAGES:])
        is_refused = any(isinstance(answer.outcome, Misconfigured) for answer in answers)
        if is_refused and sum(self._refused.values()) >= MOST_REFUSED:
            self._closed_until = self._tools.clock() + CLOSED_SECONDS
            logger.error("bulk messages wait: the provider refuses them", seconds=CLOSED_SECONDS)
            self._tools.tally.add("BulkClosed")
