"""Bounds of AWS on the calls of functions, which moto and the doubles of the tests do not all hold.

Sources: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html,
API_SendMessageBatch.html and API_ChangeMessageVisibility.html beside it, and
https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

MAX_ENTRIES = 10
MAX_DELAY_SECONDS = 900
MAX_VISIBILITY_SECONDS = 43_200
MAX_BYTES = 1_048_576
"""Size of a message of SQS, and of all messages of a batch together."""
Parameters = Mapping[str, Any]


def check_call(service: str, operation: str, parameters: Parameters) -> None:
    """Raise the error of AWS for a call to SQS or EventBridge that breaks a bound."""
    if service == "sqs" and operation.startswith(("SendMessage", "ChangeMessageVisibility")):
        check_queue_call(operation, parameters["QueueUrl"], parameters.get("Entries", [parameters]))
    if (service, operation) == ("events", "PutEvents"):
        _check_number(operation, parameters["Entries"], "ValidationException")


def check_queue_call(operation: str, url: str, entries: Sequence[Parameters]) -> None:
    """Raise the error of SQS for entries that break a bound."""
    if not entries:
        raise _error(operation, "AWS.SimpleQueueService.EmptyBatchRequest")
    _check_number(operation, entries, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest")
    ids = [entry["Id"] for entry in entries if "Id" in entry]
    if len({*ids}) < len(ids):
        raise _error(operation, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct")
    if sum(len(entry.get("MessageBody", "").encode()) for entry in entries) > MAX_BYTES:
        raise _error(operation, "AWS.SimpleQueueService.BatchRequestTooLong")
    for entry in entries:
        for code in _faults(entry, fifo=url.endswith(".fifo") and "MessageBody" in entry):
            raise _error(operation, code)


def _faults(entry: Parameters, *, fifo: bool) -> Iterator[str]:
    """Yield the codes of the errors of one entry; `fifo`: it goes to a FIFO queue."""
    if not 0 <= entry.get("DelaySeconds", 0) <= MAX_DELAY_SECONDS:
        yield "InvalidParameterValue"
    if not 0 <= entry.get("VisibilityTimeout", 0) <= MAX_VISIBILITY_SECONDS:
        yield "InvalidParameterValue"
    if fifo and entry.get("DelaySeconds"):  # a FIFO queue has one delay for all
        yield "InvalidParameterValue"
    if fifo and "MessageGroupId" not in entry:
        yield "MissingParameter"


@contextmanager
def holding_bounds() -> Iterator[None]:
    """Let every client of boto3 hold the bounds."""
    build: Any = BaseClient._emit_api_params  # type: ignore[attr-defined]

    def checked(client: Any, api_params: Any, operation_model: Any, context: Any) -> Any:
        check_call(operation_model.service_model.service_name, operation_model.name, api_params)
        return build(client, api_params, operation_model, context)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_emit_api_params", checked)
        yield


def _check_number(operation: str, entries: Sequence[Parameters], code: str) -> None:
    if not 1 <= len(entries) <= MAX_ENTRIES:
        raise _error(operation, code)


def _error(operation: str, code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "A bound of AWS."}}, operation)
