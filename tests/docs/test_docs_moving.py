"""The program of the page for those who move here is tried."""

import json
import sys

import boto3
import pytest
from moto import mock_aws

from tests.support.docs_pages import Page

FAX_GATEWAY = Page("docs/how-to/come-from-fax-gateway.md")


def test_the_documented_program_moves_each_fax_once_from_the_old_queue_to_its_numbers_fifo_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (program,) = FAX_GATEWAY.blocks("python")
    bodies = [
        json.dumps({"fax_id": id_, "to": to, "retry_count": count})
        for id_, to, count in (("a", "+16175551234", 0), ("b", "+16175551234", 3), ("c", "+493012345678", 19))
    ]
    with mock_aws():
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        sqs = boto3.client("sqs")
        fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
        old = sqs.create_queue(QueueName="fax-gateway-prod-retry")["QueueUrl"]
        new = sqs.create_queue(QueueName="mailroom-prod-fax.fifo", Attributes=fifo)["QueueUrl"]  # type: ignore[arg-type]
        monkeypatch.setattr(sys, "argv", ["move.py", old, new])
        for again in (bodies, bodies[:1]):  # the program was stopped before it deleted the first message
            for body in again:
                sqs.send_message(QueueUrl=old, MessageBody=body)
            exec(program.text.replace("WaitTimeSeconds=2", "WaitTimeSeconds=0"), {})
        reply = sqs.receive_message(QueueUrl=new, MaxNumberOfMessages=10, AttributeNames=["All"])
        assert [each["Body"] for each in reply["Messages"]] == bodies
        groups = [each["Attributes"]["MessageGroupId"] for each in reply["Messages"]]
        assert groups == ["+16175551234", "+16175551234", "+493012345678"]
        assert "Messages" not in sqs.receive_message(QueueUrl=old)
