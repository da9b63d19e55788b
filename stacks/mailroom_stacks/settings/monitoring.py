"""Settings of alarms: their subscribers and thresholds."""

from typing import Annotated, Literal

from pydantic import Field

from mailroom_stacks.settings.sections import Section

_ADDRESS = r"^[^@\s]+@([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+$"
_HTTPS = r"^https://[^\s/]+(/\S*)?$"
LONGEST_MINUTES = 20_160
"""Longest retention of a queue, 14 days, in minutes."""
MINIMAL = (
    *("dlq-not-empty", "waiting-long", "gave-up", "dropped", "iterator-age", "release-late"),
    *("canary-missing", "codes-late", "run-unknown", "run-paused"),
    *("misconfigured", "tries-failing", "messages-failing"),
)
"""Kinds of the alarms that a stage has at each level of monitoring: they show whether messages are
delivered."""
CANARY_MINUTES = 5
"""Minutes between two canary mails."""
NEARLY_ALL = 0.8
"""Share of the account's concurrency quota at which an alarm rings."""


class Monitoring(Section):
    """Settings of the alarms: level, subscribers and thresholds."""

    level: Literal["full", "minimal"] = "minimal"
    """minimal has the alarms that tell of messages that wait too long, fail, or are dead letters. full has
    all alarms, a dashboard, notifications of AWS Health, metrics of all streams' event source mappings, and a
    rotated key; use it for stages that people depend on."""
    emails: tuple[Annotated[str, Field(pattern=_ADDRESS)], ...] = ()
    """Mail addresses that get notifications of alarms. SNS first sends each address a mail to confirm the
    subscription."""
    urls: tuple[Annotated[str, Field(pattern=_HTTPS)], ...] = ()
    """Https endpoints that accept notifications of SNS, such as the endpoint of an incident service. The
    CloudFormation template contains these URLs."""
    waiting_minutes: dict[str, Annotated[int, Field(ge=1, le=LONGEST_MINUTES)]] = Field(default_factory=dict)
    """Age in minutes of a queue's oldest message at which an alarm rings, by the queue's short name, such as
    mail-bulk."""
    concurrency_quota: int = Field(default=1_000, ge=10, le=1_000_000)
    """Lambda's concurrency quota of the account in this region. An alarm rings at 80 %."""
    canary: bool = False
    """Whether a mail is sent to the provider's test address every 5 minutes. Alarms ring if none of these
    mails is delivered, or if messages of a lane `normal` are accepted late: `mailroom docs codes-late`."""

    @property
    def is_full(self) -> bool:
        """Whether the stage has all alarms, dashboards and metrics."""
        return self.level == "full"

    def wants(self, kind: str) -> bool:
        """Return whether the stage has alarms of `kind`."""
        return self.is_full or kind in MINIMAL

    @property
    def canaries_a_day(self) -> int:
        """Number of canary mails that the stage sends in 24 hours."""
        return 1440 // CANARY_MINUTES if self.canary else 0

    @property
    def many_functions(self) -> int:
        """Number of concurrent functions at which the alarm `concurrency` rings."""
        return round(self.concurrency_quota * NEARLY_ALL)
