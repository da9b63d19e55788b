"""Messages that wait longer than a queue can delay: one EventBridge schedule each, gone once it has fired."""

import hashlib
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mailroom.message.message import Key, encode

if TYPE_CHECKING:
    from types_boto3_scheduler import EventBridgeSchedulerClient


def name_of(key: Key, due: int) -> str:
    """The schedule's name: the same for the same message and time, in the 64 characters that there are."""
    return hashlib.sha256(f"{key.event_type}\0{key.id}\0{due}".encode()).hexdigest()


class Schedules:
    """Makes schedules in one group. What they send to `target_arn`, a queue, is the message's key alone.

    What cannot be sent there for a day goes to `dead_letter_arn`, that queue's dead-letter queue.
    """

    def __init__(
        self,
        client: "EventBridgeSchedulerClient",
        group: str,
        *,
        role_arn: str,
        target_arn: str,
        dead_letter_arn: str,
    ) -> None:
        self._client = client
        self._group = group
        self._role_arn = role_arn
        self._target_arn = target_arn
        self._dead_letter_arn = dead_letter_arn

    def put(self, key: Key, due: float) -> None:
        """Make the message's schedule for `due` (epoch seconds), unless it stands already."""
        second = math.ceil(due)  # an expression holds whole seconds
        moment = datetime.fromtimestamp(second, UTC)
        try:
            self._client.create_schedule(
                Name=name_of(key, second),
                GroupName=self._group,
                ScheduleExpression=f"at({moment:%Y-%m-%dT%H:%M:%S})",
                ScheduleExpressionTimezone="UTC",
                FlexibleTimeWindow={"Mode": "OFF"},
                ActionAfterCompletion="DELETE",
                Target={
                    "Arn": self._target_arn,
                    "RoleArn": self._role_arn,
                    "DeadLetterConfig": {"Arn": self._dead_letter_arn},
                    "Input": encode({"id": key.id, "event_type": key.event_type}),
                },
            )
        except self._client.exceptions.ConflictException:
            return  # an earlier try made it
