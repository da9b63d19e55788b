"""The pump against the real emulator: a poisoned record ends in S3, whole, and its neighbours go on."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mailroom_local.aws import LocalSession, patient
from mailroom_local.processes import wait_until
from tests.support.local.emulator import create_function, emulated, functions, pumping

TABLE, FUNCTION, BUCKET = "mailbox", "dispatch", "unprocessed"
CODE = """
import os

def handler(event, context):
    ids = [record["dynamodb"]["Keys"]["id"]["S"] for record in event["Records"]]
    if "poison" in ids:
        raise ValueError("cannot take this")
    with open(os.environ["SEEN"], "a") as seen:
        seen.writelines(name + "\\n" for name in ids)
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with emulated(tmp_path) as url:
        yield url


@pytest.fixture
def seen(url: str, tmp_path: Path) -> Iterator[Path]:
    """Table, function, mapping and pump; the file that names the records which the function handled."""
    path = tmp_path / "seen"
    path.touch()
    create_mapping(url, create_table(url), path)
    with pumping(url, tmp_path):
        yield path


def create_table(url: str) -> str:
    dynamodb = LocalSession().client("dynamodb", endpoint_url=url, config=patient())
    created = dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    return created["TableDescription"]["LatestStreamArn"]


def create_mapping(url: str, stream: str, seen: Path) -> None:
    create_function(url, FUNCTION, CODE, {"SEEN": str(seen)})
    LocalSession().client("s3", endpoint_url=url, config=patient()).create_bucket(Bucket=BUCKET)
    functions(url).create_event_source_mapping(
        FunctionName=FUNCTION,
        EventSourceArn=stream,
        Enabled=False,
        StartingPosition="TRIM_HORIZON",
        BatchSize=10,
        MaximumRetryAttempts=1,
        BisectBatchOnFunctionError=True,
        FilterCriteria={"Filters": [{"Pattern": '{"eventName": ["INSERT"]}'}]},
        DestinationConfig={"OnFailure": {"Destination": f"arn:aws:s3:::{BUCKET}"}},
    )


def put(url: str, name: str, body: str = "") -> None:
    dynamodb = LocalSession().client("dynamodb", endpoint_url=url, config=patient())
    dynamodb.put_item(TableName=TABLE, Item={"id": {"S": name}, "body": {"S": body}})


def documents(url: str) -> list[dict[str, Any]]:
    s3 = LocalSession().client("s3", endpoint_url=url, config=patient())
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]
    return [json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()) for key in keys]


def test_a_poisoned_record_ends_whole_in_s3_and_its_neighbours_are_handled(url: str, seen: Path) -> None:
    for name in ("one", "two", "poison", "three", "four"):
        put(url, name, body=f"the body of {name}")
    put(url, "one", body="changed")  # a MODIFY: the filter keeps it from the function
    put(url, "last")
    wanted = ["one", "two", "three", "four", "last"]
    assert wait_until(lambda: seen.read_text().split() == wanted, 30), seen.read_text()
    (lost,) = documents(url)
    assert lost["requestContext"]["condition"] == "RetryAttemptsExhausted"
    (record,) = json.loads(lost["payload"])["Records"]
    assert record["dynamodb"]["NewImage"]["body"] == {"S": "the body of poison"}
