"""Loops of functions over queues, in the templates of a stage."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.stacks.templates import Templates

Graph = Mapping[str, set[str]]


def loops(stage: Templates) -> Iterator[frozenset[str]]:
    """Return the functions of each loop in which every function sends to a queue that invokes the next one.

    Lambda stops such a loop after about 16 rounds
    (https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html).
    """
    graph = _graph(stage)
    reached = {name: _reached(graph, name) for name in graph}
    yield from {
        frozenset(other for other in reached[name] if name in reached.get(other, ()))
        for name in graph
        if name in reached[name]
    }


def recursion_allowed(stage: Templates) -> set[str]:
    """Return the names of the functions that Lambda does not stop in a loop."""
    return {
        function["FunctionName"]
        for template in stage.stacks.values()
        for function in template.all("Lambda::Function")
        if function.get("RecursiveLoop") == "Allow"
    }


def _graph(stage: Templates) -> Graph:
    """Return the functions that each function reaches by a queue."""
    readers: dict[str, set[str]] = {}
    senders: dict[str, set[str]] = {}
    names = dict(_exports(stage))
    for stack, template in stage.stacks.items():
        resources = template.body["Resources"]
        for mapping in template.all("Lambda::EventSourceMapping"):
            if queue := _queue(names, stack, resources, mapping["EventSourceArn"]):
                function = resources[mapping["FunctionName"]["Ref"]]["Properties"]["FunctionName"]
                readers.setdefault(queue, set()).add(function)
        for function in template.all("Lambda::Function"):
            role = resources[function["Role"]["Fn::GetAtt"][0]]["Properties"]
            for arn in _sends_to(role):
                if queue := _queue(names, stack, resources, arn):
                    senders.setdefault(function["FunctionName"], set()).add(queue)
    return {
        name: {reader for queue in queues for reader in readers.get(queue, ())}
        for name, queues in senders.items()
    }


def _exports(stage: Templates) -> Iterator[tuple[str, str]]:
    """Return the name of each queue that a stack exports, by the name of the export."""
    for stack, template in stage.stacks.items():
        for output in template.body.get("Outputs", {}).values():
            queue = _queue({}, stack, template.body["Resources"], output["Value"])
            if "Export" in output and queue:
                yield output["Export"]["Name"], queue


def _sends_to(role: Mapping[str, Any]) -> Iterator[Any]:
    for policy in role["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            if "sqs:SendMessage" in _as_list(statement["Action"]):
                yield from _as_list(statement["Resource"])


def _queue(names: Mapping[str, str], stack: str, resources: Mapping[str, Any], arn: Any) -> str | None:
    """Return the queue that an expression names; None if it names another resource."""
    match arn:
        case {"Fn::ImportValue": name}:
            return names.get(name)
        case {"Fn::GetAtt": [resource, "Arn"]} if resources[resource]["Type"] == "AWS::SQS::Queue":
            name = resources[resource]["Properties"]["QueueName"]
            return str(name)
        case {"Fn::Join": [_, [*_, str(end)]]} if end.startswith(":sqs:") or end.count(":") == 1:
            return end.rpartition(":")[2]
    return None


def _reached(graph: Graph, start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [*graph.get(start, ())]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += graph.get(name, ())
    return reached


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
