"""The console's page of a person: what keeps messages from them, what they got, and all of it erased."""

import json
import re
import time
from urllib.parse import unquote

import pytest

from mailroom.clock import epoch
from mailroom_ops.console.pages.erasing import EraseJob
from mailroom_ops.people.erase import GOES
from tests.support.ops.campaign import run
from tests.support.ops.console import Browser
from tests.support.ops.dead_letters import DeadLettersStage, erasable
from tests.support.ops.search import index

STAGE = erasable
ADA = "ada@example.com"
ME = "arn:aws:sts::123456789012:user/moto"


@pytest.fixture
def people_browser(stage: DeadLettersStage) -> Browser:
    return Browser(stage).enter()


def bounced(stage: DeadLettersStage) -> None:
    """Put a mail to Ada that bounced, so that she gets no further mail."""
    known = {"to": ADA, "subject": "Your invoice", "putAt": int(time.time() * 1000), "ttl": 9_999_999_999}
    over = {"completedAt": 2, "updatedAt": "2026-11-21T09:00:00.000Z", "attempts": 1}
    stage.put("ledger", id="m-1", event_type="mail", status="bounced", **known, **over)
    stage.put("suppressions", recipient=ADA, channel="mail", reason="bounce", at=1, message_id="m-1")
    index(stage.dynamodb)


def test_the_page_of_a_person_shows_suppressions_opt_outs_and_messages(
    stage: DeadLettersStage, people_browser: Browser
) -> None:
    bounced(stage)
    stage.put("preferences", recipient=ADA, topic="news", opted_out_at=1, by="page")
    page = people_browser.get("/people", recipient=" Ada <ADA@example.com> ")
    for said in (
        "mail Off since",
        "a message to it bounced permanently",
        "By message m-1",
        "news Opted out since",
    ):
        assert said in page.words
    assert "mail ada@example.com Your invoice m-1 bounced" in page.words


def test_a_number_in_national_format_names_the_same_person_on_the_page_and_in_commands(
    stage: DeadLettersStage, people_browser: Browser
) -> None:
    number, typed = "+16175551234", "(617) 555-1234"
    known = {"to": number, "putAt": int(time.time() * 1000), "ttl": 9_999_999_999, "completedAt": 2}
    stage.put("ledger", id="s-1", event_type="sms", status="delivered", attempts=1, **known)
    index(stage.dynamodb)
    plan = people_browser.get("/people/change", do="suppress", recipient=typed, channel="sms", why="by phone")
    people_browser.post("/people/change", plan.hidden())
    assert run("people", "stop", typed, "--topic", "news").exit_code == 0
    page = people_browser.get("/people", recipient=typed).words
    for sentence in ("sms Off since", "news Opted out since", "sms +16175551234 s-1 delivered"):
        assert sentence in page
    survey = json.loads(run("people", "erase", typed, "--dry-run", "--json").stdout)
    places = {place["place"]: place["found"] for place in survey["places"]}
    assert (places["ledger"], places["suppressions"], places["preferences"]) == (1, 1, 1)
    assert run("people", "allow", typed, "--channel", "sms", "--yes").exit_code == 0
    assert run("people", "allow", typed, "--topic", "news", "--yes").exit_code == 0


@pytest.mark.parametrize(("who", "channels"), [(ADA, ["mail"]), ("+16175551234", ["sms", "push"])])
def test_the_page_of_a_person_has_a_switch_for_each_channel_that_can_reach_the_recipient(
    people_browser: Browser, who: str, channels: list[str]
) -> None:
    page = people_browser.get("/people", recipient=who)
    assert re.findall('id="switch-(mail|sms|push)"', page.text) == channels


def test_an_operator_lifts_a_suppression_with_a_reason_after_the_console_has_shown_the_consequences(
    stage: DeadLettersStage, people_browser: Browser
) -> None:
    bounced(stage)
    stage.ses.listed.add(ADA)
    plan = people_browser.get("/people/change", do="lift", recipient=ADA, channel="mail", why="new mailbox")
    assert "ada@example.com gets mail of this stage again, until" in plan.words
    assert "the mail provider's own suppression list too" in plan.words
    assert stage.ses.listed == {ADA}
    done = people_browser.post("/people/change", plan.hidden())
    assert "ada@example.com gets mail again." in people_browser.get(done.headers["location"]).words
    (row,) = stage.items("suppressions")
    assert ("reason" in row, row["lifted_why"]) == (False, "new mailbox")
    assert stage.ses.listed == set()


def test_an_operator_suppresses_opts_out_and_opts_in_a_person_in_the_console(
    stage: DeadLettersStage, people_browser: Browser
) -> None:
    for do, more, left in (
        ("suppress", {"channel": "mail", "why": "asked by phone"}, ("suppressions", 1)),
        ("opt-out", {"topic": "news"}, ("preferences", 1)),
    ):
        plan = people_browser.get("/people/change", do=do, recipient=f"Ada <{ADA}>", **more)
        assert len(stage.items(left[0])) == 0
        people_browser.post("/people/change", plan.hidden())
        assert len(stage.items(left[0])) == left[1]
    page = people_browser.get("/people", recipient=ADA)
    assert "moto put it on the list. asked by phone" in page.words
    assert "Suppress mail by moto (console): asked by phone" in page.words
    assert "Opt out of news by moto (console)" in page.words
    assert ", by moto (console)" in page.words.partition("All others")[0]
    plan = people_browser.get("/people/change", do="opt-in", recipient=ADA, topic="news")
    people_browser.post("/people/change", plan.hidden())
    assert "All topics On" in people_browser.get("/people", recipient=ADA).words


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"do": "burn"}, "There is no such change."),
        ({"do": "suppress", "channel": "mail"}, "why is missing"),
        ({"do": "suppress", "channel": "fax", "why": "x", "recipient": ADA}, "use mail, sms, push"),
        ({"do": "suppress", "channel": "mail", "why": "x", "recipient": "no@"}, "is not a mail address"),
        ({"do": "opt-out", "topic": " "}, "topic is missing"),
    ],
)
def test_an_invalid_change_for_a_person_is_neither_planned_nor_made(
    stage: DeadLettersStage, people_browser: Browser, form: dict[str, str], said: str
) -> None:
    for refused in (
        people_browser.get("/people/change", **form),
        people_browser.post("/people/change", form),
    ):
        assert (refused.status, said in refused.words) == (400, True)
    assert stage.items("suppressions") == stage.items("preferences") == []


def test_a_person_is_erased_after_a_survey_and_a_typed_confirmation(
    stage: DeadLettersStage, people_browser: Browser
) -> None:
    bounced(stage)
    assert "Nothing is changed." in people_browser.get("/people/erase", recipient=ADA).words
    looked = people_browser.post("/people/erase", {"recipient": ADA, "step": "look"})
    people_browser.site.jobs[EraseJob, ADA].wait()
    page = people_browser.get(looked.headers["location"])
    assert "records 1 payloads 0 preferences 0 suppressions 1 search 1" in page.words
    refused = people_browser.post(
        "/people/erase", {"recipient": ADA, "step": "erase", "typed": "bob@example.com"}
    )
    assert (refused.status, len(stage.items("suppressions"))) == (400, 1)
    erased = people_browser.post("/people/erase", {"recipient": ADA, "step": "erase", "typed": ADA})
    people_browser.site.jobs[EraseJob, ADA].wait()
    page = people_browser.get(erased.headers["location"])
    assert f"{ADA} is erased from dev." in page.words
    (receipt,) = re.findall('href="data:application/json,([^"]*)"', page.text)
    facts = json.loads(unquote(receipt))
    assert (facts["by"], facts["left"], epoch(facts["at"]) <= time.time()) == (ME, 0, True)
    assert {goes["what"] for goes in facts["goes"]} == {*GOES}
    assert ADA not in json.dumps(facts["places"])
    assert stage.items("suppressions") == stage.items("search") == []
    assert "to" not in stage.item("ledger", "m-1")


def test_an_erasure_keeps_the_suppressions_of_a_person_if_the_operator_selects_it(
    stage: DeadLettersStage, people_browser: Browser
) -> None:
    bounced(stage)
    people_browser.post("/people/erase", {"recipient": ADA, "step": "look"})
    people_browser.site.jobs[EraseJob, ADA].wait()
    people_browser.post("/people/erase", {"recipient": ADA, "step": "erase", "typed": ADA, "keep": "1"})
    people_browser.site.jobs[EraseJob, ADA].wait()
    assert len(stage.items("suppressions")) == 1


def test_an_erasure_without_a_survey_is_refused(stage: DeadLettersStage, people_browser: Browser) -> None:
    bounced(stage)
    refused = people_browser.post("/people/erase", {"recipient": ADA, "step": "erase", "typed": ADA})
    assert (refused.status, "Look first, then erase." in refused.words) == (400, True)
    assert len(stage.items("search")) == 2


def test_the_survey_before_an_erasure_refuses_an_invalid_recipient(people_browser: Browser) -> None:
    looked = people_browser.post("/people/erase", {"recipient": "ada", "step": "look"})
    people_browser.site.jobs[EraseJob, "ada"].wait()
    assert "is not a mail address" in people_browser.get(looked.headers["location"]).words
