"""Memory of a provider's refusals: the wait until a provider that refuses most messages accepts messages
again, and the evidence about refusals whose cause the provider's words do not show."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence

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
"""Number of undecided messages that a sender remembers. A forgotten message is retried once more."""


class UndecidedRefusals:
    """Refusals for which either the message or the configuration may be at fault, such as "no number can send
    to this destination": also the words if the stage's pool of numbers was deleted. A message that is refused
    twice is at fault itself if the provider has accepted another message of this sender in between. Otherwise
    the configuration is at fault. Each execution environment decides by the messages that it has
    submitted."""

    def __init__(self, at_once: int) -> None:
        """`at_once`: number of messages that the sender submits at the same time."""
        self.accepted = 0
        """Number of messages that the provider has accepted."""
        self._older = at_once - 1
        """Maximum number of acceptances after a refusal whose submit began before the refusal. They do not
        count as evidence, because the configuration may have changed since."""
        self._refused: OrderedDict[Key, int] = OrderedDict()
        """`accepted` at the first refusal of each undecided message."""

    def decided(self, key: Key, refusal: Rejected) -> Refusal:
        """Return the outcome of an undecided refusal of the message `key`: Retry for the first refusal."""
        before = self._refused.get(key)
        if before is None:
            self._refused[key] = self.accepted
            if len(self._refused) > MOST_UNDECIDED:
                self._refused.popitem(last=False)
            return Retry(refusal.reason)
        if self.accepted - before > self._older:
            return refusal
        # The next refusal is a first one again: what is accepted after a correction is not evidence about it.
        del self._refused[key]
        return Misconfigured(refusal.reason)


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
