"""Drives one stream mapping: readers of its shards, lanes, invocations, and what is given up on."""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from threading import Thread

from local.aws import LocalSession, patient
from local.pump.failures import document, event_of, object_key
from local.pump.functions import Functions, Invoked
from local.pump.insist import insist
from local.pump.lane import Lane
from local.pump.reader import read_shard
from local.pump.stream_delivery import Delivery, GivenUp
from local.pump.stream_mapping import Record, StreamMapping


class StreamDriver:
    """All stream mappings of one emulator."""

    def __init__(self, url: str, functions: Functions) -> None:
        session = LocalSession()
        self._streams = session.client("dynamodbstreams", endpoint_url=url, config=patient(50))
        self._s3 = session.client("s3", endpoint_url=url, config=patient(50))
        self._functions = functions

    def threads(self, mapping: StreamMapping) -> list[Thread]:
        """A reader for each shard, not yet started."""
        description = self._streams.describe_stream(StreamArn=mapping.stream)["StreamDescription"]
        shards = [shard["ShardId"] for shard in description["Shards"]]
        return [Thread(target=self._read, args=(mapping, shard), daemon=True) for shard in shards]

    def _read(self, mapping: StreamMapping, shard: str) -> None:
        give_up = partial(self._keep, mapping, shard)
        delivery = Delivery(mapping, partial(self._invoke, mapping), give_up)
        # More lanes than cores would only start more function processes, each with its own cold start.
        count = min(mapping.parallel, os.cpu_count() or 1)
        lanes = [Lane(mapping.batch_size, mapping.window_seconds, delivery.deliver) for _ in range(count)]
        for record in read_shard(self._streams, mapping, shard):
            lanes[record.key % count].put(record)

    def _invoke(self, mapping: StreamMapping, records: Sequence[Record]) -> Invoked:
        return self._functions.invoke(mapping.function, event_of(list(records)))

    def _keep(self, mapping: StreamMapping, shard: str, given_up: GivenUp) -> None:
        """Write what is given up on to S3, however long that takes: it must not be lost."""
        now = datetime.now(UTC)
        print(f"gave up on {len(given_up.records)} records: {given_up.condition}", flush=True)
        if not mapping.failures_bucket:
            return
        key = object_key(mapping, shard, now)
        body = json.dumps(document(mapping, shard, given_up, now)).encode()
        insist(lambda: self._s3.put_object(Bucket=mapping.failures_bucket, Key=key, Body=body))
