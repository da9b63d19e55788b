"""The handlers of collect and compose, as their processes load them, over a CSV file in S3."""

import json
from pathlib import Path
from typing import Any

import pytest

from mailroom.campaigns.composer import Composer
from mailroom.campaigns.runs import Run, Runs
from mailroom.recipients.choices import Preferences
from tests.support.campaign_start import of_run
from tests.support.unit.events import failures, lambda_context, plenty, sqs_event
from tests.support.unit.functions import Load
from tests.support.unit.post import Counted, Visibilities
from tests.support.unit.publishing import choose
from tests.support.unit.shared import BUCKET, LEDGER, MAILBOX, PREFERENCES, RUNS, TEMPLATES, Aws, FakeClock

AT = "2026-11-18T13:00:00Z"
RUN = "2026-11-18T13:00Z"
START = json.dumps({"campaign": "weekly", "scheduled_at": AT})
CSV = "id,email,first_name\n1,ada@example.com,Ada\n2,eve@example.com,Eve\n3,,Bob\n4,dan@example.com,Dan\n"
MODULE = """
def compose(recipients):
    return {each.key: {"greeting": f"Hello {each.attributes['first_name']}"} for each in recipients}
"""


@pytest.fixture
def weekly_campaign(aws: Aws, load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Load:
    """A bundle with one campaign, which has a module, and its audience in S3."""
    definition = {
        "name": "weekly",
        "channel": "mail",
        "topic": "news",
        "attributes": {"template": "default"},
        "page_size": 2,
        "module": "campaigns/weekly/campaign.py",
        "audience": {
            "kind": "file",
            "location": f"s3://{BUCKET}/people.csv",
            "key": "id",
            "columns": ["email"],
        },
    }
    (tmp_path / "campaigns" / "weekly").mkdir(parents=True)
    (tmp_path / "campaigns" / "weekly" / "campaign.py").write_text(MODULE)
    (tmp_path / "campaigns.json").write_text(json.dumps({"weekly": definition}))
    monkeypatch.chdir(tmp_path)
    aws.s3.put_object(Bucket=BUCKET, Key="people.csv", Body=CSV.encode())
    monkeypatch.setenv("PREFERENCES_TABLE", PREFERENCES)
    monkeypatch.setenv("AUDIENCE_QUEUE_URL", aws.urls["audience"])
    monkeypatch.setenv("QUEUES", json.dumps({"mail": aws.urls["mail-bulk"]}))
    return load


def collected(aws: Aws, campaign: Load, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect the whole audience; the bodies that compose gets."""
    monkeypatch.setenv("QUEUE_URL", aws.urls["collect"])
    handler = campaign("collect")
    bodies = [START]
    for body in bodies:
        assert failures(handler(sqs_event(body), lambda_context())) == []
        bodies += [each["Body"] for each in aws.receive("collect")]
    assert len(bodies) == 2
    return [each["Body"] for each in aws.receive("audience")]


def run_in_table(aws: Aws) -> Run:
    run = Runs(aws.dynamodb, RUNS).read("weekly", RUN)
    assert run is not None
    return run


def id_of_person(aws: Aws, key: str) -> str:
    return run_in_table(aws).id_of(key)


def test_collect_and_compose_put_the_messages_of_a_campaign_from_a_file_into_the_mailbox(
    aws: Aws, clock: FakeClock, weekly_campaign: Load, monkeypatch: pytest.MonkeyPatch, log: Any
) -> None:
    Preferences(aws.dynamodb, PREFERENCES, clock).opt_out("eve@example.com", "news", "page")
    bodies = collected(aws, weekly_campaign, monkeypatch)
    monkeypatch.setenv("QUEUE_URL", aws.urls["audience"])
    assert failures(weekly_campaign("compose")(sqs_event(*bodies), lambda_context())) == []
    found = aws.item(id_of_person(aws, "1"), "mail", MAILBOX)
    assert found == {
        **of_run(run_in_table(aws), "1"),
        "event_type": "mail",
        "lane": "bulk",
        "topic": "news",
        "template": "default",
        "email": "ada@example.com",
        "first_name": "Ada",
        "greeting": "Hello Ada",
    }
    assert aws.item(id_of_person(aws, "4"), "mail", MAILBOX)["greeting"] == "Hello Dan"
    assert aws.item(id_of_person(aws, "2"), "mail", MAILBOX) == {}
    assert aws.item(id_of_person(aws, "2"), "mail", LEDGER)["error"]["code"] == "opted_out"
    assert "example.com" not in str(log())
    (run,) = aws.dynamodb.scan(TableName=RUNS)["Items"]
    assert (run["composed"]["N"], run["opted_out"]["N"], run["refused"]["N"]) == ("2", "1", "1")
    assert run["faults"]["L"][0]["S"].startswith("line 4, column email")


def test_a_queue_message_without_a_chunk_of_people_is_counted_and_becomes_a_dead_letter_at_once(
    aws: Aws, counted: Counted
) -> None:
    unused: Any = None
    sqs: Any = Visibilities(aws.sqs)
    composer = Composer(
        {}, unused, mailbox=unused, ledger=unused, runs=unused, sqs=sqs, queue_url="", queues={}
    )
    assert failures(composer.handle(sqs_event("no JSON"), plenty)) == ["r-0"]
    assert (sqs.waits, counted()) == ({"r-0": 0}, {"ComposeMalformed": 1})


def test_a_dry_run_of_collect_and_compose_writes_no_item(
    aws: Aws, weekly_campaign: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUEUE_URL", aws.urls["collect"])
    asked = {"campaign": "weekly", "run": RUN, "scheduled_at": AT}
    page = weekly_campaign("collect")({"dry_run": {**asked, "samples": 1}}, lambda_context())
    assert (page["recipients"], page["refused"]) == (2, 0)
    assert page["samples"][0]["key"] == "1"
    assert page["samples"][0]["attributes"]["email"] == "ada@example.com"
    answer = weekly_campaign("compose")(
        {"dry_run": {**asked, "recipients": page["samples"]}}, lambda_context()
    )
    assert answer["items"][0]["greeting"] == "Hello Ada"
    json.dumps([page, answer])  # Lambda answers JSON
    for table in (MAILBOX, LEDGER, RUNS):
        assert aws.dynamodb.scan(TableName=table)["Items"] == []
    assert aws.receive("audience") == []


@pytest.mark.parametrize("version", [7, 0], ids=["a published version", "the deployed template"])
def test_the_messages_of_a_run_have_the_template_version_that_was_current_when_the_run_began(
    aws: Aws, weekly_campaign: Load, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setenv("TEMPLATES_BUCKET", TEMPLATES)
    if version:
        choose(aws, default=version)
    bodies = collected(aws, weekly_campaign, monkeypatch)
    choose(aws, default=8)
    monkeypatch.setenv("QUEUE_URL", aws.urls["audience"])
    assert failures(weekly_campaign("compose")(sqs_event(*bodies), lambda_context())) == []
    assert aws.item(id_of_person(aws, "1"), "mail", MAILBOX)["template_version"] == version
