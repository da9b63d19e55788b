"""Loops of functions over queues, topics and buckets, in the templates of a stage."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from tests.support.stacks.resolved import Resolver, as_list
from tests.support.stacks.templates import Templates

Edge = tuple[str, str]
"""A function or resource, and one that it invokes or sends to: both by their ARNs."""

_SENDS = {
    "sqs:SendMessage": "",
    "sns:Publish": "",
    "s3:PutObject": "/*",
    "lambda:InvokeFunction": "",
}
"""Actions by which an invocation of a function leads to further invocations, each with the ending of its
resources after the ARN of the queue, topic, bucket or function."""


def loops(stage: Templates) -> Iterator[frozenset[str]]:
    """Return the names of the functions of each loop in which Lambda counts the rounds.

    Lambda counts them over SQS, SNS, S3 and its own invocations, and stops the loop after about 16 rounds. It
    does not follow a chain over another service, so a loop that leads over a table's stream is none here
    (https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html).
    """
    edges = {*_edges(stage)}
    graph: dict[str, set[str]] = {}
    for start, end in edges:
        graph.setdefault(start, set()).add(end)
    reached = {node: _reached(graph, node) for node in graph}
    yield from {
        frozenset(_function_name(other) for other in reached[node] if _in_loop(reached, node, other))
        for node in graph
        if _function_name(node) and node in reached[node]
    }


def recursion_allowed(stage: Templates) -> set[str]:
    """Return the names of the functions that Lambda does not stop in a loop."""
    return {
        function["FunctionName"]
        for template in stage.stacks.values()
        for function in template.all("Lambda::Function")
        if function.get("RecursiveLoop") == "Allow"
    }


def _edges(stage: Templates) -> Iterator[Edge]:
    resolver = Resolver(stage)
    resources = [
        (stack, name, resource)
        for stack, template in stage.stacks.items()
        for name, resource in template.body["Resources"].items()
    ]
    functions = {
        resolver.text(stack, _arn(name)): (stack, resource["Properties"]["Role"])
        for stack, name, resource in resources
        if resource["Type"] == "AWS::Lambda::Function"
    }
    triggers = [edge for each in resources for edge in _triggers(resolver, *each)]
    yield from triggers
    for function, (stack, role) in functions.items():
        for pattern in _sends_to(resolver, stack, role):
            for target in {*functions, *(source for source, _ in triggers)}:
                if fnmatchcase(target, pattern):
                    yield function, target


def _triggers(resolver: Resolver, stack: str, name: str, resource: Mapping[str, Any]) -> Iterator[Edge]:
    """Yield the edges from a queue, topic or bucket that a resource describes."""
    match resource:
        case {"Type": "AWS::Lambda::EventSourceMapping", "Properties": mapping}:
            source = resolver.text(stack, mapping["EventSourceArn"])
            if source.startswith("arn:aws:sqs:"):
                yield source, resolver.text(stack, _arn(mapping["FunctionName"]["Ref"]))
        case {"Type": "AWS::SNS::Subscription", "Properties": {"Protocol": "sqs" | "lambda"} as subscription}:
            topic, endpoint = subscription["TopicArn"], subscription["Endpoint"]
            yield resolver.text(stack, topic), resolver.text(stack, endpoint)
        case {"Type": "AWS::S3::Bucket", "Properties": {"NotificationConfiguration": notifications}}:
            bucket = resolver.text(stack, _arn(name))
            for kind, target in (("Lambda", "Function"), ("Queue", "Queue"), ("Topic", "Topic")):
                for each in notifications.get(f"{kind}Configurations", ()):
                    yield bucket, resolver.text(stack, each[target])


def _arn(name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [name, "Arn"]}


def _function_name(arn: str) -> str:
    """Return the name of a function; empty for the ARN of another resource."""
    return arn.partition(":function:")[2]


def _sends_to(resolver: Resolver, stack: str, role: Any) -> Iterator[str]:
    """Yield the ARNs that a role may send to; they may have wildcards."""
    for policy in resolver.policies(stack, role["Fn::GetAtt"][0]):
        for statement in policy["Statement"]:
            if statement["Effect"] == "Allow":
                for action in as_list(statement["Action"]):
                    if action in _SENDS:
                        yield from (each.removesuffix(_SENDS[action]) for each in statement["Resource"])


def _in_loop(reached: Mapping[str, set[str]], node: str, other: str) -> bool:
    return bool(_function_name(other)) and node in reached.get(other, ())


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [*graph.get(start, ())]
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += graph.get(node, ())
    return reached
