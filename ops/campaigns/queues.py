"""A stage's campaign queues: what is put there, what waits there, and what was given up on."""

from typing import TYPE_CHECKING

from ops import stage as stages
from ops.screen import NotDeployed

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

QUEUES = ("collect", "audience")


def without_campaigns(what: str, stage: str) -> NotDeployed:
    """Why a stage's queue, table or function for campaigns is not there: it has no campaign, or is not."""
    return NotDeployed(what, f"Deploy {stage} with a campaign enabled")


class CampaignQueues:
    """Those of one stage. All raise NotDeployed where there are none."""

    def __init__(self, sqs: "SQSClient", stage: str) -> None:
        self._sqs = sqs
        self._stage = stage
        self._urls: dict[str, str] = {}  # whoever waits for a run looks at all queues every second

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
        if short not in self._urls:
            name = stages.name(self._stage, short)
            try:
                self._urls[short] = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
            except self._sqs.exceptions.QueueDoesNotExist:
                raise without_campaigns(f"queue {name}", self._stage) from None
        return self._urls[short]

    def _depth(self, short: str) -> int:
        return stages.depth(self._sqs, self._url(short)).all
