"""An event source mapping on a DynamoDB stream, and the records that it delivers."""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from local.pump import filters
from local.pump.functions import REPORTS

STREAM_RETENTION_SECONDS = 24 * 3600


@dataclass(frozen=True)
class StreamMapping:
    """The settings of one mapping. -1 in `max_retries` is no bound, as on AWS; ages are in seconds."""

    uuid: str
    function: str
    stream: str
    batch_size: int = 100
    window_seconds: int = 0
    max_retries: int = -1
    max_age_seconds: int = STREAM_RETENTION_SECONDS
    bisects: bool = False
    reports_failures: bool = False
    parallel: int = 1
    failures_bucket: str = ""
    patterns: tuple[dict[str, Any], ...] = ()

    @classmethod
    def from_api(cls, answer: Mapping[str, Any]) -> "StreamMapping":
        """From an entry of ListEventSourceMappings."""
        age = answer.get("MaximumRecordAgeInSeconds", -1)
        target = (answer.get("DestinationConfig") or {}).get("OnFailure", {}).get("Destination", "")
        if target and ":s3:::" not in target:
            raise ValueError(f"The pump keeps what a stream gives up on in S3 alone, not in {target}.")
        return cls(
            uuid=answer["UUID"],
            function=answer["FunctionArn"],
            stream=answer["EventSourceArn"],
            batch_size=answer.get("BatchSize", 100),
            window_seconds=answer.get("MaximumBatchingWindowInSeconds", 0),
            max_retries=answer.get("MaximumRetryAttempts", -1),
            max_age_seconds=STREAM_RETENTION_SECONDS if age == -1 else min(age, STREAM_RETENTION_SECONDS),
            bisects=bool(answer.get("BisectBatchOnFunctionError")),
            reports_failures=REPORTS in answer.get("FunctionResponseTypes", []),
            parallel=answer.get("ParallelizationFactor", 1),
            failures_bucket=target.rpartition(":")[2],
            patterns=tuple(filters.parse(answer.get("FilterCriteria"))),
        )


@dataclass(frozen=True)
class Record:
    """One change of an item, in the words of a Lambda event, serialized once."""

    sequence: str
    created: float
    key: int
    text: str

    @classmethod
    def from_stream(cls, record: Mapping[str, Any], stream: str) -> "Record":
        """From an entry of GetRecords."""
        change = record["dynamodb"]
        created = change["ApproximateCreationDateTime"]
        return cls(
            sequence=change["SequenceNumber"],
            created=created.timestamp() if isinstance(created, datetime) else float(created),
            key=zlib.crc32(json.dumps(change["Keys"], sort_keys=True, default=_plain).encode()),
            text=json.dumps({**record, "eventSourceARN": stream}, default=_plain, separators=(",", ":")),
        )

    @cached_property
    def event(self) -> dict[str, Any]:
        """The record as the function gets it."""
        return dict(json.loads(self.text))


def _plain(value: object) -> object:
    """What botocore parsed, as Lambda writes it: binary in base64, times in epoch seconds."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.timestamp()
    raise TypeError(f"A stream record holds a {type(value).__name__}, which has no form in JSON.")
