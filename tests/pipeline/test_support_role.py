"""The role of docs/how-to/support-team.md: a support team's calls, asked of IAM as the functions' are."""

import json
import re
import time
from typing import Any
from urllib.parse import quote

import boto3
import pytest
from botocore.client import BaseClient

from mailroom.aws.dynamo_values import image_of
from mailroom.campaigns.runs import Runs
from mailroom.clock import iso
from mailroom_local.aws import ACCOUNT, REGION, STAGE
from tests.support import ROOT
from tests.support.ops.console import Browser
from tests.support.pipeline.campaign import CAMPAIGN, operator
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.recorder.called import names_of
from tests.support.pipeline.rights import Grant, Request, grants_of, requests_of
from tests.support.pipeline.shared import Pipeline

WHO = "support@example.com"
COMMANDS = (
    ("messages", "list", WHO),
    ("messages", "list"),
    ("messages", "show", "for-support"),
    ("messages", "show", "in-line"),
    ("messages", "list", "--status", "failure", "--since", "1h"),
    ("messages", "list", "--reasons", "--since", "1h"),
    ("people", "show", WHO),
    ("activity",),
    ("campaign", "list"),
    ("campaign", "status", CAMPAIGN),
)
PAGES = (
    "/",
    "/lanes",
    "/messages",
    f"/messages?q={quote(WHO)}",
    "/message?id=for-support",
    "/message?id=for-support&channel=mail",
    "/failures",
    f"/people?recipient={quote(WHO)}",
    "/campaigns",
    f"/campaigns?campaign={CAMPAIGN}",
    "/dead-letters",
)


@pytest.fixture
def iam_requests(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> set[Request]:
    """Return the requests to IAM for the commands and the console's pages."""
    pipeline.put(mail_item("for-support", email=WHO))
    # Of a shard that release does not have, so that it stays in the line.
    waits = {"status": "scheduled", "putAt": 1, "waits_in": "line#mail#none"}
    mark = {"wait": {"version": "v", "reason": "day_used_up"}, "waits_at": 1, "ttl": 9_999_999_999}
    mark |= {"scheduledFor": iso(time.time()), "updatedAt": iso(time.time())}
    item = image_of({"id": "in-line", "event_type": "mail", **waits, **mark})
    pipeline.dynamodb.put_item(TableName=f"mailroom-{STAGE}-ledger", Item=item)
    runs = Runs(pipeline.dynamodb, pipeline.output("RunsTableName"))
    runs.begin(CAMPAIGN, "for-support", "start", iso(time.time()))
    pipeline.until_ended("for-support")
    calls: list[tuple[str, str, dict[str, Any]]] = []
    client: Any = BaseClient
    emit = client._emit_api_params

    def recorded(self: Any, api_params: Any, operation_model: Any, context: Any) -> Any:
        calls.append((operation_model.service_model.service_name, operation_model.name, names_of(api_params)))
        return emit(self, api_params, operation_model, context)

    monkeypatch.setattr(BaseClient, "_emit_api_params", recorded)
    for words in COMMANDS:
        done = operator(pipeline, *words, "--stage", STAGE)
        assert done.exit_code in (0, 1), done.stderr  # 1: there is something to tell
    for name, value in pipeline.running.variables().items():
        monkeypatch.setenv(name, value)
    browser = Browser(boto3.Session(), STAGE).enter()
    for path in PAGES:
        page = browser.get(path)
        assert page.status == 200
        assert "AWS refused" not in page.text
    return {request for call in calls for request in requests_of("support", *call)}


def granted() -> list[Grant]:
    """By the policy of the page, its placeholders filled in."""
    text = (ROOT / "docs/reference/support.policy.json").read_text()
    for word, value in (("STAGE", STAGE), ("REGION", REGION), ("ACCOUNT", ACCOUNT)):
        text = re.sub(rf"\b{word}\b", value, text)
    policy: Any = json.loads(text)
    return [*grants_of("support", [policy])]


def test_the_policy_of_a_support_team_grants_exactly_what_its_commands_and_console_pages_use(
    iam_requests: set[Request],
) -> None:
    grants = granted()
    denied = sorted(str(each) for each in iam_requests if not any(grant.allows(each) for grant in grants))
    assert not denied, "\n".join(["Put these into docs/reference/support.policy.json:", *denied])
    unused = sorted(str(each) for each in grants if not any(map(each.allows, iam_requests)))
    assert not unused, "\n".join(["Take these from docs/reference/support.policy.json:", *unused])
