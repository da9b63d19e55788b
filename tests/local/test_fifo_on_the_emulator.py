"""FIFO queues on the real emulator: groups in parallel, each in its order, one in flight a group."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mailroom_local.aws import LocalSession, patient
from mailroom_local.processes import wait_until
from tests.support.local.emulator import create_function, lambda_client, pumping

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

CONCURRENCY, RECEIVES, SECONDS = 3, 3, 60
VISIBILITY_SECONDS = 8
"""Well beyond a cold start on a busy machine."""
CODE = """
import json, os, time
import boto3

sqs = boto3.client("sqs")

def note(**what):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(json.dumps({"at": time.time(), **what}) + "\\n")

def handler(event, context):
    (record,) = event["Records"]
    group, receives = record["attributes"]["MessageGroupId"], record["attributes"]["ApproximateReceiveCount"]
    note(what="start", body=record["body"], group=group, receives=int(receives))
    time.sleep(0.4)
    note(what="end", body=record["body"], group=group, receives=int(receives))
    if record["body"] == "poison":
        sqs.change_message_visibility(
            QueueUrl=os.environ["QUEUE"], ReceiptHandle=record["receiptHandle"], VisibilityTimeout=0
        )
        return {"batchItemFailures": [{"itemIdentifier": record["messageId"]}]}
"""


@dataclass(frozen=True)
class Run:
    """A queue with a function of its own; what that noted."""

    sqs: "SQSClient"
    queue: str
    dead: str
    seen: Path

    def send(self, group: str, *bodies: str) -> None:
        for body in bodies:
            self.sqs.send_message(
                QueueUrl=self.queue,
                MessageBody=body,
                MessageGroupId=group,
                MessageDeduplicationId=f"{group}-{body}",
            )

    def notes(self, what: str) -> list[dict[str, Any]]:
        lines = self.seen.read_text().splitlines(keepends=True)
        notes = [json.loads(line) for line in lines if line.endswith("\n")]
        return [each for each in notes if each["what"] == what]

    def ended(self, group: str) -> list[tuple[str, int]]:
        return [(each["body"], each["receives"]) for each in self.notes("end") if each["group"] == group]

    def until_empty(self) -> None:
        assert wait_until(lambda: not any(self._depths()), SECONDS), self._depths()

    def most_at_once(self, group: str | None = None) -> int:
        """How many runs overlapped, of one group or of all."""
        changes = [
            (each["at"], change)
            for what, change in (("start", 1), ("end", -1))
            for each in self.notes(what)
            if group in (None, each["group"])
        ]
        running = most = 0
        for _, change in sorted(changes):
            running += change
            most = max(most, running)
        return most

    def _depths(self) -> list[int]:
        reply = self.sqs.get_queue_attributes(QueueUrl=self.queue, AttributeNames=["All"])
        return [int(value) for name, value in reply["Attributes"].items() if "NumberOfMessages" in name]


@pytest.fixture(scope="module")
def mapped_queue(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A queue with a pump."""
    folder = tmp_path_factory.mktemp("fifo")
    run = mapped(url, folder, "fax")
    with pumping(url, folder):
        assert wait_until(lambda: "1 mappings" in (folder / "pump.log").read_text(), SECONDS)
        yield run


def mapped(url: str, folder: Path, name: str) -> Run:
    """A queue, and a function that is mapped to it."""
    seen = folder / name
    seen.touch()
    sqs = LocalSession().client("sqs", endpoint_url=url, config=patient())
    fifo = {"FifoQueue": "true", "DeduplicationScope": "messageGroup"}
    fifo["FifoThroughputLimit"] = "perMessageGroupId"
    dead = sqs.create_queue(QueueName=f"{name}-dead.fifo", Attributes=fifo)["QueueUrl"]  # type: ignore[arg-type]
    redrive = {"deadLetterTargetArn": arn_of_queue(sqs, dead), "maxReceiveCount": RECEIVES}
    own = {"VisibilityTimeout": str(VISIBILITY_SECONDS), "RedrivePolicy": json.dumps(redrive)}
    queue = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=fifo | own)["QueueUrl"]  # type: ignore[arg-type]
    create_function(url, f"send-{name}", CODE, {"SEEN": str(seen), "QUEUE": queue})
    lambda_client(url).create_event_source_mapping(
        FunctionName=f"send-{name}",
        EventSourceArn=arn_of_queue(sqs, queue),
        BatchSize=1,
        ScalingConfig={"MaximumConcurrency": CONCURRENCY},
        FunctionResponseTypes=["ReportBatchItemFailures"],
    )
    return Run(sqs, queue, dead, seen)


def arn_of_queue(sqs: "SQSClient", queue: str) -> str:
    return sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def test_message_groups_run_in_parallel_up_to_the_mappings_concurrency_each_in_its_order(
    mapped_queue: Run,
) -> None:
    groups = [f"group-{number}" for number in range(CONCURRENCY + 1)]
    for number in range(3):
        for group in groups:
            mapped_queue.send(group, f"{number}")
    mapped_queue.until_empty()
    for group in groups:
        assert mapped_queue.ended(group) == [("0", 1), ("1", 1), ("2", 1)]
        assert mapped_queue.most_at_once(group) == 1
    assert mapped_queue.most_at_once() == CONCURRENCY


def test_a_message_that_fails_too_often_becomes_a_dead_letter_and_frees_its_group(mapped_queue: Run) -> None:
    mapped_queue.send("poisoned", "poison", "after")
    mapped_queue.until_empty()
    assert mapped_queue.ended("poisoned") == [("poison", 1), ("poison", 2), ("poison", 3), ("after", 1)]
    reply = mapped_queue.sqs.receive_message(
        QueueUrl=mapped_queue.dead, VisibilityTimeout=0, AttributeNames=["All"]
    )
    (dead,) = reply["Messages"]
    assert (dead["Body"], dead["Attributes"]["MessageGroupId"]) == ("poison", "poisoned")
