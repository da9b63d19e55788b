"""Whether a message that was marked as a dead letter can still lie in a dead-letter queue.

The ledger's mark stays until somebody claims the message. A letter does not: SQS deletes it when its
retention is over, and people purge queues. A mark without a letter is a message that nobody is on any more.
"""

import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.clock import Clock
from ops.resend.deployed import Deployed

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.literals import QueueAttributeNameType

SETTLED_SECONDS = 900.0
"""For as long after its mark a letter is taken to be there: SQS's counts lag behind by a minute or more, and
a letter that somebody moves is in neither of two queues' counts for a moment."""
_DEPTHS: "tuple[QueueAttributeNameType, ...]" = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class Held(Struct, frozen=True):
    """What a dead-letter queue holds: about how many letters, and for how many seconds it keeps one."""

    letters: int
    kept: float


class Letters:
    """One stage's dead-letter queues, each asked once, and only when a marked message is met."""

    def __init__(self, deployed: Deployed) -> None:
        self._sqs: SQSClient = deployed.sqs
        self._dispatch = deployed.dispatch
        self._clock: Clock = deployed.clock
        self._held: dict[str, list[Held]] = {}

    def may_hold(self, channel: str, marked_at: float) -> bool:
        """Whether the letter of a message that was marked then (epoch seconds) may be there yet."""
        age = self._clock() - marked_at
        if age < SETTLED_SECONDS:
            return True
        if channel not in self._held:
            self._held[channel] = [self._look(url) for url in sorted(self._urls(channel))]
        # A mark is never older than the letter's death, and retention counts from there or from before.
        return any(each.letters and age < each.kept for each in self._held[channel])

    def _urls(self, channel: str) -> set[str]:
        """The dead-letter queues in which a message of the channel can lie: its own, and the schedules'."""
        dispatch = self._dispatch
        sources = set(dispatch.routes.get(channel, {}).values())
        if channel in dispatch.delayed_routes:
            sources.add(dispatch.delayed_routes[channel])
        sources |= self._url(dispatch.schedule_target_arn)
        targets = {self._target(url) for url in sources} | {dispatch.schedule_dead_letter_arn}
        return {url for arn in targets if arn for url in self._url(arn)}

    def _target(self, url: str) -> str:
        """The ARN of where a queue puts what it gives up on; "": it has no such queue."""
        reply = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])
        policy = reply.get("Attributes", {}).get("RedrivePolicy", "{}")
        return str(json.loads(policy).get("deadLetterTargetArn", ""))

    def _url(self, arn: str) -> set[str]:
        try:
            return {self._sqs.get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"]}
        except self._sqs.exceptions.QueueDoesNotExist:
            return set()  # nor does any letter in it

    def _look(self, url: str) -> Held:
        asked: Any = (*_DEPTHS, "MessageRetentionPeriod")
        found = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=asked)["Attributes"]
        return Held(sum(int(found.get(name, 0)) for name in _DEPTHS), float(found["MessageRetentionPeriod"]))
