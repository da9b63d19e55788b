"""The services that functions call, with a counter of calls; a test can stop a function at any call.

DynamoDB is the double in memory, which is compared with moto. Queues and SES are small models on a virtual
clock. They record the data that tests check, and do not sleep.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from tests.support.bounds import check_call, check_queue_call

Side = Literal["before", "after"]
Trouble = Literal["down", "throttles", "loses answers", "day used up"]
"""Ways in which a provider fails every request."""

PLACES: Counter[str] = Counter()
"""Number of calls, by place, at which a test has stopped a function or run another one."""
EMPTY: Mapping[str, Any] = MappingProxyType({})
NO_BUCKET: Any = object()
"""An S3 client for worlds whose messages are without objects."""


class Stopped(BaseException):
    """The process stops here. It is not an Exception, so that no handler of the product catches it."""


@dataclass
class Clock:
    """A clock that moves only if a test moves it."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Outside:
    """Counts calls in order. Stops the process at one call, or runs another function just before it."""

    calls: list[str] = field(default_factory=list)
    stop: tuple[int, Side] | None = None
    stopped_at: str | None = None
    intrude: tuple[int, Callable[[], object]] | None = None
    time_is_up: Callable[[], bool] = lambda: False
    """Returns whether the running function has exceeded its timeout, so that Lambda kills it."""

    def call(self, name: str, operation: Callable[..., Any], **arguments: Any) -> Any:
        at = len(self.calls)
        self.calls.append(name)
        if self.time_is_up():
            raise Stopped(f"timed out before {name}")
        if self.intrude is not None and self.intrude[0] == at:
            PLACES["let in"] += 1
            self.intrude[1]()
        self._stop_here(at, "before", name)
        try:
            return operation(**arguments)
        finally:
            self._stop_here(at, "after", name)

    def _stop_here(self, at: int, side: Side, name: str) -> None:
        if self.stop == (at, side):
            PLACES["stopped at"] += 1
            self.stopped_at = f"{side} {name}"
            raise Stopped(self.stopped_at)

    def watch(self, client: Any, *names: str) -> Any:
        """Return the client, with the named operations passed through `call`."""
        return _Watched(client, names, self)


class _Watched:
    def __init__(self, client: Any, names: tuple[str, ...], outside: Outside) -> None:
        self._client = client
        self._names = names
        self._outside = outside

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if name not in self._names:
            return attribute
        return lambda *given, **arguments: self._outside.call(name, partial(attribute, *given), **arguments)


@dataclass
class Queued:
    """A message in a queue."""

    message_id: str
    body: str
    visible_at: float
    receives: int = 0
    first_received_at: float = 0
    attributes: dict[str, Any] = field(default_factory=dict)


class Queues:
    """A model of SQS: visibility, receive counts, and the move to a dead-letter queue by the redrive
    policy."""

    def __init__(self, clock: Clock, visibility: float, max_receives: int) -> None:
        self._clock = clock
        self._visibility = visibility
        self._max_receives = max_receives
        self._made = 0
        self.messages: dict[str, list[Queued]] = defaultdict(list)
        self.dead: dict[str, list[Queued]] = defaultdict(list)

    def put(
        self, url: str, body: str, delay: float = 0, attributes: Mapping[str, Mapping[str, str]] = EMPTY
    ) -> None:
        self._made += 1
        told = {name: {"stringValue": each["StringValue"]} for name, each in attributes.items()}
        self.messages[url].append(Queued(f"m{self._made}", body, self._clock() + delay, attributes=told))

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        check_queue_call("SendMessageBatch", QueueUrl, Entries)
        for entry in Entries:
            attributes = entry.get("MessageAttributes", EMPTY)
            self.put(QueueUrl, entry["MessageBody"], entry.get("DelaySeconds", 0), attributes)
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Any) -> dict[str, Any]:  # noqa: N803
        assert "ApproximateNumberOfMessages" in AttributeNames
        return {"Attributes": {"ApproximateNumberOfMessages": str(len(self.messages[QueueUrl]))}}

    def change_message_visibility_batch(
        self,
        *,
        QueueUrl: str,  # noqa: N803
        Entries: list[dict[str, Any]],  # noqa: N803
    ) -> dict[str, Any]:
        check_queue_call("ChangeMessageVisibilityBatch", QueueUrl, Entries)
        waits = {entry["ReceiptHandle"]: entry["VisibilityTimeout"] for entry in Entries}
        for message in self.messages[QueueUrl]:
            if message.message_id in waits:
                message.visible_at = self._clock() + waits[message.message_id]
        return {}

    def receive(self, url: str, most: int = 10) -> list[dict[str, Any]]:
        """Return up to ten visible messages, as Lambda receives them.

        Messages over the maximum of receives move to the dead-letter queue.
        """
        visible = [each for each in self.messages[url] if each.visible_at <= self._clock()]
        records = []
        for message in visible[:most]:
            if message.receives == self._max_receives:
                self.messages[url].remove(message)
                self.dead[url].append(message)
                continue
            message.receives += 1
            message.first_received_at = message.first_received_at or self._clock()
            message.visible_at = self._clock() + self._visibility
            records.append(_record(message))
        return records

    def settle(self, url: str, records: list[dict[str, Any]], response: dict[str, Any]) -> None:
        """Handle a partial batch response like Lambda: delete the records that are not reported as failed."""
        back = {each["itemIdentifier"] for each in response["batchItemFailures"]}
        done = {record["messageId"] for record in records} - back
        self.messages[url] = [each for each in self.messages[url] if each.message_id not in done]

    def next_visible(self, *urls: str) -> float | None:
        """Return the time of the next possible receive from some queues, or from any queue. Return None if
        they are empty.
        """
        times = [message.visible_at for url in urls or self.messages for message in self.messages[url]]
        return min(times) if times else None


def _record(message: Queued) -> dict[str, Any]:
    return {
        "messageId": message.message_id,
        "receiptHandle": message.message_id,
        "body": message.body,
        "attributes": {
            "ApproximateReceiveCount": str(message.receives),
            "ApproximateFirstReceiveTimestamp": str(int(message.first_received_at * 1000)),
        },
        "messageAttributes": message.attributes,
    }


class Ses:
    """A model of SES that records the accepted mails with their times.

    A recipient's name chooses the response, unless `trouble` chooses it for all.
    """

    def __init__(self, clock: Clock) -> None:
        self.trouble: Trouble | None = None
        self.accepted: list[dict[str, Any]] = []
        self.times: list[float] = []
        self._clock = clock
        self._throttled: set[str] = set()

    def send_email(self, **request: Any) -> dict[str, Any]:
        recipient = request["Destination"]["ToAddresses"][0]
        if self.trouble == "down":
            raise EndpointConnectionError(endpoint_url="https://email.example.com")
        if self.trouble == "throttles":
            raise ses_error("TooManyRequestsException", 429)
        if self.trouble == "day used up":
            raise ses_error("LimitExceededException", 400)
        if recipient.startswith("throttled-once") and recipient not in self._throttled:
            self._throttled.add(recipient)
            raise ses_error("TooManyRequestsException", 429)
        if recipient.startswith("rejected"):
            raise ses_error("MessageRejected", 400, "Address blacklisted.")
        self.accepted.append(request)
        self.times.append(self._clock())
        if recipient.startswith("lost-answer") or self.trouble == "loses answers":
            raise ReadTimeoutError(endpoint_url="https://email.example.com")
        return {"MessageId": f"ses-{len(self.accepted)}"}


def ses_error(code: str, status: int, words: str = "no") -> ClientError:
    """Return an error response of SES."""
    answer: Any = {
        "Error": {"Code": code, "Message": words},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, "SendEmail")


class Bus:
    """A model of EventBridge that records the details of accepted events.

    It rejects each third event the first time.
    """

    def __init__(self) -> None:
        self.details: list[dict[str, Any]] = []
        self._seen: dict[str, None] = {}

    def put_events(self, *, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        check_call("events", "PutEvents", {"Entries": Entries})
        return {"Entries": [self._answer(json.loads(each["Detail"])) for each in Entries]}

    def _answer(self, detail: dict[str, Any]) -> dict[str, str]:
        id_ = detail["event_id"]
        if id_ not in self._seen:
            self._seen[id_] = None
            if len(self._seen) % 3 == 0:
                return {"ErrorCode": "ThrottlingException", "ErrorMessage": "Rate exceeded"}
        self.details.append(detail)
        return {"EventId": f"e{len(self.details)}"}
