"""Lists at 80 columns: lines fit, and names, ids and addresses are whole, so that they can be copied."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from mailroom_ops import cli
from mailroom_ops.shared.deeds import Deeds
from mailroom_ops.templates.published import Published
from mailroom_stacks.templates.folder import TemplateName
from tests.support.ops.campaign import CDK, NOW, RUN, TOML
from tests.support.ops.run_app import run_app
from tests.support.ops.search import index
from tests.support.ops.shared import ACCOUNT, REGION, Recorded, failure
from tests.support.ops.whole import MS, WholeStage, whole_stage

ADDRESS = "augusta.ada.king@lovelace.example"
ID = f"{'bounced':->36}"
"""Id of a message, as long as a UUID."""
CAMPAIGN = "the-longest-name-of-any-campaign"
TEMPLATE = "reminder-of-the-annual-assembly"
OPERATOR = "arn:aws:sts::123456789012:assumed-role/customer-support/augusta.ada@lovelace.example"
BUCKET = f"mailroom-dev-templates-{ACCOUNT}-{REGION}"
LISTS = {
    "messages list": ID,
    f"messages list {ADDRESS}": ID,
    "messages list --status failure --since 2001-01-01": ID,
    "messages list --reasons --since 2001-01-01": ID,
    "activity --since 2001-01-01": CAMPAIGN,
    "campaign list": CAMPAIGN,
    "lane list": CAMPAIGN,
    "people list": ID,
    "messages dead-letters": "unclaimed",
    "template list": TEMPLATE,
}
"""Long word in the output of each list."""


@pytest.fixture
def long_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeStage]:
    """A stage in which everything has a long name."""
    with whole_stage(tmp_path, monkeypatch) as (stage, _):
        monkeypatch.setattr("mailroom_ops.templates.template.TEMPLATES", tmp_path / "templates")
        fill(stage)
        yield stage


def fill(stage: WholeStage) -> None:
    """Let each list have long rows."""
    fill_messages(stage)
    suppression = {"reason": "complaint", "at": 1, "detail": "reported as abuse", "message_id": ID}
    stage._item("suppressions", recipient=ADDRESS, channel="mail", **suppression)
    deeds = Deeds(stage.session, "dev", lambda: NOW)
    deeds.by = lambda: OPERATOR
    deeds.record(f"stop run {RUN}", [f"campaign#{CAMPAIGN}"], "their link is wrong")
    assert run_list("lane pause mail bulk --why", f"the link of {CAMPAIGN} is wrong").exit_code == 0
    settings = json.loads(json.dumps(CDK))
    settings["context"]["mailroom"]["dev"]["campaigns"]["enabled"] = [CAMPAIGN]
    stage.world.write("cdk.json", json.dumps(settings))
    text = TOML.replace("Europe/Berlin", "America/Argentina/Salta")
    stage.world.write(f"campaigns/{CAMPAIGN}/campaign.toml", text)
    stage.world.runs.begin(CAMPAIGN, RUN, "start", "2026-11-21T13:59:00Z")
    s3 = stage.session.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    stage.variables["mailroom-dev-messages-api"]["TEMPLATES_BUCKET"] = BUCKET
    parts = {f"{TEMPLATE}/subject.txt": "Hello", f"{TEMPLATE}/body.txt": "Hello"}
    published = Published(s3, BUCKET, Recorded(OPERATOR), lambda: NOW)
    published.put(TemplateName("mail", TEMPLATE), parts, {"ada": {}}, {})


def fill_messages(stage: WholeStage) -> None:
    """Let the stage have messages with the longest statuses, and dead letters with several causes."""
    subject = "A subject of many words, which is longer than the column"
    sent: dict[str, Any] = {"to": ADDRESS, "putAt": MS, "ttl": 1 << 33, "attempts": 1, "subject": subject}
    error = {"code": "destination_unreachable", "message": "550 5.1.1 the mailbox does not exist"}
    for status in ("bounced", "complained", "undelivered"):
        id_ = f"{status:->36}"
        ended: dict[str, Any] = {"completedAt": MS, "error": error, **failure(id_, "mail", status, MS)}
        stage.know(id_, **sent, template=TEMPLATE, status=status, **ended)
    wait: dict[str, Any] = {"wait": {"version": "v", "reason": "run_unknown"}, "waits_in": "line#mail#0"}
    due: dict[str, Any] = {"scheduledFor": "2026-11-21T14:05:00Z", "waits_at": int(NOW)}
    stage.know(f"{'waits':->36}", **sent, status="scheduled", **wait, **due)
    for id_ in (ID, "unclaimed"):
        body = json.dumps({"id": id_, "event_type": "mail"})
        stage.sqs.send_message(QueueUrl=stage.urls["mail-dlq"], MessageBody=body)
    stage.sqs.send_message(QueueUrl=stage.urls["mail-dlq"], MessageBody="malformed")
    index(stage.dynamodb)


def run_list(command: str, *arguments: str, columns: int = 80) -> Result:
    return run_app(cli.app, *command.split(), *arguments, "--stage", "dev", columns=columns)


def words_of(command: str, columns: int) -> tuple[list[str], set[str]]:
    """Return the lines of a list at a width, and their words."""
    result = run_list(command, columns=columns)
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    words = {word for word in result.stdout.split() if word.strip("─")}
    return result.stdout.splitlines(), words


@pytest.mark.usefixtures("long_names")
@pytest.mark.parametrize("command", LISTS)
def test_the_output_of_each_command_that_lists_fits_80_columns_and_keeps_every_word_whole(
    command: str,
) -> None:
    lines, words = words_of(command, 80)
    assert [line for line in lines if len(line) > 80] == []
    assert words_of(command, 300)[1] - words == set()
    assert any(LISTS[command] in word for word in words)
