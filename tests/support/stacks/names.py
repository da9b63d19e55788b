"""The names that AWS shows of what a template makes."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

PHYSICAL = (
    *("FunctionName", "QueueName", "TableName", "BucketName", "TopicName", "RoleName", "AlarmName"),
    *("RuleName", "DashboardName", "Name", "LogGroupName", "AliasName", "SecretName", "ScheduleExpression"),
    *("GroupName", "ApiMappingKey", "RouteKey", "StageName", "ConfigurationSetName"),
    *("EventDestinationName", "ConfigurationName"),
)
"""Properties that hold one."""
OF_ANOTHER = ("ScheduleExpression", "ApiMappingKey", "RouteKey", "StageName", "EventDestinationName")
"""Types whose names are names within another resource, and not in the account."""


def physical_names(bodies: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The names that an account has once in a region, with their types."""
    for body in bodies:
        for resource in body["Resources"].values():
            given = resource.get("Properties", {})
            for key in PHYSICAL:
                # A reference names another resource of the template.
                if key in given and key not in OF_ANOTHER and not {"Ref", "Fn::GetAtt"} & {*given[key]}:
                    yield f"{resource['Type']} {json.dumps(given[key])}"
