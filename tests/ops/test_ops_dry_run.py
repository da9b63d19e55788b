"""A dry run counts the whole audience and shows three messages. It sends none."""

import json
from functools import partial
from typing import Any

import pytest

from tests.support.ops.campaign import RUN, CampaignStage, run

PAGES = 4
Question = dict[str, Any]


@pytest.fixture(autouse=True)
def functions_answer(world: CampaignStage) -> None:
    world.functions.answers = {"collect": collect, "compose": compose}


def collect(question: Question) -> dict[str, Any]:
    """Pages of 1,000, with two bad entries each; the first has two people to show."""
    page = question["cursor"] or 1
    people = [{"key": f"u-{page}-{at}", "attributes": {"first_name": f"N{at}"}} for at in range(2)]
    return {
        "recipients": 1_000,
        "cursor": page + 1 if page < PAGES else None,
        "refused": 12,
        "faults": [f"line {page}{at:02}: is empty" for at in range(12)],
        "samples": people[: question["samples"]],
    }


def compose(question: Question) -> dict[str, Any]:
    """A mail for each, as it would be put."""
    items = [
        weekly_item(each["key"], first_name=each["attributes"]["first_name"])
        for each in question["recipients"]
    ]
    return {"items": items, "opted_out": [], "left_out": []}


def weekly_item(key: str, **attributes: Any) -> dict[str, Any]:
    about = {"lane": "bulk", "topic": "followers", "template": "weekly", "email": f"{key}@example.com"}
    return {"id": f"weekly#{RUN}#{key}", "event_type": "mail", **about, **attributes}


run_dry = partial(run, "campaign", "start", "weekly", "--dry-run")


def test_a_dry_run_of_a_campaign_counts_its_whole_audience_and_shows_three_messages(
    world: CampaignStage,
) -> None:
    result = run_dry()
    assert result.exit_code == 0, result.output
    assert "4,000 recipients on 4 pages; 48 entries are faulty." in result.stdout
    assert result.stdout.count("Subject: News for N") == 3
    assert "To: u-1-0@example.com" in result.stdout
    assert f"weekly#{RUN}#u-2-0" in result.stdout
    assert "Enough? https://example.com/unsubscribe/made-up" in result.stdout
    assert "Nothing was written or sent." in result.stdout
    assert ("?" in result.stderr, world.started(), world.runs.read("weekly", RUN)) == (False, [], None)


def test_a_dry_run_lists_the_days_of_sending_if_the_channel_has_a_daily_limit(world: CampaignStage) -> None:
    world.limited(2_000, sent=300)
    found = json.loads(run_dry("--json").stdout)["days"]
    assert [(each["begins"][:16], each["messages"], each["left_for_codes"]) for each in found] == [
        ("2026-11-21T14:00", 1_500, 200),
        ("2026-11-22T15:15", 1_800, 200),
        ("2026-11-23T16:15", 700, 200),
    ]
    shown = run_dry().stdout
    assert "the messages are sent on several days" in shown
    assert "1,500" in shown


def test_a_dry_run_requests_only_as_many_recipients_as_it_shows(world: CampaignStage) -> None:
    run_dry()
    asked = [question["samples"] for short, question in world.functions.asked if short == "collect"]
    assert asked == [3, 1, 0, 0]
    (composed,) = [question for short, question in world.functions.asked if short == "compose"]
    assert len(composed["recipients"]) == 3


def test_a_dry_run_invokes_the_functions_with_the_campaign_run_and_time_of_a_real_run(
    world: CampaignStage,
) -> None:
    run_dry("--run", "2026-11-18T13:00Z")
    about = {"campaign": "weekly", "run": "2026-11-18T13:00Z", "scheduled_at": "2026-11-18T13:00:00Z"}
    assert all(about.items() <= question.items() for _, question in world.functions.asked)
    assert [question.get("cursor") for _, question in world.functions.asked] == [None, 2, 3, 4, None]


def test_the_json_of_a_dry_run_is_one_object_with_its_counts_and_samples(world: CampaignStage) -> None:
    found = json.loads(run_dry("--json").stdout)
    assert (found["campaign"], found["run"], found["recipients"], found["pages"]) == ("weekly", RUN, 4_000, 4)
    assert (found["refused"], len(found["faults"])) == (48, 20)
    assert found["samples"][0] == {
        "id": f"weekly#{RUN}#u-1-0",
        "to": "u-1-0@example.com",
        "subject": "News for N0",
        "text": "Hello N0. Enough? https://example.com/unsubscribe/made-up",
        "html": "",
        "problem": "",
    }


def test_a_dry_run_exits_with_1_if_every_entry_of_the_audience_is_faulty(world: CampaignStage) -> None:
    page = {"recipients": 0, "refused": 1, "faults": ["line 1: is empty"], "samples": [], "cursor": None}
    world.functions.answers["collect"] = lambda _: page
    result = run_dry()
    assert result.exit_code == 1
    assert "0 recipients on 1 page; 1 entry is faulty." in result.stdout


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"email": "nobody"}, "email: 'nobody' is not a mail address"),
        ({}, "first_name: is missing; weekly/subject.txt:1 uses it"),
        ({"first_name": "A", "template": "none"}, "template: 'none' is unknown; use one of: weekly"),
    ],
    ids=["address", "variable", "template"],
)
def test_a_dry_run_shows_why_a_message_would_fail_and_exits_with_1(
    world: CampaignStage, bad: dict[str, Any], problem: str
) -> None:
    answer = {"items": [weekly_item("u-1", **bad)], "opted_out": [], "left_out": []}
    world.functions.answers["compose"] = lambda _: answer
    result = run_dry()
    assert result.exit_code == 1
    assert f"Would fail: {problem}" in result.stdout


def test_a_dry_run_lists_the_keys_of_opted_out_and_left_out_recipients(world: CampaignStage) -> None:
    answer = {"items": [], "opted_out": ["u-1"], "left_out": ["u-2", "u-3"]}
    world.functions.answers["compose"] = lambda _: answer
    result = run_dry()
    assert result.exit_code == 0
    assert "Of the first 3 recipients, opted out: u-1" in result.stdout
    assert "Of the first 3 recipients, left out by the campaign: u-2, u-3" in result.stdout


def test_a_dry_run_with_an_empty_audience_does_not_invoke_the_function_compose(world: CampaignStage) -> None:
    nobody: dict[str, Any] = {"recipients": 0, "cursor": None, "refused": 0, "faults": [], "samples": []}
    world.functions.answers["collect"] = lambda _: nobody
    result = run_dry()
    assert result.exit_code == 0
    assert "0 recipients on 1 page;" in result.stdout
    assert [short for short, _ in world.functions.asked] == ["collect"]


def test_an_audience_with_the_same_cursor_on_two_pages_is_refused(world: CampaignStage) -> None:
    page = {"recipients": 1, "cursor": 7, "refused": 0, "faults": [], "samples": []}
    world.functions.answers["collect"] = lambda _: page
    result = run_dry()
    assert result.exit_code == 2
    assert "Pages 2 and 3 of the audience have the same cursor, so its order is not stable." in result.stderr


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (
            "Invalid",
            "audience.columns: the audience has no column 'email'",
            "audience.columns: the audience has",
        ),
        ("OperationalError", "the database is gone", "OperationalError: the database is gone"),
        ("Runtime.HandlerError", "location: s3://a/b does not exist", "location: s3://a/b does not exist"),
        (
            "ResourceNotFoundException",
            "An error occurred (ResourceNotFoundException) when calling the Scan operation: no such table",
            "AWS refused Scan (ResourceNotFoundException): no such table",
        ),
    ],
)
def test_a_dry_run_prints_an_error_of_the_function_collect_as_a_sentence_with_the_next_step(
    world: CampaignStage, kind: str, text: str, sentence: str
) -> None:
    world.functions.error = "Unhandled"
    world.functions.answers["collect"] = lambda _: {"errorType": kind, "errorMessage": text}
    error = " ".join(run_dry().stderr.split())
    assert f"mailroom-dev-collect failed: {sentence}" in error
    assert "Correct the campaign or its permissions; see aws logs tail /aws/lambda/mailroom-dev-coll" in error


def test_a_dry_run_exits_with_2_if_a_function_is_missing_and_names_the_stage_to_deploy(
    world: CampaignStage,
) -> None:
    world.functions.answers.clear()
    result = run_dry()
    assert result.exit_code == 2
    assert "There is no function mailroom-dev-collect in this account and region. Deploy dev" in result.stderr
