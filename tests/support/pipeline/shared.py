"""A running stage, as producers, operators and providers see it: what the pipeline's tests share."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lab.harness import callbacks
from lab.harness.callbacks import ReceivedCallback
from lab.harness.expected import Item
from lab.harness.stage_client import StageClient, typed
from mailroom.aws.dynamo_values import plain
from mailroom.clock import iso
from mailroom.http.url_policy import host_of
from mailroom.ledger.waits import SHARDS
from mailroom.providers.webhooks.signing import host_key
from mailroom_local.aws import STAGE, LocalSession, patient
from mailroom_local.stage.workspace import LEDGER, MAILBOX, State, Workspace
from tests.support.pipeline.items import correlation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from types_boto3_logs import CloudWatchLogsClient

CONTENTS = f"mailroom-{STAGE}-contents"
POLL_SECONDS = 0.2
ENDED_SECONDS = 20.0
LEASE_SECONDS = 15.0
"""Seconds of the local stage: time-out 13, margin 2."""
ACCEPTED = ("sent", "delivered")
"""Statuses of a mail without an error, before and after its events arrive."""
Accepted = dict[str, Any]
"""An entry of the inbox."""
MOST_EVENTS = 10_000
"""The most lines in a response of CloudWatch Logs."""
FLUSH_SECONDS = 10.0
"""Seconds without an expected line after which a function is invoked, so that the emulator reads it."""
FLUSHES = 6
"""Number of invocations at once that reach all processes of a function."""
LATE_MILLISECONDS = 2_000
"""How much later than its time a line may be written."""

BESIDE_OTHERS = 4
"""Factor by which other tests on the same cores may slow a second."""


def until(
    condition: Callable[[], object], seconds: float, otherwise: Callable[[], str], poll: float = POLL_SECONDS
) -> None:
    """Poll until the condition holds. Fail with `otherwise` after so many seconds of an idle machine."""
    seconds *= BESIDE_OTHERS
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds:.0f} s: {otherwise()}"
        time.sleep(poll)


class Pipeline(StageClient):
    """The stage with what tests need beside: they wait for outcomes, and look at logs."""

    def __init__(self, workspace: Workspace, running: State) -> None:
        super().__init__(running)
        session, url = LocalSession(), running.endpoints.aws
        self.workspace = workspace
        self._logs: CloudWatchLogsClient = session.client("logs", endpoint_url=url, config=patient())
        self._lines: dict[str, set[str]] = {}
        self._read_until: dict[str, int] = {}

    def put_batch(self, items: Sequence[Item]) -> None:
        """Put many items, 25 a call."""
        for at in range(0, len(items), 25):
            requests = [{"PutRequest": {"Item": typed(item)}} for item in items[at : at + 25]]
            reply = self.dynamodb.batch_write_item(RequestItems={MAILBOX: requests})  # type: ignore[dict-item]
            assert not reply["UnprocessedItems"]

    def ledger(self, id_: str, event_type: str = "mail") -> Item:
        """Return the ledger's item of a message, or {}."""
        key = typed({"id": id_, "event_type": event_type})
        return plain(self.dynamodb.get_item(TableName=LEDGER, Key=key, ConsistentRead=True).get("Item", {}))

    def until_ended(self, *ids: str, event_type: str = "mail", seconds: float = ENDED_SECONDS) -> None:
        """Wait until each message has its outcome."""
        left = set(ids)

        def ended() -> bool:
            left.difference_update(self._ended(list(left)[:100], event_type))
            return not left

        until(ended, seconds, lambda: f"no outcome for {[(id_, self.ledger(id_)) for id_ in left]}")

    def _ended(self, ids: list[str], event_type: str) -> set[str]:
        """Which of 100 messages at most have an outcome: one call, for polling must not be the load."""
        keys = [typed({"id": id_, "event_type": event_type}) for id_ in ids]
        request = {"Keys": keys, "ProjectionExpression": "id, completedAt", "ConsistentRead": True}
        reply = self.dynamodb.batch_get_item(RequestItems={LEDGER: request})  # type: ignore[dict-item]
        return {image["id"]["S"] for image in reply["Responses"][LEDGER] if "completedAt" in image}

    def until_waits(self, reason: str, *ids: str, event_type: str = "mail") -> None:
        """Wait until the ledger says of each message that it waits, and for what."""

        def others() -> dict[str, Item]:
            rows = {id_: self.ledger(id_, event_type) for id_ in ids}
            return {
                id_: row
                for id_, row in rows.items()
                if row.get("status") != "scheduled" or row.get("wait", {}).get("reason") != reason
            }

        until(lambda: not others(), ENDED_SECONDS, lambda: f"do not wait for {reason}: {others()}")

    def release(self) -> None:
        """Run a round of `release` for each shard and for mail, and wait for its end. Every ten seconds, the
        pump invokes the function, which starts such rounds."""
        name = self.output("ReleaseFunctionName")
        for event in [*({"shard": shard} for shard in range(SHARDS)), {"line": "mail"}]:
            self.functions.invoke(FunctionName=name, Payload=json.dumps(event))

    def come_due(self, id_: str, event_type: str = "mail") -> None:
        """Let the time come that a message waits for, and release it."""
        self.make_due(id_, event_type)
        self.release()

    def make_due(self, id_: str, event_type: str = "mail") -> None:
        """Let the time come that a message waits for."""
        now = time.time()
        self.dynamodb.update_item(
            TableName=LEDGER,
            Key=typed({"id": id_, "event_type": event_type}),
            UpdateExpression="SET waits_at = :now, scheduledFor = :time",
            ExpressionAttributeValues=typed({":now": int(now), ":time": iso(now)}),
        )

    @contextmanager
    def release_stopped(self) -> "Iterator[None]":
        """Stop the release of waiting messages, until the block ends."""
        self.stop_release()
        try:
            yield
        finally:
            self.start_release()
            self.release()

    @contextmanager
    def day_closed(self, seconds: float) -> "Iterator[None]":
        """The day is closed for bulk mails for so long, as if SES had said that it is used up. The block ends
        it early."""
        self.close_day("mail", time.time() + seconds)
        try:
            yield
        finally:
            self.open_day("mail")

    def contents(self, id_: str, event_type: str = "mail") -> int:
        """How many contents are put by for a message that waits."""
        return self.dynamodb.query(
            TableName=CONTENTS,
            KeyConditionExpression="message = :key",
            ExpressionAttributeValues={":key": {"S": f"{event_type}#{id_}"}},
        )["Count"]

    def inbox(self) -> list[Accepted]:
        """Return the mails that SES accepted, newest last."""
        return [each for each in self.accepted() if each["channel"] == "mail"]

    def calls(self, id_: str | None = None) -> list[Accepted]:
        """The faxes that the provider accepted: all, or those whose PDF has a message's name."""
        return [each for each in self.faxes() if id_ is None or f"/{id_}.pdf" in each["media_url"]]

    def receiver(self, path: str) -> str:
        """A URL of the webhook receiver."""
        return f"{self.running.endpoints.providers}/receiver/{path}"

    def received(self, kind: str, about: str) -> list[Accepted]:
        """The requests that came to a path which ends in these two, oldest first."""
        return [each for each in self.requests() if each["path"].endswith(f"/{kind}/{about}")]

    def receivers_key(self) -> str:
        """Return the keys with which the webhook receiver verifies now."""
        name = self.output("WebhookKeysSecretName")
        secret = self.secrets.get_secret_value(SecretId=name)["SecretString"]
        return host_key(secret, host_of(self.running.endpoints.providers))

    def until_told(self, id_: str, count: int = 1, seconds: float = ENDED_SECONDS) -> list[Any]:
        """The payloads of so many different callbacks about a message, once they have come; all verified."""

        def told() -> list[ReceivedCallback]:
            return callbacks.different(callbacks.read(self.received("callbacks", id_), self.receivers_key()))

        until(lambda: len(told()) >= count, seconds, lambda: f"told of {id_}: {told()}")
        assert all(each.verified for each in told())
        return [each.payload for each in told()]

    def mails(self, id_: str) -> list[Accepted]:
        """The mails of one message that SES accepted."""
        mark = correlation(id_)
        return [each for each in self.inbox() if each["content"]["headers"].get("X-Correlation-ID") == mark]

    def one_mail(self, id_: str) -> Accepted:
        """The message's one mail, after its end. Fails if it was sent twice, or not at all."""
        self.until_ended(id_)
        row, sent = self.ledger(id_), self.mails(id_)
        assert (row["status"] in ACCEPTED, len(sent)) == (True, 1), (row, sent)
        return sent[0]

    def failure(self, id_: str) -> str:
        """The sentence that a failed message has in the ledger, after its end. Fails if it was sent."""
        self.until_ended(id_)
        row = self.ledger(id_)
        assert row["status"] == "failed", row
        assert not self.mails(id_)
        return str(row["error"]["message"])

    def until_status(self, status: str, *ids: str, event_type: str = "mail", seconds: float = 30) -> None:
        """Wait until the events have brought each message to this status."""

        def others() -> dict[str, str]:
            found = {id_: str(self.ledger(id_, event_type).get("status")) for id_ in ids}
            return {id_: each for id_, each in found.items() if each != status}

        until(lambda: not others(), seconds, lambda: f"not {status}: {others()}")

    def send(self, queue: str, bodies: Iterable[str]) -> None:
        """Write bodies to a queue (its URL) directly, ten a call."""
        entries = [{"Id": str(at % 10), "MessageBody": body} for at, body in enumerate(bodies)]
        for at in range(0, len(entries), 10):
            reply = self.sqs.send_message_batch(QueueUrl=queue, Entries=entries[at : at + 10])  # type: ignore[arg-type]
            assert not reply.get("Failed")

    def dead_letters(self, queue: str) -> set[str]:
        """The bodies in a dead-letter queue (its URL), ten at most; they stay there."""
        reply = self.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return {each["Body"] for each in reply.get("Messages", [])}

    def redrive(self, dead: str, queue: str, body: str) -> None:
        """Move one body from a dead-letter queue to a queue (their URLs), as a redrive does."""
        reply = self.sqs.receive_message(QueueUrl=dead, MaxNumberOfMessages=10, VisibilityTimeout=5)
        (letter,) = (each for each in reply.get("Messages", []) if each["Body"] == body)
        self.sqs.send_message(QueueUrl=queue, MessageBody=body)
        self.sqs.delete_message(QueueUrl=dead, ReceiptHandle=letter["ReceiptHandle"])

    def logged(self, function: str, *words: str) -> bool:
        """Whether the function has written a line that holds all of these words."""
        return any(all(word in line for word in words) for line in self._logged(function))

    def until_logged(self, function: str, *words: str, seconds: float = ENDED_SECONDS) -> None:
        """Wait until the function has logged a line with these words. The lines of an invocation are in the
        log when the invocation has ended, which is after the message's end.

        On a busy machine the emulator may read a line only at the next invocation of the process that wrote
        it. Invocations in a row would all run in the first process. So after FLUSH_SECONDS all processes are
        invoked at once.
        """
        invoke_at = time.monotonic() + FLUSH_SECONDS

        def logged() -> bool:
            nonlocal invoke_at
            if time.monotonic() > invoke_at:
                self._invoke_all_processes(function)
                invoke_at = time.monotonic() + FLUSH_SECONDS
            return self.logged(function, *words)

        until(logged, seconds, lambda: f"{function} has not logged {words}")

    def _invoke_all_processes(self, function: str) -> None:
        """Invoke a function without records, FLUSHES times at once."""

        def invoke(_: int) -> object:
            return self.functions.invoke(FunctionName=function, Payload=b'{"Records": []}')

        with ThreadPoolExecutor(FLUSHES) as threads:
            list(threads.map(invoke, range(FLUSHES)))  # raises the errors of the threads

    def _logged(self, function: str) -> set[str]:
        """Return all log lines of a function. Only new lines are requested, because whole logs would slow the
        stage."""
        lines = self._lines.setdefault(function, set())
        while True:
            reply = self._logs.filter_log_events(
                logGroupName=f"/aws/lambda/{function}", startTime=self._read_until.get(function, 0)
            )
            events = reply["events"]
            lines |= {each["message"] for each in events}
            if len(events) == MOST_EVENTS:
                self._read_until[function] = events[-1]["timestamp"]
                continue
            if events:
                self._read_until[function] = events[-1]["timestamp"] - LATE_MILLISECONDS
            return lines

    @contextmanager
    def configured(self, function: str, **variables: str) -> "Iterator[None]":
        """The function with other values in its environment, until the block ends."""
        before = self.variables(function)
        self._configure(function, {**before, **variables})
        try:
            yield
        finally:
            self._configure(function, before)

    def restart(self, function: str) -> None:
        """Let the function's next invocations run in new processes."""
        self._configure(function, {**self.variables(function), "RESTARTED": str(time.time())})

    def _configure(self, function: str, variables: dict[str, str]) -> None:
        self.functions.update_function_configuration(
            FunctionName=function, Environment={"Variables": variables}
        )

    def queue_is_empty(self, url: str) -> bool:
        """Return whether a queue is empty."""
        return self.depth(url) == 0
