"""Templates on the stage: an edit of a file counts at once, and a message keeps its published version."""

import time
from pathlib import Path

import psycopg
import pytest

from mailroom.content.templates import FRESH_SECONDS
from mailroom_local.stage import lifecycle
from mailroom_ops.templates.published import Published
from mailroom_stacks.templates.folder import TemplateName
from tests.support import ROOT
from tests.support.ops.shared import Recorded
from tests.support.pipeline.items import mail_item
from tests.support.pipeline.shared import Pipeline

LETTER = TemplateName("mail", "letter")


@pytest.fixture
def published(pipeline: Pipeline) -> Published:
    return Published(pipeline.s3, pipeline.output("TemplatesBucketName"), Recorded("arn:ci"), time.time)


def parts(text: str) -> dict[str, str]:
    return {"letter/subject.txt": "A letter", "letter/body.txt": text}


def test_a_mail_uses_the_published_version_of_its_template_which_the_ledger_and_the_callback_name(
    pipeline: Pipeline,
) -> None:
    pipeline.put(
        mail_item("published", template="letter", callback_url=pipeline.receiver("ok/callbacks/published"))
    )
    assert pipeline.one_mail("published")["content"]["text"] == "Dear Ada, version one"
    pipeline.until_ended("published")
    assert pipeline.ledger("published")["template_version"] == 1
    payload = pipeline.until_told("published")[0]
    assert (payload["template"], payload["template_version"]) == ("letter", 1)


def test_the_local_stage_lists_the_templates_whose_published_version_overrides_the_file(
    pipeline: Pipeline,
) -> None:
    assert {"mail/letter", "sms/letter"} <= {*lifecycle.published(pipeline.running)}


def test_the_database_url_in_the_local_stages_environment_file_opens_its_database(pipeline: Pipeline) -> None:
    exports = pipeline.workspace.environment.read_text().splitlines()
    (url,) = (line.partition("=")[2] for line in exports if "MAILROOM_DATABASE" in line)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM users").fetchone() != (0,)


def test_bulk_mails_and_sms_use_the_published_version_of_their_template(pipeline: Pipeline) -> None:
    pipeline.put(
        mail_item("published-bulk", template="letter", lane="bulk"),
        {
            "id": "published-text",
            "event_type": "sms",
            "to": "+12025550143",
            "template": "letter",
            "first_name": "Ada",
        },
    )
    assert pipeline.one_mail("published-bulk")["content"]["text"] == "Dear Ada, version one"
    pipeline.until_ended("published-text", event_type="sms")
    assert pipeline.ledger("published-text", "sms")["template_version"] == 1


def test_a_message_gets_the_template_version_that_it_names_and_fails_if_that_does_not_exist(
    pipeline: Pipeline, published: Published
) -> None:
    version, _ = published.put(LETTER, parts("Dear {{ first_name }}, version two"), {}, {})
    published.roll_back(LETTER)
    pipeline.put(mail_item("names-a-version", template="letter", template_version=version.number))
    assert pipeline.one_mail("names-a-version")["content"]["text"] == "Dear Ada, version two"
    assert pipeline.failure(
        _put(pipeline, mail_item("names-no-version", template="letter", template_version=99))
    ) == ("template_version: 'letter' has no version 99; leave it out")


def _put(pipeline: Pipeline, item: dict[str, object]) -> str:
    pipeline.put(item)
    return str(item["id"])


def test_the_function_send_mail_uses_an_edited_template_file_within_a_second_without_a_restart(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    folder = tmp_path / "mail" / "note"
    folder.mkdir(parents=True)
    (folder / "subject.txt").write_text("A note")
    (folder / "body.txt").write_text("before")
    sender = pipeline.output("SendMailFunctionName")
    assert pipeline.variables(sender)["TEMPLATES"] == str(ROOT / "templates" / "mail")
    with pipeline.configured(sender, TEMPLATES=str(tmp_path / "mail")):
        pipeline.put(mail_item("edit-1", template="note", template_version=0))
        assert pipeline.one_mail("edit-1")["content"]["text"] == "before"
        (folder / "body.txt").write_text("after")
        time.sleep(FRESH_SECONDS)  # the function looks for changed files once a second
        pipeline.put(mail_item("edit-2", template="note", template_version=0))
        assert pipeline.one_mail("edit-2")["content"]["text"] == "after"
