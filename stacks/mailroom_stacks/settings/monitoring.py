"""Settings of alarms: recipients of notices, and thresholds."""

from typing import Annotated, Literal

from pydantic import Field

from mailroom_stacks.settings.sections import Section

_ADDRESS = r"^[^@\s]+@([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+$"
_HTTPS = r"^https://[^\s/]+(/\S*)?$"
LONGEST_MINUTES = 20_160
"""Longest retention of a queue: 14 days."""
QUEUE_ALARMS = ("dlq-not-empty", "waiting-long", "backlog-old", "in-flight-many")
"""Kinds of alarms that each queue has, which show whether messages arrive."""
CANARY_ALARM = "canary-missing"
"""Kind of the canary's alarm, which every stage with a canary has."""
CANARY_MINUTES = 5
"""Minutes between two canaries."""
BOUNCE_RATE_WARNING, BOUNCE_RATE = 0.02, 0.05
"""Shares of permanently bounced mails: for an early warning, and at which SES reviews the account. SES counts
them over a representative volume."""
COMPLAINT_RATE_WARNING, COMPLAINT_RATE = 0.0008, 0.001
"""The same shares of complaints."""
NEARLY_ALL = 0.8
"""Share of the account's functions from which on an alarm rings."""


class Monitoring(Section):
    """Topics of the alarms with their subscribers, and thresholds."""

    level: Literal["full", "minimal"] = "full"
    """minimal: only alarms of queues, no dashboards, no metrics of the streams' mappings, and keys that do
    not rotate."""
    emails: tuple[Annotated[str, Field(pattern=_ADDRESS)], ...] = ()
    """Addresses that get notices. Each first gets a mail of SNS, and must confirm it."""
    urls: tuple[Annotated[str, Field(pattern=_HTTPS)], ...] = ()
    """Https endpoints that understand SNS, such as that of an incident service. They stand in the
    template."""
    waiting_minutes: dict[str, Annotated[int, Field(ge=1, le=LONGEST_MINUTES)]] = Field(default_factory=dict)
    """Minutes that a queue's oldest message may wait, by the queue's short name, such as mail-bulk."""
    concurrency_quota: int = Field(default=1_000, ge=10, le=1_000_000)
    """Functions that Lambda lets the account run at once in this region. An alarm rings at 80 %."""
    canary: bool = False
    """Whether a mail goes to the provider's test address every 5 minutes. Alarms ring if none is delivered,
    and if codes are late: `mailroom docs codes-late`."""

    @property
    def is_full(self) -> bool:
        """Whether the stage has all alarms, dashboards and metrics."""
        return self.level == "full"

    def wants(self, kind: str) -> bool:
        """Whether the stage has alarms of a kind."""
        return self.is_full or kind in (*QUEUE_ALARMS, CANARY_ALARM)

    @property
    def canaries_a_day(self) -> int:
        """The number of canaries that a stage sends in 24 hours."""
        return 1440 // CANARY_MINUTES if self.canary else 0

    @property
    def many_functions(self) -> int:
        """Functions at once at which the alarm `concurrency` rings."""
        return round(self.concurrency_quota * NEARLY_ALL)
