"""Limits of AWS on the calls of functions. Neither moto nor the tests' doubles enforce all of them.

Sources: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html, with the
pages API_SendMessageBatch.html, API_ReceiveMessage.html and API_ChangeMessageVisibility.html in the same
folder, and https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html.

The proof imports this module in an environment without pytest.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient

MAX_ENTRIES = 10
MAX_DELAY_SECONDS = 900
MAX_VISIBILITY_SECONDS = 43_200
MAX_WAIT_SECONDS = 20
MAX_BYTES = 1_048_576
"""Largest size of an SQS message with its attributes, and of all messages of a batch together."""
JUDGED = ("SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility")
"""Operations of SQS whose calls are checked, including their batch forms."""
Parameters = Mapping[str, Any]


class BoundBroken(BaseException):
    """A call that AWS rejects, with the code of its error.

    It is not an `Exception`: product code that handles errors of AWS would catch it and hide the invalid
    call.
    """


def check_call(service: str, operation: str, parameters: Parameters) -> None:
    """Raise BoundBroken for a call to SQS or EventBridge that exceeds a limit."""
    if service == "sqs" and operation.startswith(JUDGED):
        check_queue_call(operation, parameters["QueueUrl"], parameters.get("Entries", [parameters]))
    if (service, operation) == ("events", "PutEvents"):
        _check_number(operation, parameters["Entries"], "ValidationException")


def check_queue_call(operation: str, url: str, entries: Sequence[Parameters]) -> None:
    """Raise BoundBroken for entries that SQS rejects."""
    if not entries:
        raise _broken(operation, "AWS.SimpleQueueService.EmptyBatchRequest")
    _check_number(operation, entries, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest")
    ids = [entry["Id"] for entry in entries if "Id" in entry]
    if len({*ids}) < len(ids):
        raise _broken(operation, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct")
    if sum(_size_of_entry(entry) for entry in entries) > MAX_BYTES:
        raise _broken(operation, "AWS.SimpleQueueService.BatchRequestTooLong")
    for entry in entries:
        for code in _faults(entry, fifo=url.endswith(".fifo") and "MessageBody" in entry):
            raise _broken(operation, code)


def _size_of_entry(entry: Parameters) -> int:
    texts = [entry.get("MessageBody", "")]
    for name, attribute in entry.get("MessageAttributes", {}).items():
        texts += [name, attribute["DataType"], attribute.get("StringValue", "")]
    return sum(len(text.encode()) for text in texts)


def _faults(entry: Parameters, *, fifo: bool) -> Iterator[str]:
    """Yield the error codes of one entry. `fifo` is true if the entry is sent to a FIFO queue."""
    most = {
        "DelaySeconds": MAX_DELAY_SECONDS,
        "VisibilityTimeout": MAX_VISIBILITY_SECONDS,
        "WaitTimeSeconds": MAX_WAIT_SECONDS,
        "MaxNumberOfMessages": MAX_ENTRIES,
    }
    if any(not 0 <= entry.get(name, 0) <= number for name, number in most.items()):
        yield "InvalidParameterValue"
    if fifo and entry.get("DelaySeconds"):  # A FIFO queue has one delay for all its messages.
        yield "InvalidParameterValue"
    if fifo and "MessageGroupId" not in entry:
        yield "MissingParameter"


@contextmanager
def holding_bounds() -> Iterator[None]:
    """Check the calls of every boto3 client against the limits, until the block ends."""
    build: Any = BaseClient._emit_api_params  # type: ignore[attr-defined]

    def checked(client: Any, api_params: Any, operation_model: Any, context: Any) -> Any:
        check_call(operation_model.service_model.service_name, operation_model.name, api_params)
        return build(client, api_params, operation_model, context)

    with patch.object(BaseClient, "_emit_api_params", checked):
        yield


def _check_number(operation: str, entries: Sequence[Parameters], code: str) -> None:
    if not 1 <= len(entries) <= MAX_ENTRIES:
        raise _broken(operation, code)


def _broken(operation: str, code: str) -> BoundBroken:
    return BoundBroken(f"{operation}: AWS answers {code}")
