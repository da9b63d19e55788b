"""A stage's campaign queues: what is put there, what waits there, and what was given up on."""

from typing import TYPE_CHECKING

from ops.screen import Refused

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

QUEUES = ("collect", "audience")
_DEPTHS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class NotDeployed(Refused):
    """The stage has no campaigns in this account and region."""

    def __init__(self, what: str, name: str, stage: str) -> None:
        super().__init__(
            f"There is no {what} {name} in this account and region; deploy {stage} with a campaign enabled, "
            "or check the credentials and the region."
        )


class CampaignQueues:
    """Those of one stage. All raise NotDeployed where there are none."""

    def __init__(self, sqs: "SQSClient", stage: str) -> None:
        self._sqs = sqs
        self._stage = stage

    def start(self, body: str) -> None:
        """Put a start on the collect queue."""
        self._sqs.send_message(QueueUrl=self._url("collect"), MessageBody=body)

    def depth(self) -> int:
        """How many messages wait to be collected or composed, in flight among them."""
        return sum(self._depth(short) for short in QUEUES)

    def dead(self) -> int:
        """How many dead letters there are. Looking at them takes none away."""
        return sum(self._depth(f"{short}-dlq") for short in QUEUES)

    def _url(self, short: str) -> str:
        name = f"mailroom-{self._stage}-{short}"
        try:
            return self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
        except self._sqs.exceptions.QueueDoesNotExist:
            raise NotDeployed("queue", name, self._stage) from None

    def _depth(self, short: str) -> int:
        answer = self._sqs.get_queue_attributes(QueueUrl=self._url(short), AttributeNames=["All"])
        attributes = {str(name): value for name, value in answer["Attributes"].items()}
        return sum(int(attributes.get(name, 0)) for name in _DEPTHS)
