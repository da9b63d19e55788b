"""Reads one shard of a DynamoDB stream from its oldest record on, for ever."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from local.pump.filters import passes
from local.pump.stream_mapping import Record, StreamMapping

if TYPE_CHECKING:
    from types_boto3_dynamodbstreams import DynamoDBStreamsClient

IDLE_SECONDS = 0.005  # the emulator itself waits for records
BUSY_SECONDS = 0.1  # under load a poll less often makes batches larger, and leaves the emulator to the work
TROUBLE_SECONDS = 1.0
PAGE = 1000


def read_shard(streams: "DynamoDBStreamsClient", mapping: StreamMapping, shard: str) -> Iterator[Record]:
    """The shard's records that pass the mapping's filters; ends when the shard is closed."""
    iterator: str | None = None
    last = ""
    while True:
        try:
            iterator = iterator or _iterator(streams, mapping.stream, shard, last)
            page = streams.get_records(ShardIterator=iterator, Limit=PAGE)
        except (ClientError, BotoCoreError) as trouble:  # an iterator expires; the emulator may be stopping
            print(f"reading {mapping.stream} again: {trouble}", flush=True)
            iterator = None
            time.sleep(TROUBLE_SECONDS)
            continue
        for record in page["Records"]:
            last = record["dynamodb"]["SequenceNumber"]
            if passes(record, mapping.patterns):
                yield Record.from_stream(record, mapping.stream)
        iterator = page.get("NextShardIterator")
        if iterator is None:
            return
        if len(page["Records"]) < PAGE:
            time.sleep(BUSY_SECONDS if page["Records"] else IDLE_SECONDS)


def _iterator(streams: "DynamoDBStreamsClient", stream: str, shard: str, last: str) -> str:
    if not last:
        start = streams.get_shard_iterator(StreamArn=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    else:
        start = streams.get_shard_iterator(
            StreamArn=stream, ShardId=shard, ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber=last
        )
    return start["ShardIterator"]
