"""Choice between a channel's two providers: decides when a message moves to the other provider's queue.

A message moves only after proof that it was not sent. While the outcome of a try is unknown, only the
provider of that try may submit the message, so two providers never send the same message. The ledger's claim
stores the provider, and a sender remembers the latest responses of its provider. So the choice costs neither
a further write nor state that functions share.
"""

from collections import deque

from msgspec import structs

from mailroom.clock import Clock
from mailroom.delivery.worker import HandOver, QueueRecord
from mailroom.environment import OtherProvider
from mailroom.ledger.claims import Claimed
from mailroom.ledger.items import provider_of
from mailroom.message.outcome import DayUsedUp, Outcome, Refusal, Rejected, Retry

REFUSED_IN_A_ROW = 3
"""Number of consecutive refusals after which a sender submits only the first message of each batch, until the
provider does not refuse one. So a provider that refuses everything gets only one message of each batch."""


class OtherProviderChoice:
    """Decides for one sender which messages go to the channel's other provider. The object outlives a
    batch."""

    def __init__(self, provider: OtherProvider | None, clock: Clock) -> None:
        """`provider`: the other provider; None if the channel has one provider, so that no message moves."""
        self._other = provider
        self._clock = clock
        self._refusals = deque[Refusal](maxlen=REFUSED_IN_A_ROW)
        """Latest consecutive refusals of the own provider."""
        self.is_fallback = provider is not None and provider.is_fallback
        """Whether the other provider takes the messages that the sender's own provider does not send."""

    def own(self, claim: Claimed) -> Claimed | None:
        """Return the claim with the tries of the sender's own provider. Return None if the other provider
        has to find out the outcome of an earlier try.

        The provider of the oldest try of unknown outcome decides. If it is the sender's own provider, the
        other provider's senders only move the message back. So a later try of the other provider is only a
        claim whose worker crashed before it moved the message.
        """
        if self._other is None or not claim.unsettled:
            return claim
        tries = tuple(try_ for try_ in claim.unsettled if provider_of(try_.account) != self._other.name)
        return structs.replace(claim, unsettled=tries) if claim.unsettled[0] in tries else None

    def hand_over(self) -> HandOver:
        """Return the result for the record of a message that goes to the other provider's queue."""
        assert self._other is not None
        return HandOver(self._other.queue_url)

    def answered(self, outcome: Outcome) -> None:
        """Remember the provider's response to a submit."""
        if not self.is_fallback:
            return
        if isinstance(outcome, Refusal) and self._is_providers(outcome):
            self._refusals.append(outcome)
        else:
            self._refusals.clear()

    def withheld(self) -> Refusal | None:
        """Return the reason why only the first message of a batch is submitted: the provider has refused the
        latest messages, and that message tests whether it still refuses. Returns None if all messages may be
        submitted.

        If the provider's daily quota is used up, the reason is DayUsedUp, so that the message moves to the
        other provider at once. Any other refusal becomes a Retry.
        """
        refusals = tuple(self._refusals)  # another thread may remember a response meanwhile
        if not self.is_fallback or len(refusals) < REFUSED_IN_A_ROW:
            return None
        refusal = refusals[-1]
        return refusal if isinstance(refusal, DayUsedUp) else Retry(refusal.reason)

    def moves(self, refusal: Refusal, claim: Claimed, record: QueueRecord) -> bool:
        """Return whether a message that was not sent goes to the other provider now."""
        # The other provider may be able to send to a destination to which this one cannot.
        undecided = isinstance(refusal, Rejected) and refusal.undecided
        if self._other is None or not self.is_fallback or claim.unsettled:
            return False
        if not (undecided or self._is_providers(refusal)):
            return False
        return (
            undecided
            or isinstance(refusal, DayUsedUp)
            or record.receives >= self._other.after_tries
            or self._left(record) <= 0
        )

    def wait(self, seconds: float, claim: Claimed, record: QueueRecord) -> float:
        """Return the seconds until the next try: `seconds`, or less if the message goes to the other provider
        before that."""
        if not self.is_fallback or claim.unsettled:
            return seconds
        return min(seconds, max(0.0, self._left(record)))

    def _left(self, record: QueueRecord) -> float:
        """Return the seconds until the record has waited long enough for its own provider."""
        assert self._other is not None
        return record.first_received_at + self._other.after_seconds - self._clock()

    def _is_providers(self, refusal: Refusal) -> bool:
        """Return whether the other provider may send a message that was refused: the message itself is not at
        fault and, if the daily quota is used up, the settings allow it."""
        if isinstance(refusal, DayUsedUp):
            return self._other is not None and self._other.when_day_used_up
        return not isinstance(refusal, Rejected)
