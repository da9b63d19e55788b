"""Helpers of the operator's tests: a stage's bucket in process, and a dispatch whose responses a test
chooses."""

import io
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3.session
from botocore.exceptions import ClientError

from mailroom.campaigns.runs import BEGUN, PAUSES
from mailroom.ledger.items import FAILURES
from mailroom.message.message import Key
from mailroom.recipients.choices import Suppressions
from mailroom_ops.shared.deeds import Deeds
from tests.support import tables

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

ACCOUNT, REGION = "123456789012", "us-east-1"  # moto's own account
BUCKET = f"mailroom-dev-unprocessed-{ACCOUNT}-{REGION}"
RUNS = "mailroom-dev-campaign-runs"
FOLDER = "aws/lambda/0a1b2c3d-0000-4000-8000-000000000000/shardId-00000001795250000000-a1b2c3d4/2026/11/21"
ANSWER: dict[str, Any] = {"batchItemFailures": []}


NUMBERS = ("waits_at", "opted_out_at", "begun_at")
"""Keys of tables and indexes that are numbers; all others are texts."""


def make_table(dynamodb: Any, name: str, *keys: str, **indexes: tuple[str, ...]) -> None:
    """Create a table with these keys. An index has two keys, and then the attributes that it includes."""

    def projection(others: tuple[str, ...]) -> dict[str, Any]:
        return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(others)}

    def schema(keys: tuple[str, ...]) -> list[dict[str, str]]:
        kinds = zip(keys, ("HASH", "RANGE"), strict=False)
        return [{"AttributeName": each, "KeyType": kind} for each, kind in kinds]

    secondary = [
        {
            "IndexName": index,
            "KeySchema": schema(of_index),
            "Projection": projection(of_index[2:])
            if of_index[2:]
            else {"ProjectionType": "ALL" if index == FAILURES else "KEYS_ONLY"},
        }
        for index, of_index in indexes.items()
    ]
    every = dict.fromkeys((*keys, *(each for of_index in indexes.values() for each in of_index[:2])))
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=schema(keys),
        AttributeDefinitions=[
            {"AttributeName": each, "AttributeType": "N" if each in NUMBERS else "S"} for each in every
        ],
        **({"GlobalSecondaryIndexes": secondary} if secondary else {}),
    )


def failure(id_: str, channel: str, status: str, at_ms: int) -> dict[str, str]:
    """The keys of a failure in its index."""
    return tables.failure(Key(id_, channel), status, at_ms)


def make_runs(dynamodb: Any) -> None:
    """The table of runs with its indexes."""
    make_table(
        dynamodb, RUNS, "campaign", "run", **{BEGUN: ("campaign", "begun_at"), PAUSES: ("paused", "begun_at")}
    )


def make_deeds(dynamodb: Any) -> None:
    """Create the table of deeds, unless it exists."""
    if "mailroom-dev-deeds" not in dynamodb.tables:
        make_table(dynamodb, "mailroom-dev-deeds", "found_by", "asked_at")


class Recorded(Deeds):
    """Record of deeds in memory, of an operator with this ARN."""

    def __init__(self, by: str = "arn:me") -> None:
        self.by = lambda: by
        self.rows: list[tuple[str, list[str], str]] = []

    def record(self, verb: str, things: Iterable[str], reason: str = "") -> None:
        self.rows.append((verb, [*things], reason))

    def person(self, typed: str) -> str:
        return f"person#{typed}"


def key(name: str) -> str:
    """Where Lambda writes a document, as long as it really is."""
    return f"{FOLDER}/2026-11-21T10.00.00-{name}"


def dispatch_event(*ids: str) -> dict[str, Any]:
    """Return an event of dispatch."""
    return {
        "Records": [
            {
                "eventName": "INSERT",
                "dynamodb": {
                    "SequenceNumber": str(number),
                    "NewImage": {"id": {"S": id_}, "event_type": {"S": "mail"}},
                },
            }
            for number, id_ in enumerate(ids)
        ]
    }


def document(
    payload: object, condition: str = "RetryAttemptsExhausted", function: str = "mailroom-dev-dispatch"
) -> dict[str, Any]:
    """Return an on-failure record in the form of Lambda."""
    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{function}"
    return {
        "requestContext": {"requestId": "r", "functionArn": arn, "condition": condition},
        "version": "1.0",
        "DDBStreamBatchInfo": {"batchSize": 1},
        "payload": payload,
    }


class LambdaDouble:
    """Lambda client of the stage dev, whose functions have environments."""

    class exceptions:  # noqa: N801 - as boto3 has it
        class ResourceNotFoundException(ClientError):
            """Answer that the function does not exist."""

    def environment_of(self, name: str) -> Mapping[str, str] | None:
        """Return the environment of a function by its short name, or None for an unknown function."""
        raise NotImplementedError

    def get_function_configuration(self, *, FunctionName: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
        variables = self.environment_of(FunctionName.removeprefix("mailroom-dev-"))
        if variables is None:
            raise self.exceptions.ResourceNotFoundException({"Error": {"Code": "404"}}, "GetFunction")
        return {"Environment": {"Variables": variables}}


class FakeDispatch:
    """The Lambda client: remembers what it was invoked with, gives prepared answers, then good ones."""

    def __init__(self, answers: Iterable[object] = (), *, error: str | None = None) -> None:
        self.invoked: list[tuple[str, dict[str, Any]]] = []
        self._answers = list(answers)
        self._error = error

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        self.invoked.append((FunctionName, json.loads(Payload)))
        answer = self._answers.pop(0) if self._answers else ANSWER
        failed = {"FunctionError": self._error} if self._error else {}
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode()), **failed}


@cache
def _aws() -> boto3.session.Session:
    """Return a real session. Tests replace `boto3.Session`, some before they first ask for a client."""
    return boto3.session.Session(region_name=REGION)


@cache
def _kept(service: str) -> Any:
    return _aws().client(service)  # type: ignore[call-overload] # a name that is no literal


def client(service: str) -> Any:
    """Return boto3's client of a service, made once a process: making one takes longer than most tests. moto
    forgets with each test what was written. DynamoDB's client is the test's own table double."""
    return _aws().client("dynamodb") if service == "dynamodb" else _kept(service)


class Session(boto3.session.Session):
    """Session in process, without the start of a real one. The clients in `instead` answer in AWS's place."""

    region_name = REGION

    def __init__(self, instead: Mapping[str, Any] | None = None) -> None:
        self.instead = dict(instead or {})

    def client(self, service_name: Any, *args: Any, **kwargs: Any) -> Any:
        if service_name == "s3" and "config" in kwargs:
            return _aws().client("s3", **kwargs)  # the configuration decides about signed URLs
        return self.instead[service_name] if service_name in self.instead else client(service_name)


class Shelf:
    """The bucket of what the stream gave up on."""

    def __init__(self, s3: "S3Client") -> None:
        self._s3 = s3

    def put(self, name: str, written: object) -> None:
        """Write a document like Lambda."""
        self._s3.put_object(Bucket=BUCKET, Key=key(name), Body=json.dumps(written).encode())

    def keys(self) -> list[str]:
        """Return the keys of all objects."""
        return [each["Key"] for each in self._s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]

    def read(self, name: str) -> Any:
        """An object's document."""
        return json.loads(self._s3.get_object(Bucket=BUCKET, Key=name)["Body"].read())


def suppressions_of_dev() -> Suppressions:
    """Return the list of suppressions of stage dev."""
    return Suppressions(client("dynamodb"), "mailroom-dev-suppressions")
