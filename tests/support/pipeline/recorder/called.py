"""Names of the resources that a call to AWS is about, never the content of a message.

The recorder imports this file in the process of a function, where `tests` cannot be imported.
"""

from collections.abc import Mapping
from typing import Any

NAMES = (
    *("TableName", "IndexName", "QueueUrl", "QueueName", "Bucket", "Key", "SecretId"),
    *("FunctionName", "TopicArn", "TargetArn", "PlatformApplicationArn"),
    *("FromEmailAddress", "ConfigurationSetName"),
)
"""Parameters with the name of a resource. DynamoDB's `Key` is the key of an item, and is not text."""


def names_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: parameters[name] for name in NAMES if isinstance(parameters.get(name), str)}
    if "RequestItems" in parameters:
        found["Tables"] = sorted(parameters["RequestItems"])
    if "TransactItems" in parameters:
        # Of a transaction that updates.
        found["Tables"] = sorted({each["Update"]["TableName"] for each in parameters["TransactItems"]})
    if "Statements" in parameters:
        # The beginning of a PartiQL statement up to its table, such as `INSERT INTO "mailroom-local-ledger`.
        found["Statements"] = sorted({_up_to_table(each["Statement"]) for each in parameters["Statements"]})
    # Of EventBridge's events; a queue's entries name no bus.
    buses = {each["EventBusName"] for each in parameters.get("Entries", ()) if "EventBusName" in each}
    return found | ({"EventBuses": sorted(buses)} if buses else {})


def _up_to_table(statement: str) -> str:
    return '"'.join(statement.split('"')[:2])
