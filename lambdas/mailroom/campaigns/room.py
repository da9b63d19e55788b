"""Whether a campaign's next page has room in the day: a campaign asks before it puts."""

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

    def again(self, definition: Definition, now: float) -> float | None:
        """Return about when a page of the campaign finds room (epoch seconds); None if it may be collected
        now.

        A page takes what there is: its first messages are sent today, and the others wait in the line. So it
        waits only if today has no room beside what is on its way, which counts by the queues' depths. They
        are approximate.
        """
        left, again = self.budget.room()
        if left <= 0:
            return max(again, now + LOOK_AGAIN_SECONDS)
        composing = queues.depth(self.sqs, self.audience_url) * definition.recipients_per_message
        on_its_way = composing + queues.depth(self.sqs, self.lane_url)
        return None if left > on_its_way else now + LOOK_AGAIN_SECONDS
