"""Checks whether the daily budget of a channel has capacity, before a campaign collects its next page."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.aws import queues
from mailroom.budget import Budget
from mailroom.campaigns.definition import Definition

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

LOOK_AGAIN_SECONDS = 120
"""Seconds after which a page that must wait is checked again, because a limit may have changed meanwhile."""


class PageRoom(Struct, frozen=True):
    """Check of one channel: whether its daily budget has capacity for another page, after the messages that
    are already in its queues."""

    budget: Budget
    sqs: "SQSClient"
    lane_url: str
    audience_url: str

    def again(self, definition: Definition, moment: float) -> float | None:
        """Return None if the next page of the campaign may be collected at once, or else the approximate time
        in epoch seconds at which the budget has capacity for it.

        If only a part of a page fits into the budget, the other messages wait after they are composed. So a
        page waits only if the messages that are already in the queues use up the budget. Their number is
        estimated from the approximate depths of the queues.
        """
        room, again = self.budget.room()
        if room <= 0:
            return max(again, moment + LOOK_AGAIN_SECONDS)
        composing = queues.depth(self.sqs, self.audience_url) * definition.recipients_per_message
        on_its_way = composing + queues.depth(self.sqs, self.lane_url)
        return None if room > on_its_way else moment + LOOK_AGAIN_SECONDS
