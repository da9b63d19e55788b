"""Writes down every AWS call of the function whose process this is.

Python imports a module of this name when it starts, before any code of the function. All of boto3's clients
build their requests in one method, and the URLs that they sign as well. What is written are names: the
operation, and what the call is about; never what a message says.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from botocore.client import BaseClient

NAMES = (
    *("TableName", "IndexName", "QueueUrl", "Bucket", "Key", "SecretId"),
    *("FunctionName", "TopicArn", "TargetArn", "PlatformApplicationArn"),
    *("FromEmailAddress", "ConfigurationSetName"),
)
"""Parameters that name what a call is about. DynamoDB's `Key` is an item's, and no text."""

_client: Any = BaseClient
_build = _client._emit_api_params
_own = f"{os.environ['AWS_LAMBDA_FUNCTION_NAME']}-{os.getpid()}.jsonl"
_file = Path(os.environ["RECORDED_CALLS"], _own).open("a", buffering=1)  # noqa: SIM115 - as long as the process
_written: set[str] = set()


def _names(parameters: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: parameters[name] for name in NAMES if isinstance(parameters.get(name), str)}
    if "RequestItems" in parameters:
        found["Tables"] = sorted(parameters["RequestItems"])
    if "TransactItems" in parameters:
        # Of a transaction that updates.
        found["Tables"] = sorted({each["Update"]["TableName"] for each in parameters["TransactItems"]})
    if "Statements" in parameters:
        # PartiQL up to its table, such as `INSERT INTO "mailroom-local-ledger`.
        found["Statements"] = sorted({_up_to_table(each["Statement"]) for each in parameters["Statements"]})
    # Of EventBridge's events; a queue's entries name no bus.
    buses = {each["EventBusName"] for each in parameters.get("Entries", ()) if "EventBusName" in each}
    return found | ({"EventBuses": sorted(buses)} if buses else {})


def _up_to_table(statement: str) -> str:
    return '"'.join(statement.split('"')[:2])


def _recorded(client: Any, api_params: Any, operation_model: Any, context: Any) -> Any:
    call = [operation_model.service_model.service_name, operation_model.name, _names(api_params)]
    line = json.dumps(call, sort_keys=True)
    if line not in _written:
        _written.add(line)
        _file.write(f"{line}\n")
    return _build(client, api_params, operation_model, context)


_client._emit_api_params = _recorded
