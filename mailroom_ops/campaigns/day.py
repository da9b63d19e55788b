"""The daily limit of a campaign's channel, read from the environment of the function `collect`."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mailroom.budget import Budget, Room
from mailroom.clock import Clock
from mailroom.environment import DayLimit
from mailroom_ops.costs.days import DayShare, days, portions
from mailroom_ops.shared import deployed_stage as stages

if TYPE_CHECKING:
    import boto3


@dataclass(frozen=True)
class CampaignDay:
    """Daily limit of a channel, and the recipients that it still allows at the time `now` (epoch seconds)."""

    limit: DayLimit
    room: Room
    now: float

    @classmethod
    def of(cls, session: "boto3.Session", stage: str, channel: str, clock: Clock) -> "CampaignDay | None":
        """Return the daily limit of a channel, or None if its sending is unlimited. Raises NotDeployed for a
        stage without campaigns."""
        variables = stages.function_variables(session.client("lambda"), stages.name(stage, "collect"))
        limits = json.loads(variables.get("LIMITS", "{}")).get(channel)
        if limits is None:
            return None
        limit, table = DayLimit(**limits), variables["BUDGETS_TABLE"]
        dynamodb = session.client("dynamodb")
        budget = Budget(dynamodb, table, channel, limit.per_day, limit.reserve, clock)
        return cls(limit, budget.room(), clock())

    def shares(self, messages: int) -> list[DayShare]:
        """Return the days on which this number of messages is sent, with the number of messages for each
        day."""
        of_day = (self.limit.per_day, self.limit.reserve)
        return days(portions(messages, *of_day, self.now, room=self.room.recipients), *of_day)
