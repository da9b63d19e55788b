"""Executes the event source mappings that the emulator handles differently from AWS, and the EventBridge
rules with a schedule of one minute.

The emulator drops failed stream records or retries them forever, and processes the groups of a FIFO queue one
after another. `python -m mailroom_local.pump.driver --emulator URL` disables those mappings in the emulator
and delivers their records until the process is killed. The pump stores no checkpoint: after a crash it
delivers a stream again from the oldest record, and the ledger prevents messages from being sent twice.

A rule with a schedule of one minute fires every ten seconds here, to save waiting time. Like EventBridge, the
pump invokes its function asynchronously; the emulator's own rules would not repeat an invocation that fails.
"""

import argparse
import json
import os
import queue
import threading
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

from mailroom_local.aws import LocalSession, authorization, open_url, patient
from mailroom_local.providers.http import iso, iso_milliseconds
from mailroom_local.pump.fifo import EmulatedQueue, FifoMapping, Poller
from mailroom_local.pump.functions import CONNECTIONS, Functions, Invoked, retry_until_ok
from mailroom_local.pump.metrics import LoggedMetrics
from mailroom_local.pump.streams import GivenUp, Record, StreamDelivery, StreamMapping, passes

DRIVING = "driving "
"""Beginning of the line that the pump logs when it has taken over all mappings."""
IDLE_SECONDS = 0.005  # short, because the emulator itself waits for records
# Under load, polling less often makes batches larger, and leaves CPU time to the emulator.
BUSY_SECONDS = 0.1
TROUBLE_SECONDS = 1.0
PAGE = 1000
# Lambda's limit for a synchronous event, minus the JSON around the records.
EVENT_BYTES = 6 * 1024 * 1024 - 1024
STREAMS_SECONDS = 60.0
EACH_MINUTE = "rate(1 minute)"
FIRE_SECONDS = 10.0
"""Pause in seconds between two executions of the rules with the schedule EACH_MINUTE."""
RETRIES_EXHAUSTED = "RetryAttemptsExhausted"
# Maximum number of batches that wait in a lane. While a lane is full, the shard's reader waits, as on AWS.
ROOM_BATCHES = 10


class Pump:
    """Takes over the mappings and rules of one emulator."""

    def __init__(self, url: str) -> None:
        session = LocalSession()
        self._lambda = session.client("lambda", endpoint_url=url, config=patient())
        self._events = session.client("events", endpoint_url=url, config=patient())
        self._sqs = session.client("sqs", endpoint_url=url, config=patient(CONNECTIONS))
        self._url = url
        self._s3 = session.client("s3", endpoint_url=url, config=patient(CONNECTIONS))
        self._functions = Functions(url)
        self._driven: set[str] = set()
        self._targets: list[tuple[str, str]] = []

    def run(self) -> None:
        """Take over mappings and rules, also those of later deployments, and fire the rules. Never
        returns."""
        self._take_over()
        if not self._driven:
            raise SystemExit("No function is mapped to a DynamoDB stream. Deploy the stacks first.")
        print(f"{DRIVING}{len(self._driven)} mappings and {len(self._targets)} rules", flush=True)
        while True:
            for function, event in self._targets:
                self._functions.start(function, event)
            time.sleep(FIRE_SECONDS)
            retry_until_ok(self._take_over)

    def _take_over(self) -> None:
        """Start readers and pollers for new mappings, and list the targets of the rules."""
        pages = self._lambda.get_paginator("list_event_source_mappings").paginate()
        for mapping in (mapping for page in pages for mapping in page["EventSourceMappings"]):
            uuid = mapping["UUID"]
            threads = [] if uuid in self._driven else self._threads(dict(mapping))
            if threads or (uuid in self._driven and mapping["State"] == "Enabled"):
                # The mapping is disabled here, because the emulator's response does not show `Enabled: false`
                # of a template, and an update of a mapping enables it again.
                self._lambda.update_event_source_mapping(UUID=uuid, Enabled=False)
                self._driven.add(uuid)
            for thread in threads:
                thread.start()
        self._targets = self._listed_targets()

    def _threads(self, mapping: dict[str, Any]) -> list[Thread]:
        """Return the threads that deliver a mapping's records, or an empty list if the emulator delivers
        them."""
        if _source(mapping, ":dynamodb:"):
            return self._readers(StreamMapping.from_api(mapping))
        if _source(mapping, ":sqs:", ".fifo"):
            return [self._poller(FifoMapping.from_api(mapping))]
        return []

    def _listed_targets(self) -> list[tuple[str, str]]:
        """Return the function and the event of each target of the rules with the schedule EACH_MINUTE, and
        disable these rules in the emulator. This is repeated, because an update of a rule enables it
        again."""
        pages = self._events.get_paginator("list_rules").paginate()
        listed = [rule for page in pages for rule in page["Rules"]]
        rules = [rule for rule in listed if rule.get("ScheduleExpression") == EACH_MINUTE]
        for rule in rules:
            if rule["State"] == "ENABLED":
                self._events.disable_rule(Name=rule["Name"])
        targets = [self._events.list_targets_by_rule(Rule=rule["Name"])["Targets"] for rule in rules]
        return [(target["Arn"], target["Input"]) for row in targets for target in row]

    def _poller(self, mapping: FifoMapping) -> Thread:
        invoke = partial(self._functions.invoke, mapping.function)
        return Thread(
            target=Poller(mapping, EmulatedQueue(self._sqs, mapping.queue), invoke).run, daemon=True
        )

    def _readers(self, mapping: StreamMapping) -> list[Thread]:
        """Return a reader thread for each shard, not yet started."""
        described = ask_streams(self._url, "DescribeStream", StreamArn=mapping.stream)
        shards = [shard["ShardId"] for shard in described["StreamDescription"]["Shards"]]
        return [Thread(target=self._read, args=(mapping, shard), daemon=True) for shard in shards]

    def _read(self, mapping: StreamMapping, shard: str) -> None:
        give_up = partial(self._store_failed_batch, mapping, shard)
        delivery = StreamDelivery(mapping, partial(self._invoke, mapping), give_up)
        # More lanes than cores would only start more function processes, each with a cold start.
        count = min(mapping.parallel, os.cpu_count() or 1)
        lanes = [ShardLane(mapping.batch_size, delivery.deliver) for _ in range(count)]
        for record in read_shard(self._url, mapping, shard):
            lanes[record.key % count].put(record)

    def _invoke(self, mapping: StreamMapping, records: Sequence[Record]) -> Invoked:
        return self._functions.invoke(mapping.function, event_of(records))

    def _store_failed_batch(self, mapping: StreamMapping, shard: str, given_up: GivenUp) -> None:
        """Write failed records to S3, and retry until that succeeds, because they must not be lost."""
        moment = datetime.now(UTC)
        print(f"gave up on {len(given_up.records)} records: {RETRIES_EXHAUSTED}", flush=True)
        key = object_key(mapping, shard, moment)
        body = json.dumps(failure_document(mapping, shard, given_up, moment)).encode()
        retry_until_ok(lambda: self._s3.put_object(Bucket=mapping.failures_bucket, Key=key, Body=body))


def read_shard(url: str, mapping: StreamMapping, shard: str) -> Iterator[Record]:
    """Yield the records of a shard that match the mapping's filters, oldest first, until the shard is
    closed."""
    iterator: str | None = None
    last = ""
    while True:
        try:
            iterator = iterator or _iterator(url, mapping.stream, shard, last)
            page = ask_streams(url, "GetRecords", ShardIterator=iterator, Limit=PAGE)
        except (OSError, HTTPException) as trouble:
            # The iterator may have expired, or the emulator may be stopping.
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


def _iterator(url: str, stream: str, shard: str, last: str) -> str:
    start = {"ShardIteratorType": "TRIM_HORIZON"}
    if last:
        start = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": last}
    answer = ask_streams(url, "GetShardIterator", StreamArn=stream, ShardId=shard, **start)
    return str(answer["ShardIterator"])


def ask_streams(url: str, action: str, **parameters: Any) -> dict[str, Any]:
    """Send a request to DynamoDB Streams without boto3, whose parsing of records would take more time than
    the rest of the pump. Functions get the records unchanged. Raises OSError and HTTPException."""
    headers = {"Content-Type": "application/x-amz-json-1.0", "Authorization": authorization("dynamodb")}
    headers |= {"X-Amz-Target": f"DynamoDBStreams_20120810.{action}"}
    request = urllib.request.Request(url, json.dumps(parameters).encode(), headers)  # noqa: S310 - the emulator
    with open_url(request, STREAMS_SECONDS) as reply:
        return dict(json.loads(reply.read()))


class ShardLane:
    """Lane of a shard: it delivers the records of some of the items in order, in parallel with the shard's
    other lanes. A batch has at most the mapping's batch size."""

    def __init__(self, batch_size: int, deliver: Callable[[list[Record]], None]) -> None:
        self._batch_size = batch_size
        self._deliver = deliver
        self._records: queue.Queue[Record] = queue.Queue(batch_size * ROOM_BATCHES)
        self._held: Record | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, record: Record) -> None:
        """Add a record. Blocks while the lane is full."""
        self._records.put(record)

    def _run(self) -> None:
        while True:
            self._deliver(self._batch())

    def _batch(self) -> list[Record]:
        batch = [self._held or self._records.get()]
        self._held = None
        size = len(batch[0].text)
        while len(batch) < self._batch_size and not self._records.empty():
            record = self._records.get()
            size += len(record.text) + 1
            if size > EVENT_BYTES:
                self._held = record
                break
            batch.append(record)
        return batch


def object_key(mapping: StreamMapping, shard: str, moment: datetime) -> str:
    """Return the key under which Lambda stores failed records:
    aws/lambda/<mapping>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<random>, in UTC."""
    stamp = moment.astimezone(UTC)
    return f"aws/lambda/{mapping.uuid}/{shard}/{stamp:%Y/%m/%d}/{stamp:%Y-%m-%dT%H.%M.%S}-{uuid4()}"


def failure_document(
    mapping: StreamMapping, shard: str, given_up: GivenUp, moment: datetime
) -> dict[str, Any]:
    """Return the document that Lambda stores for failed records."""
    records, last = given_up.records, given_up.last
    return {
        "requestContext": {
            "requestId": last.request_id,
            "functionArn": mapping.function,
            "condition": RETRIES_EXHAUSTED,
            "approximateInvokeCount": given_up.invocations,
        },
        "responseContext": {"executedVersion": "$LATEST", "functionError": last.error, "statusCode": 200},
        "version": "1.0",
        "timestamp": iso_milliseconds(moment.astimezone(UTC)),
        "DDBStreamBatchInfo": {
            "shardId": shard,
            "startSequenceNumber": records[0].sequence,
            "endSequenceNumber": records[-1].sequence,
            "approximateArrivalOfFirstRecord": iso(records[0].created),
            "approximateArrivalOfLastRecord": iso(records[-1].created),
            "batchSize": len(records),
            "streamArn": mapping.stream,
        },
        "payload": event_of(records),
    }


def event_of(records: Sequence[Record]) -> str:
    """Return the function's event as JSON, from records that are serialized already."""
    return '{"Records":[' + ",".join(record.text for record in records) + "]}"


def _source(mapping: dict[str, Any], service: str, suffix: str = "") -> bool:
    arn = str(mapping["EventSourceArn"])
    return service in arn and arn.endswith(suffix)


def die(trouble: threading.ExceptHookArgs) -> None:
    """End the process after an exception in a thread. Otherwise the other threads would continue as if there
    were no error."""
    traceback.print_exception(trouble.exc_type, trouble.exc_value, trouble.exc_traceback)
    os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--emulator", required=True, help="URL of the emulator")
    parser.add_argument("--log", type=Path, help="the emulator's log, from which metrics are read")
    options = parser.parse_args()
    threading.excepthook = die
    if options.log:
        threading.Thread(target=LoggedMetrics(options.emulator, options.log).run, daemon=True).start()
    Pump(options.emulator).run()


if __name__ == "__main__":
    main()
