"""Whether a campaign's next page has room in the day: a campaign asks before it puts."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.aws import queues
from mailroom.budget import Budget
from mailroom.campaigns.definition import Definition

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

LOOK_AGAIN_SECONDS = 900
"""When a page looks again that has no room because of what is on its way."""


class PageRoom(Struct, frozen=True):
    """The day of one channel, and the queues in which a campaign's messages wait to be sent."""

    budget: Budget
    sqs: "SQSClient"
    lane_url: str
    audience_url: str

    def again(self, definition: Definition, now: float) -> float | None:
        """When a page of the campaign may find room (epoch seconds); None: it has room now.

        What is on its way counts by the queues' depths, which are approximate: what is put too much gets
        slots of its own.
        """
        # A page that is larger than a whole day goes when the day is empty.
        wanted = min(definition.page_size, self.budget.part())
        left, again = self.budget.room(wanted)
        if left < wanted:
            return max(again, now + 1)
        composing = queues.depth(self.sqs, self.audience_url) * definition.recipients_per_message
        on_its_way = composing + queues.depth(self.sqs, self.lane_url)
        return None if left - on_its_way >= wanted else now + LOOK_AGAIN_SECONDS
