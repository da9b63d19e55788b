"""How fast a lane sends: the lower of its rate and of workers / the time of a message.

An invocation takes as long as its messages one after another, and some time passes until the next one: the
formula of the article "How We Send Mass Personalised Emails using AWS Serverless Technologies" (Hashnode,
2022). Every message is sent at its first attempt, and all workers run from the start.
"""

import math
from dataclasses import dataclass

from mailroom_ops.costs.lanes import ConfiguredLane

BETWEEN_SECONDS = 0.1
"""Time from one invocation of a worker to its next, assumed."""
MIN_WORKERS = 2
"""The lowest MaximumConcurrency of a queue's mapping:
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html."""


@dataclass(frozen=True)
class Pace:
    """Speeds of a lane in messages a second, and the seconds of a message behind them."""

    lane: ConfiguredLane

    @property
    def seconds(self) -> float:
        """Time of a message in its sender. Its computing takes longer with a part of a vCPU, which the
        messages at a time share."""
        estimate = self.lane.estimate
        slowed = estimate.computing / self.lane.vcpu
        return max(estimate.latency - estimate.computing + slowed, self.lane.at_once * slowed)

    @property
    def working(self) -> float:
        """Seconds that a worker works for each message."""
        return math.ceil(self.lane.batch / self.lane.at_once) * self.seconds / self.lane.batch

    @property
    def waiting(self) -> float:
        """Seconds that a worker waits for each message, so that the lane keeps to its rate."""
        return max(0.0, self.lane.pace - self.working)

    @property
    def speeds(self) -> dict[str, float]:
        """Speeds that the rate and that the workers allow, the lowest first."""
        speeds = {"workers": self.lane.workers * self._worker_speed}
        if self.lane.rate:
            speeds["rate"] = self.lane.rate
        return dict(sorted(speeds.items(), key=lambda item: item[1]))

    @property
    def speed(self) -> float:
        """Messages a second."""
        return min(self.speeds.values())

    @property
    def workers_for_rate(self) -> int | None:
        """Lowest number of workers that reaches the rate; None if the lane is unlimited."""
        if self.lane.rate is None:
            return None
        return max(MIN_WORKERS, math.ceil(round(self.lane.rate / self._worker_speed, 9)))

    @property
    def _worker_speed(self) -> float:
        return 1 / (self.working + BETWEEN_SECONDS / self.lane.batch)
