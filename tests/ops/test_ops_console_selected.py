"""The console's pages of selected messages: what a set shows first, what it does, and what it leaves out."""

import csv
import html
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from mailroom_ops.console.pages.selected import SetJob
from tests.support.ops.console import Browser, Reply
from tests.support.ops.repair import RepairStage, repair_stage
from tests.support.ops.search import index
from tests.support.pipeline.items import mail_item

STAGE = repair_stage
LATER = "2099-01-01T00:00:00Z"


def checkbox_value(*ids: str, channel: str = "mail") -> str:
    """The value of the form's checkboxes."""
    return "\n".join(json.dumps([channel, id_]) for id_ in ids)


def look_at_selected(browser: Browser, act: str, ids: Sequence[str], **fields: str) -> tuple[str, Reply]:
    """The URL of a set, and its page after the dry run."""
    started = browser.post("/selected/act", {"act": act, "m": checkbox_value(*ids), **fields})
    assert started.status == 303, started.words
    url = started.headers["location"]
    finish(browser)
    return url, browser.get(url)


def finish(browser: Browser) -> None:
    for (kind, _), job in browser.site.jobs.items():
        if kind is SetJob:
            job.wait()


def do(browser: Browser, url: str, **fields: str) -> Reply:
    """The page after the act."""
    browser.post(url, {"step": "do", **fields})
    finish(browser)
    return browser.get(url)


def test_a_list_of_messages_in_the_console_has_a_checkbox_for_each_message(
    stage: RepairStage, browser: Browser
) -> None:
    stage.know('q"1', status="sent", completedAt=1, putAt=1, ttl=9_999_999_999, to="ada@example.com")
    index(stage.dynamodb)
    page = browser.get("/messages")
    (value,) = re.findall(r'name="m" value="([^"]*)"', page.text)
    assert json.loads(html.unescape(value)) == ["mail", 'q"1']


def test_selected_messages_are_sent_again_except_those_that_may_have_arrived(
    stage: RepairStage, browser: Browser
) -> None:
    stage.failed("a")
    stage.failed("b", error={"code": "outcome_unknown", "message": "x"})
    stage.know("c", status="sent", completedAt=1)
    stage.put(*map(mail_item, "abc"))
    url, page = look_at_selected(browser, "resend", "abc")
    assert "Send again: 1 of 3 messages. 2 are left out: the reasons are below." in page.words
    assert "it may arrive twice; open it to decide" in page.words
    assert stage.bodies("mail") == []
    assert "Send again: 1 of 3 messages done, 2 left out." in do(browser, url).words
    assert [each["id"] for each in stage.bodies("mail")] == ["a"]
    refused = browser.post(url, {"step": "do"})
    assert (refused.status, "started or stopped already" in refused.words) == (400, True)
    again = browser.post(url, {"step": "repeat"})
    finish(browser)
    assert "Send again: 1 of 3" in browser.get(again.headers["location"]).words  # queued, but not started


def test_selected_messages_that_wait_are_cancelled(stage: RepairStage, browser: Browser) -> None:
    stage.put(mail_item("a", send_at=LATER), mail_item("b"))
    stage.failed("b")
    url, page = look_at_selected(browser, "cancel", "ab")
    assert "Cancel: 1 of 2 messages." in page.words
    assert "the message is failed and does not wait" in page.words
    do(browser, url)
    assert stage.ledger("a")["status"] == "cancelled"
    _, again = look_at_selected(browser, "cancel", "ab")
    assert "1 was done before." in again.words


def test_a_correction_of_selected_messages_requires_changes_and_previews_its_first_message(
    stage: RepairStage, browser: Browser
) -> None:
    for id_ in "ab":
        stage.know(id_, status="sent", completedAt=1)
        stage.put(mail_item(id_, subject="Old prices", html=f"<p>{id_}</p>", text=f"{id_} at x.example"))
    asked = browser.post("/selected/act", {"act": "correct", "m": checkbox_value("a", "b")})
    assert "Each recipient of the 2 messages gets a new message" in asked.words
    assert "subject Old prices" in asked.words
    assert "email" not in asked.words
    url, page = look_at_selected(browser, "correct", "ab", name="new-link", changes="subject=New prices\n")
    assert "Correct: 2 of 2 messages." in page.words
    assert "New prices" in page.words
    (frame,) = re.findall(r'src="(/send/mail[^"]*)"', page.text)
    assert "<p>a</p>" in browser.get(html.unescape(frame)).text
    assert "Correct: 2 of 2 messages done." in do(browser, url).words
    assert stage.dynamodb.get_item(
        TableName="mailroom-dev-mailbox", Key={"id": {"S": "b~new-link"}, "event_type": {"S": "mail"}}
    )["Item"]["subject"] == {"S": "New prices"}


def test_a_change_of_over_a_hundred_selected_messages_requires_their_number_typed(
    stage: RepairStage, browser: Browser
) -> None:
    ids = [f"m-{number}" for number in range(102)]
    for id_ in ids:
        stage.failed(id_)
        stage.put(mail_item(id_))
    stage.know("m-0", status="sent", completedAt=1)
    url, page = look_at_selected(browser, "resend", ids)
    assert "type the number of messages: 101" in page.words
    for typed in ("", "102", "yes"):
        refused = browser.post(url, {"step": "do", "typed": typed})
        assert (refused.status, "Nothing was changed" in refused.words) == (400, True)
    assert "Send again: 101 of 102 messages done" in do(browser, url, typed="101").words


def test_a_stopped_change_of_selected_messages_leaves_the_others_unchanged_until_it_is_repeated(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom_ops.console.pages.selected.AT_ONCE", 1)
    for id_ in "abc":
        stage.failed(id_)
        stage.put(mail_item(id_))
    url, _ = look_at_selected(browser, "resend", "abc")
    (job,) = (each for each in browser.site.jobs.values() if isinstance(each, SetJob))
    send = job.act.send

    def then_stop(ready: Any) -> Any:
        browser.post(url, {"step": "stop"})
        return send(ready)

    monkeypatch.setattr(job.act, "send", then_stop)
    page = do(browser, url)
    assert "Send again: 1 of 3 messages done; stopped." in page.words
    assert len(stage.bodies("mail")) == 1
    again = browser.post(url, {"step": "repeat"})
    finish(browser)
    assert "done" in do(browser, again.headers["location"]).words
    assert {each["id"] for each in stage.bodies("mail")} == {"a", "b", "c"}


def test_an_unexpected_error_in_the_dry_run_for_selected_messages_is_shown_and_prevents_the_change(
    stage: RepairStage, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a reason of a newer version")

    raised: list[object] = []
    # The job would print the error at the terminal.
    monkeypatch.setattr("threading.excepthook", raised.append)
    monkeypatch.setattr("mailroom_ops.repair.again.SendAgain.evaluate", broken)
    url, page = look_at_selected(browser, "resend", "a")
    assert "It ended with an error of the console; see its terminal." in page.words
    assert len(raised) == 1
    assert browser.post(url, {"step": "do"}).status == 400


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"act": "resend", "m": ""}, "No message is selected."),
        ({"act": "resend", "m": "no"}, "The form is incomplete."),
        ({"act": "resend", "m": '["mail"]'}, "The form is incomplete."),
        ({"act": "resend", "m": '["mail", 1]'}, "The form is incomplete."),
        ({"act": "drop", "m": '["mail", "a"]'}, "The form is incomplete."),
        ({"act": "correct", "m": '["mail", "a"]', "name": "No Name"}, "cannot be the name of a correction"),
        ({"job": "gone"}, "This set is not in the console any more."),
    ],
)
def test_an_invalid_form_about_selected_messages_is_refused_with_its_reason(
    stage: RepairStage, browser: Browser, form: dict[str, str], words: str
) -> None:
    refused = browser.post("/selected/act", form)
    assert (refused.status, words in refused.words) == (400, True)


@pytest.fixture
def found_stage(stage: RepairStage) -> RepairStage:
    """Two messages to Ada and one to Bob, of two templates."""
    for id_, to, template in (
        ("a", "ada@example.com", "prices"),
        ("b", "ada@example.com", "other"),
        ("c", "+14155550100", "prices"),
    ):
        stage.know(
            id_,
            status="sent",
            completedAt=1,
            putAt=1_700_000_000_000,
            ttl=9_999_999_999,
            to=to,
            template=template,
        )
    index(stage.dynamodb)
    return stage


@pytest.mark.parametrize(
    ("pasted", "template", "ids"),
    [
        ("a\n\n b \n", "", {"a", "b"}),
        ("ada@example.com", "", {"a", "b"}),
        ("ada@example.com\n+1 415 555 0100", "prices", {"a", "c"}),
        ('"to","event_type","id"\n"ada@example.com","mail","b"', "", {"b"}),
        ("a\nnobody@example.com\nunknown", "", {"a"}),
    ],
)
def test_a_pasted_list_finds_messages_by_ids_addresses_and_the_rows_of_a_csv_file(
    found_stage: RepairStage, browser: Browser, pasted: str, template: str, ids: set[str]
) -> None:
    page = browser.post("/selected", {"list": pasted, "template": template})
    values = re.findall(r'name="m" value="([^"]*)" [^>]*checked', page.text)
    assert {json.loads(html.unescape(value))[1] for value in values} == ids


def test_selected_messages_are_downloaded_with_full_addresses(
    found_stage: RepairStage, browser: Browser
) -> None:
    reply = browser.post("/selected/act", {"act": "csv", "m": checkbox_value("c", "a")})
    assert [row["to"] for row in csv.DictReader(reply.text.removeprefix("\ufeff").splitlines())] == [
        "'+14155550100",
        "ada@example.com",
    ]
    pasted = browser.post("/selected", {"list": reply.text.removeprefix("\ufeff")})
    assert pasted.words.count("ada@example.com") == 1


def test_a_pasted_csv_file_finds_each_of_its_ids_and_a_period_filters_pasted_ids(
    stage: RepairStage, browser: Browser
) -> None:
    ids = ["=1", "'a", " b", "c\nd", 'e"f', "g"]
    for id_ in ids:
        times: dict[str, Any] = {"completedAt": 1, "putAt": 1_700_000_000_000, "ttl": 9_999_999_999}
        stage.know(id_, status="sent", to="x@y.example", **times)
    text = browser.post("/selected/act", {"act": "csv", "m": checkbox_value(*ids)}).text.removeprefix(
        "\ufeff"
    )
    page = browser.post("/selected", {"list": text.replace("\r\n", "\n")})
    values = re.findall(r'name="m" value="([^"]*)"', page.text)
    assert [json.loads(html.unescape(value))[1] for value in values] == ids
    days = {"since": "2023-11-14", "until": "2023-11-14"}
    assert "1 message." in browser.post("/selected", {"list": "g", **days}).words
    days = {"since": "2023-11-13", "until": "2023-11-13"}
    assert "0 messages; 1 entry has none." in browser.post("/selected", {"list": "g", **days}).words


def test_a_pasted_list_shows_its_entries_without_a_message_and_is_refused_if_it_is_too_long(
    found_stage: RepairStage, browser: Browser
) -> None:
    page = browser.post("/selected", {"list": "a\nunknown\nnobody@example.com"})
    assert "1 message; 2 entries have none." in page.words
    assert "unknown nobody@example.com" in page.words
    refused = browser.post("/selected", {"list": "a\n" * 1_001})
    assert (refused.status, "at most 1,000 lines" in refused.words) == (400, True)
