"""Feedback on a stage of its own: simulators in front of an emulator, a topic, and a queue that subscribes to
it."""

import json
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mailroom_local.aws import LocalSession, patient
from mailroom_local.providers.server import ProviderServer
from tests.support.local.served import served

if TYPE_CHECKING:
    from types_boto3_sesv2 import SESV2Client
    from types_boto3_sqs import SQSClient

SENDER = "Mailroom <mailroom@example.com>"
SET, TOPIC = "feedback", "arn:aws:sns:us-east-1:000000000000:feedback"
EVENT_TYPES = ("SEND", "DELIVERY", "BOUNCE", "COMPLAINT", "REJECT", "DELIVERY_DELAY")


@dataclass
class FeedbackStage:
    """Clients of the simulators, and the messages in the queue."""

    aws: str
    providers: str
    queue: str
    ses: "SESV2Client"
    sns: Any
    sqs: "SQSClient"

    def mail(self, *recipients: str, **more: Any) -> str:
        """Send a mail and return its message id."""
        request: dict[str, Any] = {
            "FromEmailAddress": SENDER,
            "Destination": {"ToAddresses": list(recipients)},
            "Content": {
                "Simple": {
                    "Subject": {"Data": "Hello"},
                    "Body": {"Text": {"Data": "Text"}},
                    "Headers": [{"Name": "X-Correlation-ID", "Value": "YQ"}],
                }
            },
            "EmailTags": [{"Name": "correlation", "Value": "YQ"}],
            "ConfigurationSetName": SET,
        }
        return self.ses.send_email(**request | more)["MessageId"]

    def heard(self, count: int, seconds: float = 5) -> list[str]:
        """Return the texts published to the topic, without repeats, when there are `count`, or after the time
        limit."""
        texts: dict[str, None] = {}
        deadline = time.monotonic() + seconds
        while len(texts) < count and time.monotonic() < deadline:
            answer = self.sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            for each in answer.get("Messages", []):
                envelope = json.loads(each["Body"])
                assert envelope["TopicArn"] == TOPIC
                texts[envelope["Message"]] = None
                self.sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=each["ReceiptHandle"])
        return list(texts)

    def events(self, message_id: str, count: int) -> list[dict[str, Any]]:
        """Return the different events of a mail."""
        read = [json.loads(text) for text in self.heard(count)]
        return [each for each in read if each["mail"]["messageId"] == message_id]

    def waiting(self) -> int:
        """Return the messages in the queue."""
        answer = self.sqs.get_queue_attributes(QueueUrl=self.queue, AttributeNames=["All"])
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    def get(self, path: str, method: str = "GET") -> Any:
        """Return the content of a page of the simulators."""
        with urllib.request.urlopen(urllib.request.Request(self.providers + path, method=method)) as answer:
            return json.load(answer)

    def inbox(self, channel: str) -> list[dict[str, Any]]:
        return [each for each in self.get("/inbox") if each["channel"] == channel]


@contextmanager
def running_feedback(aws: str) -> Iterator[FeedbackStage]:
    """Yield the stage with an empty emulator. The confirmation of its topic was already received."""
    with served(ProviderServer(0, aws)) as url:
        yield _prepared(aws, url)


def _prepared(aws: str, providers: str) -> FeedbackStage:
    session = LocalSession()
    ses = session.client("sesv2", endpoint_url=providers, config=patient())
    sns = session.client("sns", endpoint_url=f"{providers}/sns", config=patient())
    sqs = session.client("sqs", endpoint_url=aws, config=patient())
    ses.create_email_identity(EmailIdentity="mailroom@example.com")
    ses.create_configuration_set(ConfigurationSetName=SET)
    assert sns.create_topic(Name="feedback")["TopicArn"] == TOPIC
    ses.create_configuration_set_event_destination(
        ConfigurationSetName=SET,
        EventDestinationName="topic",
        EventDestination={
            "Enabled": True,
            "MatchingEventTypes": list(EVENT_TYPES),  # type: ignore[arg-type]
            "SnsDestination": {"TopicArn": TOPIC},
        },
    )
    queue = sqs.create_queue(QueueName="feedback")["QueueUrl"]
    arn = "arn:aws:sqs:us-east-1:000000000000:feedback"
    sns.subscribe(TopicArn=TOPIC, Protocol="sqs", Endpoint=arn)
    return FeedbackStage(aws, providers, queue, ses, sns, sqs)
