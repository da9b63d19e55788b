"""How long a record waits between receives, and how many receives that makes. All times are in seconds."""

from dataclasses import dataclass

from stacks.settings import Backoff

DAY = 86_400
SHORTEST_JITTER = 0.5  # a worker waits 50 to 100 % of the nominal wait
SQS_RECEIVES = 1000  # the highest maxReceiveCount
RECEIVES_OVER = SQS_RECEIVES + 1


@dataclass(frozen=True)
class Waits:
    """How long a record waits after each receive that did not finish it: base, 2·base, 4·base … cap."""

    base: int
    cap: int

    @classmethod
    def of(cls, backoff: Backoff) -> "Waits":
        """The waits that a section sets."""
        return cls(backoff.backoff_seconds, backoff.backoff_cap_seconds)

    def after(self, receive: int) -> int:
        """The nominal wait after receive number `receive`, counted from 1."""
        return min(self.cap, self.base << min(receive - 1, 32))

    def receives_to_cover(self, seconds: int) -> int:
        """The fewest receives whose shortest total lasts `seconds`; RECEIVES_OVER where 1000 do not."""
        total, receives = 0.0, 1
        while total < seconds and receives < RECEIVES_OVER:
            total += SHORTEST_JITTER * self.after(receives)
            receives += 1
        return receives
