"""The pump against the real emulator: rules of each minute fire every ten seconds."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mailroom_local.aws import LocalSession, patient
from mailroom_local.processes import wait_until
from mailroom_local.pump.functions import Functions
from tests.support.local.emulator import create_function, emptied, lambda_client, pumping

TABLE, FUNCTION, BUCKET, ROUNDS = "mailbox", "dispatch", "unprocessed", "release"
CODE = """
import os

def handler(event, context):
    ids = [record["dynamodb"]["Keys"]["id"]["S"] for record in event["Records"]]
    with open(os.environ["SEEN"], "a") as seen:
        seen.writelines(name + "\\n" for name in ids)
"""
ROUND = """
import json, os

def handler(event, context):
    with open(os.environ["FIRED"], "a") as fired:
        print(json.dumps(event), file=fired)
"""
FAILING = """
import os

def handler(event, context):
    with open(os.environ["FIRED"], "a") as fired:
        print(event["function"], file=fired)
    raise ValueError("always")
"""
EVENTS = [{"shard": 0}, {"shard": 1}, {"line": "mail"}]
LATER = {"line": "fax"}


@pytest.fixture
def emptied_url(emulator: str) -> str:
    """The URL of the emulator, emptied for each test."""
    return emptied(emulator)


@pytest.fixture
def seen(emptied_url: str, tmp_path: Path) -> Iterator[Path]:
    """Table, functions, mapping, rules and pump; the file that names the records which a function handled."""
    path = tmp_path / "seen"
    path.touch()
    create_mapping(emptied_url, create_table(emptied_url), path)
    create_rules(emptied_url, tmp_path / "fired")
    with pumping(emptied_url, tmp_path):
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


def create_mapping(url: str, stream: str, seen: Path, function: str = FUNCTION) -> None:
    create_function(url, function, CODE, {"SEEN": str(seen)})
    LocalSession().client("s3", endpoint_url=url, config=patient()).create_bucket(Bucket=BUCKET)
    lambda_client(url).create_event_source_mapping(
        FunctionName=function,
        EventSourceArn=stream,
        Enabled=False,
        StartingPosition="TRIM_HORIZON",
        BatchSize=10,
        MaximumRetryAttempts=1,
        BisectBatchOnFunctionError=True,
        FilterCriteria={"Filters": [{"Pattern": '{"eventName": ["INSERT"]}'}]},
        DestinationConfig={"OnFailure": {"Destination": f"arn:aws:s3:::{BUCKET}"}},
    )


def create_rules(url: str, fired: Path) -> None:
    fired.touch()
    create_function(url, ROUNDS, ROUND, {"FIRED": str(fired)})
    arn = lambda_client(url).get_function_configuration(FunctionName=ROUNDS)["FunctionArn"]
    events = LocalSession().client("events", endpoint_url=url, config=patient())
    for number, event in enumerate(EVENTS):
        events.put_rule(Name=f"{number}", ScheduleExpression="rate(1 minute)")
        events.put_targets(Rule=f"{number}", Targets=[{"Id": "0", "Arn": arn, "Input": json.dumps(event)}])
    events.put_rule(Name="seldom", ScheduleExpression="rate(5 minutes)")
    events.put_targets(Rule="seldom", Targets=[{"Id": "0", "Arn": arn}])


def put_record(url: str, name: str) -> None:
    dynamodb = LocalSession().client("dynamodb", endpoint_url=url, config=patient())
    dynamodb.put_item(TableName=TABLE, Item={"id": {"S": name}})


def test_the_pump_runs_all_rules_of_a_minute_in_each_round_and_finds_new_rules_and_mappings(
    emptied_url: str, seen: Path, tmp_path: Path
) -> None:
    def fired() -> list[Any]:
        return [json.loads(line) for line in (tmp_path / "fired").read_text().splitlines()]

    put_record(emptied_url, "one")
    assert wait_until(lambda: seen.read_text().split() == ["one"], 30)
    later = tmp_path / "later"
    later.touch()
    streams = lambda_client(emptied_url).list_event_source_mappings()["EventSourceMappings"]
    create_mapping(emptied_url, streams[0]["EventSourceArn"], later, "index")
    events = LocalSession().client("events", endpoint_url=emptied_url, config=patient())
    events.put_rule(Name="0", ScheduleExpression="rate(1 minute)", State="ENABLED")  # as an update does
    target = events.list_targets_by_rule(Rule="0")["Targets"][0]
    events.put_rule(Name="3", ScheduleExpression="rate(1 minute)")
    events.put_targets(Rule="3", Targets=[{**target, "Input": json.dumps(LATER)}])
    assert wait_until(lambda: later.read_text().split() == ["one"] and LATER in fired(), 30), fired()
    assert sorted(map(str, fired()[:3])) == sorted(map(str, fired()[3:6])) == sorted(map(str, EVENTS))
    assert seen.read_text().split() == ["one"]
    states = {rule["Name"]: rule["State"] for rule in events.list_rules()["Rules"]}
    assert {states[name] for name in ("0", "1", "2", "3")} == {"DISABLED"}


def test_a_failing_function_runs_three_times_by_default_and_once_if_retries_are_disabled(
    emptied_url: str, tmp_path: Path
) -> None:
    """With the settings of the stacks for `release`, Lambda does not repeat an invocation that fails."""
    failed = tmp_path / "failed"
    failed.touch()
    for name in ("usual", "once"):
        create_function(emptied_url, name, FAILING, {"FIRED": str(failed)})
    lambda_client(emptied_url).put_function_event_invoke_config(
        FunctionName="once", MaximumRetryAttempts=0, MaximumEventAgeInSeconds=60
    )
    pump = Functions(emptied_url)
    for name in ("usual", "once"):
        pump.start(name, json.dumps({"function": name}))
    # The third run of the one is later than the second run of the other would be.
    assert wait_until(lambda: failed.read_text().split().count("usual") == 3, 30)
    assert failed.read_text().split().count("once") == 1
