"""Drives the stream mappings by AWS's rules, for the emulator drops failed records or retries for ever.

`python -m local.pump --emulator URL` reads the mappings of all DynamoDB streams, disables them in the
emulator, and delivers from the oldest record on, until it is killed. It keeps no checkpoint: after a crash
it delivers again from the start, and the ledger refuses what was sent.
"""

import argparse
import json
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from threading import Thread

from botocore.exceptions import BotoCoreError, ClientError

from local.aws import LocalSession, patient
from local.streams.delivery import Delivery, GivenUp
from local.streams.failures import document, event_of, object_key
from local.streams.lane import Lane
from local.streams.mapping import Record, StreamMapping
from local.streams.reader import read_shard
from local.streams.rules import Invoked

FUNCTION_SECONDS = 900.0 + 30.0  # the longest a function runs, and some
TROUBLE = (ClientError, BotoCoreError)
TROUBLE_SECONDS = 1.0


class Pump:
    """All mappings of one emulator."""

    def __init__(self, url: str) -> None:
        session = LocalSession()
        self._streams = session.client("dynamodbstreams", endpoint_url=url, config=patient(50))
        self._lambda = session.client("lambda", endpoint_url=url, config=patient(50, FUNCTION_SECONDS))
        self._s3 = session.client("s3", endpoint_url=url, config=patient(50))

    def run(self) -> None:
        """Start a reader for each shard; returns only when all of them have ended, which is never."""
        mappings = self._take_over()
        if not mappings:
            raise SystemExit("No function is mapped to a DynamoDB stream. Deploy the stacks first.")
        readers = [
            Thread(target=self._read, args=(mapping, shard), daemon=True)
            for mapping in mappings
            for shard in self._shards(mapping)
        ]
        print(f"driving {len(mappings)} stream mappings", flush=True)
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()

    def _take_over(self) -> list[StreamMapping]:
        pages = self._lambda.get_paginator("list_event_source_mappings").paginate()
        listed = [each for page in pages for each in page["EventSourceMappings"]]
        mappings = [StreamMapping.from_api(each) for each in listed if ":dynamodb:" in each["EventSourceArn"]]
        for mapping in mappings:  # a template's `Enabled: false` does not show in the emulator's answer
            self._lambda.update_event_source_mapping(UUID=mapping.uuid, Enabled=False)
        return mappings

    def _shards(self, mapping: StreamMapping) -> list[str]:
        description = self._streams.describe_stream(StreamArn=mapping.stream)["StreamDescription"]
        return [shard["ShardId"] for shard in description["Shards"]]

    def _read(self, mapping: StreamMapping, shard: str) -> None:
        give_up = partial(self._keep, mapping, shard)
        delivery = Delivery(mapping, partial(self._invoke, mapping), give_up)
        # More lanes than cores would only start more function processes, each with its own cold start.
        count = min(mapping.parallel, os.cpu_count() or 1)
        lanes = [Lane(mapping.batch_size, mapping.window_seconds, delivery.deliver) for _ in range(count)]
        for record in read_shard(self._streams, mapping, shard):
            lanes[record.key % count].put(record)

    def _invoke(self, mapping: StreamMapping, records: Sequence[Record]) -> Invoked:
        try:
            answer = self._lambda.invoke(FunctionName=mapping.function, Payload=event_of(list(records)))
            payload = answer["Payload"].read()
        except TROUBLE as trouble:
            print(f"{mapping.function} did not run: {trouble}", flush=True)
            return Invoked(refused=True)
        request_id = answer["ResponseMetadata"]["RequestId"]
        return Invoked(request_id, json.loads(payload or b"null"), answer.get("FunctionError"))

    def _keep(self, mapping: StreamMapping, shard: str, given_up: GivenUp) -> None:
        """Write what is given up on to S3, however long that takes: it must not be lost."""
        now = datetime.now(UTC)
        print(f"gave up on {len(given_up.records)} records: {given_up.condition}", flush=True)
        if not mapping.failures_bucket:
            return
        key = object_key(mapping, shard, now)
        body = json.dumps(document(mapping, shard, given_up, now)).encode()
        insist(lambda: self._s3.put_object(Bucket=mapping.failures_bucket, Key=key, Body=body))


def insist(call: Callable[[], object]) -> None:
    """Call until it succeeds, waiting in between."""
    while True:
        try:
            call()
        except TROUBLE as trouble:
            print(f"trying again: {trouble}", flush=True)
            time.sleep(TROUBLE_SECONDS)
        else:
            return


def die(trouble: threading.ExceptHookArgs) -> None:
    """A lane that ends by a fault of ours must not leave the others running as if all were well."""
    traceback.print_exception(trouble.exc_type, trouble.exc_value, trouble.exc_traceback)
    os._exit(1)


def main() -> None:
    """Pump until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--emulator", required=True, help="URL of the emulator")
    threading.excepthook = die
    Pump(parser.parse_args().emulator).run()


if __name__ == "__main__":
    main()
