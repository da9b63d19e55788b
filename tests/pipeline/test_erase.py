"""A person is erased after real sends: the remaining items do not mention the person, and no message is sent
again."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from lab.harness.expected import Item
from mailroom_local.aws import ACCOUNT, REGION, STAGE
from tests.support.pipeline.campaign import operator
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline, until

GRACE, OTHER = "grace.hopper@example.com", "howard@example.com"
WHO = "grace.hopper"
"""Others share the stage, and a first name."""


def everything(pipeline: Pipeline) -> str:
    """Return all items and objects of the stage that mention Grace, as one text."""
    found: list[object] = []
    for table in pipeline.dynamodb.list_tables()["TableNames"]:
        pages = pipeline.dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        found += [item for page in pages for item in page["Items"] if WHO in str(item).lower()]
    bucket = f"mailroom-{STAGE}-payloads-{ACCOUNT}-{REGION}"
    for each in pipeline.s3.list_objects_v2(Bucket=bucket).get("Contents", []):
        text = pipeline.s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read().decode(errors="replace")
        found += [each["Key"], text] if WHO in (each["Key"] + text).lower() else []
    return str(found)


def messages(pipeline: Pipeline, bucket: str) -> list[Item]:
    later = (datetime.now(UTC) + timedelta(days=30)).isoformat()
    pipeline.s3.put_object(Bucket=bucket, Key="bills/of-a-person.txt", Body=f"for {GRACE}".encode())
    part = {"ref": f"s3://{bucket}/bills/of-a-person.txt"}
    return [
        mail_item("erase-1", email="Grace <Grace.Hopper@Example.com>", attachments=[part]),
        mail_item("erase-2", email=None, to=[OTHER, GRACE], subject="To both", text="Hello"),
        mail_item("erase-3", email=OTHER, subject="About her", text=f"Write to {GRACE}"),
        mail_item("erase-4", email=GRACE, send_at=later),
    ]


def test_a_person_is_erased_everywhere_and_receives_no_further_mail(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom_ops.people.erase_messages.SETTLED_AFTER", 0)
    bucket = pipeline.output("PayloadBucketName")
    pipeline.put(*messages(pipeline, bucket))
    pipeline.until_status("delivered", "erase-1", "erase-2", "erase-3")
    pipeline.until_status("scheduled", "erase-4")
    assert WHO in everything(pipeline).lower()
    taken = len(pipeline.mails("erase-1"))

    result = operator(pipeline, "people", "erase", GRACE, "--stage", STAGE, "--yes", "--json")

    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["left"], answer["remains"]) == (0, 0, []), answer
    assert everything(pipeline) == "[]"
    assert pipeline.ledger("erase-2")["to"] == [OTHER]
    assert pipeline.ledger("erase-1")["status"] == "delivered"
    assert pipeline.ledger("erase-4")["status"] == "cancelled"
    # Late copies of what was sent, and of what was not.
    copies = [mail_item("erase-1", email=GRACE), mail_item("erase-4", email=GRACE)]
    pipeline.send(pipeline.output("MailQueueUrl"), [json.dumps(each) for each in copies])
    queue = pipeline.output("MailQueueUrl")
    until(lambda: pipeline.queue_is_empty(queue), 20, lambda: "the copies were not dropped")
    assert [len(pipeline.mails(f"erase-{at}")) for at in (1, 4)] == [taken, 0]
    assert everything(pipeline) == "[]"
