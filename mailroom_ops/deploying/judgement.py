"""What a deployment would take away, read off what `cdk diff` says of each resource."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

KEEPS = {
    "AWS::DynamoDB::GlobalTable": "table",
    "AWS::DynamoDB::Table": "table",
    "AWS::SQS::Queue": "queue",
    "AWS::S3::Bucket": "bucket",
    "AWS::SecretsManager::Secret": "secret",
}
"""The types of resources that hold what nobody can make again, and what people call them."""
FATES = {
    "replace": "would be replaced: a new one takes its place, and is empty",
    "may be replaced": "may be replaced: a new one would take its place, and be empty",
    "destroy": "would be deleted",
    "orphan": "would leave its stack: it stays, and its name is taken",
}
"""How the CDK's command line ends the line of a resource, and what that means."""
_STACK = re.compile(r"^Stack (\S+)")
_RESOURCE = re.compile(rf"^\[[-+~]\] (AWS::\w+::\w+) (.*?) ?(\w+) ({'|'.join(FATES)})\s*$")
_DASHBOARD = "[~] AWS::CloudWatch::Dashboard "


@dataclass(frozen=True)
class Loss:
    """A resource with its content, and what a deployment would do to it: one of FATES."""

    stack: str
    kind: str
    resource: str
    fate: str

    def __str__(self) -> str:
        return f"{self.stack}: the {self.kind} {self.resource} {FATES[self.fate]}."


def readable(compared: str) -> Iterator[str]:
    """Return the lines of a comparison from the first stack on: warnings precede it, and synth has printed
    them. A changed dashboard is one line without its JSON."""
    dashboard = started = False
    for line in compared.splitlines():
        started = started or _STACK.match(line) is not None
        dashboard = line.startswith(_DASHBOARD) or (dashboard and line.startswith(" "))
        if started and not (dashboard and line.startswith(" ")):
            yield f"{line} changed" if dashboard else line


def losses(compared: str) -> Iterator[Loss]:
    """Each loss that the output of `cdk diff`, without colours, tells of."""
    stack = ""
    for line in compared.splitlines():
        if found := _STACK.match(line):
            stack = found[1]
        elif (found := _RESOURCE.match(line)) and found[1] in KEEPS:
            yield Loss(stack, KEEPS[found[1]], found[3], found[4])
