"""Finds, in the output of `cdk diff`, data that a deployment would delete or leave behind."""

import re
from collections.abc import Iterator

KEEPS = {
    "AWS::DynamoDB::GlobalTable": "table",
    "AWS::DynamoDB::Table": "table",
    "AWS::SQS::Queue": "queue",
    "AWS::S3::Bucket": "bucket",
    "AWS::SecretsManager::Secret": "secret",
}
"""Types of resources with data that cannot be restored, and their names for people."""
FATES = {
    "replace": "would be replaced: a new one takes its place, and is empty",
    "may be replaced": "may be replaced: a new one would take its place, and be empty",
    "destroy": "would be deleted",
    "orphan": "would leave its stack: it is not deleted, and its name stays in use",
}
"""Ends of a resource's line in the output of `cdk diff`, and their meanings."""
_STACK = re.compile(r"^Stack (\S+)")
_RESOURCE = re.compile(rf"^\[[-+~]\] (AWS::\w+::\w+) (.*?) ?(\w+) ({'|'.join(FATES)})\s*$")
_DASHBOARD = "[~] AWS::CloudWatch::Dashboard "


def readable(compared: str) -> Iterator[str]:
    """Yield the lines of a comparison from the first stack on. The warnings before it are left out, because
    synth has printed them already. For a changed dashboard, only one line without its JSON is yielded."""
    dashboard = started = False
    for line in compared.splitlines():
        started = started or _STACK.match(line) is not None
        dashboard = line.startswith(_DASHBOARD) or (dashboard and line.startswith(" "))
        if started and not (dashboard and line.startswith(" ")):
            yield f"{line} changed" if dashboard else line


def losses(compared: str) -> Iterator[str]:
    """Yield a sentence for each resource with data that a deployment would replace, delete or leave behind,
    by the output of `cdk diff` without colours."""
    stack = ""
    for line in compared.splitlines():
        if match := _STACK.match(line):
            stack = match[1]
        elif (match := _RESOURCE.match(line)) and match[1] in KEEPS:
            yield f"{stack}: the {KEEPS[match[1]]} {match[3]} {FATES[match[4]]}."
