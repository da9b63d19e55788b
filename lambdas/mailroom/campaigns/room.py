"""Room of the day for the next page of a campaign, which looks before it puts."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.aws import queues
from mailroom.budget import Budget
from mailroom.campaigns.definition import Definition

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

LOOK_AGAIN_SECONDS = 120
"""Seconds after which a page without room looks again. A limit may have changed meanwhile."""


class PageRoom(Struct, frozen=True):
    """The day of one channel, and the queues in which a campaign's messages wait to be sent."""

    budget: Budget
    sqs: "SQSClient"
    lane_url: str
    audience_url: str

    def again(self, definition: Definition, moment: float) -> float | None:
        """Return the approximate time in epoch seconds at which a page of the campaign has room; None if it
        may be collected at once.

        The first messages of a page take the day's room, and the others wait in the line. So a page waits
        only if the messages that are on their way use up the room. They are counted by the approximate depths
        of the queues.
        """
        room, again = self.budget.room()
        if room <= 0:
            return max(again, moment + LOOK_AGAIN_SECONDS)
        composing = queues.depth(self.sqs, self.audience_url) * definition.recipients_per_message
        on_its_way = composing + queues.depth(self.sqs, self.lane_url)
        return None if room > on_its_way else moment + LOOK_AGAIN_SECONDS
