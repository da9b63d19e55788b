"""The calls of a stage's functions, recorded while tests run, and the permissions of its roles for them.

Each run records anew. A list of calls in the repository would need renewal after each change, and names that
only a deployment knows. The deployed roles have all names, and the run has all calls.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mailroom_local.aws import STAGE, LocalSession, patient
from tests.support import ROOT
from tests.support.pipeline.rights import Grant, Request, grants_of, requests_of, requests_of_lambda
from tests.support.pipeline.shared import Pipeline

if TYPE_CHECKING:
    from types_boto3_iam import IAMClient

RECORDER = ROOT / "tests/support/pipeline/recorder"


@dataclass(frozen=True)
class Row:
    """Rights or requests, by patterns of function (without the stage's name), action and resource, and why
    they are exceptions."""

    function: str
    action: str
    resource: str
    why: str

    def covers(self, each: Grant | Request) -> bool:
        """Return whether a request is one of them."""
        function = each.function.removeprefix(f"mailroom-{STAGE}-")
        pairs = ((function, self.function), (each.action, self.action), (each.resource, self.resource))
        return all(fnmatchcase(name, pattern) for name, pattern in pairs)


_MISSING = "S3 checks it only if an object is missing. Without it S3 answers 403, as for a wrong policy"
UNUSED = (
    *(Row(function, "s3:ListBucket", "*-payloads-*", _MISSING) for function in ("send-*", "messages-api")),
    *(
        Row(
            function,
            "s3:ListBucket",
            "*-templates-*",
            _MISSING,
        )
        for function in ("send-*", "dispatch", "release", "collect", "messages-api")
    ),
    Row(
        "send-mail*",
        "ses:SendRawEmail",
        "*",
        "The call is `SendEmail`. SES does not document which action it checks for a mail with headers or "
        "attachments",
    ),
    *(
        Row(
            function,
            "secretsmanager:GetSecretValue",
            "*-??????",
            "A database's secret may be named with or without the six characters at its ARN's end",
        )
        for function in ("collect", "compose")
    ),
    Row(
        "release",
        "sqs:SendMessage",
        "*",
        "It queues messages of all channels in the same way; the tests use a few channels",
    ),
    Row(
        "compose",
        "sqs:SendMessage",
        "*-bulk",
        "If a run is started again, it queues messages whose items are in the mailbox",
    ),
    Row(
        "send-*",
        "dynamodb:BatchGetItem",
        "*-campaign-runs",
        "Senders of all lanes read runs in the same way; the tests use the mails of a bulk lane",
    ),
    Row(
        "dead-letters",
        "sqs:ChangeMessageVisibility",
        "*-dlq*",
        "It makes messages visible again in all dead-letter queues in the same way; the tests use a few",
    ),
    Row(
        "messages-api",
        "dynamodb:GetItem",
        "*-budgets",
        "It reads the rest of a caller's day only to refuse a request over the limit, which no test reaches",
    ),
)
"""Permissions that no test uses. docs/reference/rights.md has the same reasons."""
FORCED = (
    Row("dispatch", "sqs:SendMessage", "*-that-is-not-there", "a test names a queue that does not exist"),
    Row("send-mail", "ses:SendEmail", "*/mailroom-nowhere", "a test names a configuration set likewise"),
    Row(
        "outcomes", "events:PutEvents", "*", "a test gives it a bus, which this stage's settings do not name"
    ),
)
"""Requests that a role would refuse, because a test has changed the function's environment."""


def record_calls(pipeline: Pipeline, changes: Mapping[str, Mapping[str, str]]) -> None:
    """Have each function write down its calls, from its next process on. `changes` are other values in the
    environments of functions, which are named by their outputs."""
    folder = _folder(pipeline)
    folder.mkdir()
    recording = {"PYTHONPATH": str(RECORDER), "RECORDED_CALLS": str(folder)}
    changed = {pipeline.output(output): variables for output, variables in changes.items()}
    for name, _ in _functions(pipeline):
        variables = {**pipeline.variables(name), **recording, **changed.get(name, {})}
        pipeline.functions.update_function_configuration(
            FunctionName=name, Environment={"Variables": variables}
        )


def _folder(pipeline: Pipeline) -> Path:
    return pipeline.workspace.folder / "calls"


def _functions(pipeline: Pipeline) -> list[tuple[str, str]]:
    """The names of the functions and of their roles."""
    pages = pipeline.functions.get_paginator("list_functions").paginate()
    return [
        (each["FunctionName"], each["Role"].rpartition("/")[2])
        for page in pages
        for each in page["Functions"]
    ]


class Rights:
    """Return the calls of the functions of a stage until now, and their permissions."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._functions = _functions(pipeline)

    @cached_property
    def requests(self) -> set[Request]:
        """By the functions' code and by Lambda."""
        return {*self._of_code(), *self._of_lambda()}

    def _of_code(self) -> Iterator[Request]:
        for file in _folder(self._pipeline).iterdir():
            function = file.stem.rpartition("-")[0]
            for line in file.read_text().splitlines():
                yield from requests_of(function, *json.loads(line))

    def _of_lambda(self) -> Iterator[Request]:
        pages = self._pipeline.functions.get_paginator("list_event_source_mappings").paginate()
        mappings: list[Mapping[str, Any]] = [each for page in pages for each in page["EventSourceMappings"]]
        for name, _ in self._functions:
            own = [each for each in mappings if each["FunctionArn"].endswith(f":{name}")]
            yield from requests_of_lambda(name, own)

    @cached_property
    def grants(self) -> list[Grant]:
        """Of the deployed roles: CloudFormation has put names for references."""
        endpoint = self._pipeline.running.endpoints.aws
        iam: IAMClient = LocalSession().client("iam", endpoint_url=endpoint, config=patient())
        found: list[Grant] = []
        for function, role in self._functions:
            names = iam.list_role_policies(RoleName=role)["PolicyNames"]
            policies: Any = [
                iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names
            ]
            found += grants_of(function, policies)
        return found

    @cached_property
    def unused(self) -> list[Grant]:
        """The grants that no request needed."""
        return [each for each in self.grants if not any(map(each.allows, self.requests))]

    @cached_property
    def denied(self) -> list[Request]:
        """Requests that no grant allows."""
        return [each for each in self.requests if not any(grant.allows(each) for grant in self.grants)]
