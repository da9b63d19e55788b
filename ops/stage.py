"""What a stage's things are called, and how full its queues are: each said at one place."""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_COUNTS: Any = tuple(f"ApproximateNumberOfMessages{of}" for of in ("", "NotVisible", "Delayed"))


class Depth(Struct, frozen=True):
    """How many messages a queue holds: that wait, that somebody has received, that wait for their delay.
    All are SQS's own numbers, approximate ones."""

    visible: int
    in_flight: int
    delayed: int

    @property
    def all(self) -> int:
        """All of them."""
        return self.visible + self.in_flight + self.delayed


def prefix(stage: str) -> str:
    """What the names of all things of a stage begin with."""
    return f"mailroom-{stage}-"


def name(stage: str, part: str) -> str:
    """The name of a table, a queue or a function, such as mailroom-dev-ledger."""
    return f"{prefix(stage)}{part}"


def depth(sqs: "SQSClient", url: str) -> Depth:
    """How full a queue is."""
    found: dict[Any, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(_COUNTS)).get(
        "Attributes", {}
    )
    return Depth(*(int(found.get(each, 0)) for each in _COUNTS))
