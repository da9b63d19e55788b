"""The memory of what was logged: each dead letter is told of once, over all passes and cold starts."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mailroom.aws import clients
from mailroom.aws.dynamo import Sets, batch_get, number, string
from mailroom.clock import Clock, milliseconds
from mailroom.dead_letters.cause import Cause
from mailroom.dead_letters.dead_letter import Letter
from mailroom.message.message import Key

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

KEPT_SECONDS = 15 * 86400
"""A dead-letter queue keeps nothing for more than 14 days."""


class DeadLetterLog:
    """One item a letter, by its SQS message id: redriven it has a new one, and is told of anew if it dies
    again (SQS developer guide, "dead-letter queue redrive")."""

    def __init__(self, client: "DynamoDBClient", table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    @classmethod
    def of(cls, table: str, clock: Clock) -> "DeadLetterLog":
        """The memory in a table, by the process's own client."""
        return cls(clients.dynamodb(), table, clock)

    def unknown(self, letters: Iterable[Letter]) -> list[Letter]:
        """Those that were not told of yet. Raises UnprocessedKeys.

        An outage's letters lie for days: to read what is known costs a fifth of a write that is refused.
        """
        asked = {each.message_id: each for each in letters}
        keys = [{"message_id": string(each)} for each in asked]
        # Consistent: what a pass has just told must not be told by the next one.
        for item in batch_get(self._client, {self._table: keys}, consistent=True)[self._table]:
            asked.pop(item["message_id"], None)
        return list(asked.values())

    def remember(self, letter: Letter, key: Key | None, cause: Cause) -> None:
        """It was told of; what was said first stays."""
        now = self._clock()
        item: Sets = {
            "message_id": string(letter.message_id),
            "queue": string(letter.queue),
            "cause": {"M": {"code": string(cause.code), "message": string(cause.message)}},
            "receives": number(letter.receives),
            "sent_at": number(letter.sent_at),
            "first_seen": number(milliseconds(now)),
            "ttl": number(now + KEPT_SECONDS),
        }
        if key is not None:
            item |= {"id": string(key.id), "event_type": string(key.event_type)}
        try:
            self._client.put_item(
                TableName=self._table, Item=item, ConditionExpression="attribute_not_exists(message_id)"
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            return  # the SDK asked twice, or another pass was at it too
