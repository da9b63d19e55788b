"""The record of deeds: written before each deed, shown at its thing and as a list, without addresses."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mailroom.message.message import Key
from mailroom_ops import cli
from mailroom_ops.shared.deeds import LIST, Deed, Deeds, thing_of, with_names
from tests.support.ops.campaign import NOW, RUN
from tests.support.ops.console import Browser
from tests.support.ops.dead_letters import DeadLettersStage, FakeSes, erasable
from tests.support.ops.run_app import run_app
from tests.support.ops.whole import ADA, WholeStage, whole_stage
from tests.support.unit.fakes import client_error

STAGE = erasable
WHY = ("--why", "a wrong list")
DEEDS: dict[str, tuple[str, ...]] = {
    f"start again run {RUN}": ("campaign", "start", "weekly", "--run", RUN, "--yes"),
    f"stop run {RUN}": ("campaign", "stop", "weekly", "--run", RUN, "--yes", *WHY),
    f"pause run {RUN}": ("campaign", "pause", "weekly", "--run", RUN, *WHY),
    "pause mail bulk": ("lane", "pause", "mail", "bulk", *WHY),
    "send again": ("messages", "resend", "failed", "--force", "--yes"),
    "cancel": ("messages", "cancel", "waits"),
    "correct as new-link": ("messages", "correct", "new-link", "failed", "--set", "subject=Hello", "--yes"),
    "put back": ("messages", "resend", "stuck", "--yes"),
    "record as sent": ("messages", "settle", "stuck", "--as", "sent", "--yes"),
    "put back 2 of mail": ("messages", "resend", "--dead-letters", "mail", "--yes"),
    "erase 1 message": ("people", "erase", "eve@example.com", "--yes", *WHY),
    "suppress mail": ("people", "stop", "bob@example.com", "--channel", "mail", "--why", "asked"),
    "lift mail": ("people", "allow", ADA, "--channel", "mail", "--why", "asked", "--yes"),
    "opt out of offers": ("people", "stop", ADA, "--topic", "offers"),
    "opt in to news": ("people", "allow", ADA, "--topic", "news", "--yes"),
}
"""Commands by the verbs of their deeds. `templates` has its own tests."""


run = partial(run_app, cli.app, columns=80)


@pytest.fixture
def stage_for_deeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[WholeStage, Browser]]:
    """A stage with a message for each deed."""
    with whole_stage(tmp_path, monkeypatch) as (stage, browser):
        stage.fill()
        stage.put({"id": "failed", "event_type": "mail", "to": ADA, "subject": "Hi", "text": "Hi"})
        stage.know("stuck", status="sending", startedAt=1, attempts=0, ttl=1 << 33)
        stage.put(
            {"id": "stuck", "event_type": "mail", "to": "bob@example.com", "text": "Hi", "subject": "Hi"}
        )
        stage.know("eve", status="sent", completedAt=2, attempts=1, to="eve@example.com", ttl=1 << 33)
        stage.close_the_day()
        stage.session.instead["sesv2"] = FakeSes()
        yield stage, browser


def state_of_stage(stage: WholeStage) -> str:
    """Return what a deed may change."""
    tables = [name for name in stage.dynamodb.tables if name != "mailroom-dev-deeds"]
    items = {name: stage.dynamodb.scan(TableName=name)["Items"] for name in tables}
    queues = {name: stage.bodies(name) for name in stage.urls}
    changed = (items, queues, stage.functions.mappings, stage.functions.invoked, stage.world.started())
    return json.dumps(changed, default=str, sort_keys=True)


def deeds_of(stage: Any, thing: str = LIST) -> list[Deed]:
    return [*Deeds(stage.session, "dev").of(thing)]


@pytest.mark.parametrize(("verb", "words"), DEEDS.items(), ids=DEEDS)
def test_a_deed_is_recorded_before_it_is_done(
    stage_for_deeds: tuple[WholeStage, Browser], verb: str, words: tuple[str, ...]
) -> None:
    stage, _ = stage_for_deeds
    before, states = state_of_stage(stage), list[str]()
    write = stage.dynamodb.batch_write_item

    def watched(**request: Any) -> Any:
        if "mailroom-dev-deeds" in request["RequestItems"]:
            states.append(state_of_stage(stage))
        return write(**request)

    stage.dynamodb.batch_write_item = watched
    result = run(*words, "--stage", "dev")
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    assert states[0] == before
    assert state_of_stage(stage) != before
    recorded = deeds_of(stage)
    assert verb in [deed.verb for deed in recorded]
    assert {(deed.way, with_names(deed.by)) for deed in recorded} == {("command", "moto")}


@pytest.mark.parametrize("words", DEEDS.values(), ids=DEEDS)
def test_a_change_is_not_made_if_its_deed_cannot_be_recorded(
    stage_for_deeds: tuple[WholeStage, Browser], words: tuple[str, ...]
) -> None:
    stage, _ = stage_for_deeds
    before = state_of_stage(stage)

    def denied(**_: Any) -> None:
        raise client_error("AccessDeniedException")

    stage.dynamodb.batch_write_item = denied
    assert run(*words, "--stage", "dev").exit_code in (1, 2)
    assert state_of_stage(stage) == before


def test_a_deed_on_many_messages_has_one_row_in_the_list_of_deeds_and_one_for_each_message(
    stage: DeadLettersStage,
) -> None:
    keys = [Key(f"m-{number}", "mail") for number in range(60)]
    Deeds(stage, "dev").record("send again", map(thing_of, [*keys, *keys]), " a wrong link ")
    (listed,) = [*Deeds(stage, "dev").of(LIST)]
    assert (listed.thing, listed.why, len(stage.items("deeds"))) == ("60 messages", "a wrong link", 61)
    for key in keys:
        (deed,) = [*Deeds(stage, "dev").of(thing_of(key))]
        assert (deed.verb, deed.thing) == ("send again", thing_of(key))


def test_a_deed_without_messages_is_not_recorded(stage: DeadLettersStage) -> None:
    Deeds(stage, "dev").record("send again", [])
    assert not stage.items("deeds")


def test_a_deed_expires_together_with_the_ledgers_items(stage: DeadLettersStage) -> None:
    Deeds(stage, "dev", lambda: NOW).record("stop run r", ["campaign#weekly"])
    assert {row["ttl"] for row in stage.items("deeds")} == {int(NOW) + 7_776_000}


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        ("arn:aws:iam::123456789012:root", "the account's root user"),
        ("arn:aws:iam::123456789012:user/team/ada", "ada"),
        ("arn:aws:sts::123456789012:assumed-role/support/ada", "support / ada"),
        ("arn:aws-cn:sts::123456789012:assumed-role/support/ada@x.example", "support / ada@x.example"),
        (
            "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Support_0123456789abcdef/ada",
            "Support / ada",
        ),
        ("arn:aws:sns:eu-west-1:123456789012:endpoint/a", "arn:aws:sns:eu-west-1:123456789012:endpoint/a"),
    ],
)
def test_the_arn_of_an_operator_in_a_text_is_replaced_by_a_name(arn: str, name: str) -> None:
    assert (
        with_names(f"since noon by {arn}: it is wrong ({arn})")
        == f"since noon by {name}: it is wrong ({name})"
    )


def test_the_list_of_deeds_is_read_page_by_page_and_filtered_by_words(stage: DeadLettersStage) -> None:
    for number in range(120):
        deeds = Deeds(stage, "dev", partial(float, NOW + number))
        deeds.record("lift mail" if number % 2 else "stop run r", ["campaign#weekly"], f"reason {number}")
    browser = Browser(stage).enter()
    pages, where = [], "/deeds"
    while where:
        page = browser.get(where)
        pages.append(page.words)
        where = page.text.partition('id="older" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert len(pages) == 3
    assert [f"reason {number}" in pages[0] for number in (119, 70, 69)] == [True, True, False]
    assert ["reason 19 " in pages[1], "reason 19 " in pages[2], "reason 0 " in pages[2]] == [
        False,
        True,
        True,
    ]
    found = browser.get("/deeds", text="MOTO stop 4").words
    assert ("reason 40" in found, "reason 41" in found) == (True, False)
    assert "No matching entry" in browser.get("/deeds", text="nobody").words


def test_the_command_activity_lists_the_deeds_of_a_period_within_80_columns(
    stage_for_deeds: tuple[WholeStage, Browser],
) -> None:
    stage, _ = stage_for_deeds
    Deeds(stage.session, "dev", lambda: 1.0).record("stop run r", ["campaign#weekly"], "long ago")
    assert run("lane", "pause", "mail", "bulk", *WHY).exit_code == 0
    result = run("activity", "--since", "1h")
    assert "pause mail bulk: lanes" in " ".join(result.stdout.split())
    assert "by moto (command): a wrong list" in " ".join(result.stdout.split())
    assert "long ago" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    answer = json.loads(run("activity", "--since", "1h", "--json").stdout)
    (deed,) = answer["deeds"]
    assert (answer["stage"], answer["more"]) == ("dev", False)
    assert (deed["verb"], deed["by"][:8], deed["way"]) == ("pause mail bulk", "arn:aws:", "command")


def test_the_list_of_deeds_of_a_period_ends_at_the_limit_with_the_option_for_the_rest(
    stage: DeadLettersStage,
) -> None:
    for second in range(1, 6):
        Deeds(stage, "dev", partial(float, second)).record(f"stop run {second}", ["campaign#weekly"])
    period = ("activity", "--since", "1970-01-01T00:00:02Z", "--until", "1970-01-01T00:00:05Z", "--json")
    answer = json.loads(run(*period).stdout)
    assert ([deed["verb"][-1] for deed in answer["deeds"]], answer["more"]) == (["4", "3", "2"], False)
    answer = json.loads(run(*period, "--limit", "2").stdout)
    assert ([deed["verb"][-1] for deed in answer["deeds"]], answer["more"]) == (["4", "3"], True)
    assert "More: --limit 20" in run(*period[:-1], "--limit", "2").stdout
    assert "More" not in run(*period[:-1], "--limit", "3").stdout
    refused = run("activity", "--since", "yesterday")
    assert (refused.exit_code, "--since 'yesterday' is not a time" in refused.stderr) == (2, True)


def test_a_page_shows_the_deeds_that_concern_it_with_their_operator_way_and_reason(
    stage_for_deeds: tuple[WholeStage, Browser],
) -> None:
    stage, browser = stage_for_deeds
    change = {"campaign": "weekly", "run": RUN, "do": "stop"}
    assert browser.post("/campaigns/change", change).status == 400, "a stop needs a reason"
    assert browser.post("/campaigns/change", {**change, "why": "a wrong link"}).status == 303
    assert (
        f"Stop run {RUN} by moto (console): a wrong link"
        in browser.get("/campaigns", campaign="weekly").words
    )
    plan = browser.get("/message/cancel", id="waits", channel="mail")
    browser.post("/message/cancel", {**plan.hidden(), "why": "she asked"})
    assert "Cancel by moto (console): she asked" in browser.get("/message", id="waits", channel="mail").words
    Deeds(stage.session, "dev").record("publish version 2", ["template#mail/weekly"])
    assert "Publish version 2 by moto (command)" in browser.get("/templates", name="weekly").words
    run("messages", "resend", "--dead-letters", "mail", "--yes")
    assert "Put back 2 of mail by moto (command)" in browser.get("/dead-letters").words
    listed = browser.get("/deeds")
    link = 'href="/message?id=waits&amp;channel=mail">Cancel: message mail waits</a>'
    assert link in listed.text
    assert f"Stop run {RUN}: campaign weekly by moto (console): a wrong link" in listed.words


SPELLINGS = {
    "mail": ("ada@example.com", "Ada <ADA@Example.com>", " ada@EXAMPLE.com "),
    "sms": ("+16175551234", "(617) 555-1234", "+1 617 555 1234", "617-555-1234"),
}


@pytest.mark.parametrize("seed", range(12))
def test_an_erasure_removes_the_address_from_all_deeds_and_is_shown_on_the_persons_page(
    stage: DeadLettersStage, seed: int
) -> None:
    random = Random(seed)
    channel = random.choice(sorted(SPELLINGS))

    def somehow() -> str:
        return random.choice(SPELLINGS[channel])

    stage.put("ledger", id="m-1", event_type=channel, to=somehow(), status="sent", attempts=1, updatedAt="x")
    stage.put("mailbox", id="m-1", event_type=channel, to=somehow())
    commands = (
        ("people", "stop", somehow(), "--channel", channel, "--why", f"asked by {somehow()}, today"),
        ("people", "allow", somehow(), "--channel", channel, "--yes", "--why", f"for {somehow()}"),
        ("people", "stop", somehow(), "--topic", "news", "--why", f"asked by {somehow()}, today"),
        ("people", "allow", somehow(), "--topic", "news", "--yes", "--why", f"for {somehow()}"),
    )
    for words in random.sample(commands, random.randint(0, 4)):
        assert run(*words).exit_code in (0, 1)
    stage.put(
        "ledger", id="m-1", event_type=channel, to=somehow(), completedAt=2, updatedAt="x", status="sent"
    )
    result = run("people", "erase", somehow(), "--yes", "--why", f"ticket 2026-11-21 of {somehow()}")
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    rows = json.dumps(stage.items("deeds"), default=str).casefold()
    assert not re.search(r"ada@|555[^0-9]{0,3}1234", rows)
    assert "ticket 2026-11-21 of" in rows
    page = Browser(stage).enter().get("/people", recipient=somehow())
    assert "Erase 1 message by moto (command): ticket 2026-11-21 of" in page.words


def test_a_stage_without_search_lists_an_erasure_but_does_not_show_it_on_the_persons_page(
    stage: DeadLettersStage,
) -> None:
    for environment in (stage.functions.environment, stage.functions.environments["dispatch"]):
        environment.pop("SEARCH_TABLE", None)
    assert run("people", "erase", ADA, "--yes").exit_code == 0
    assert [
        row["found_by"] for row in map(dict, stage.items("deeds")) if row["verb"].startswith("erase")
    ] == [LIST]
    browser = Browser(stage).enter()
    assert "Erase 0 messages: person" in browser.get("/deeds").words
    assert "Erase 0 messages" not in browser.get("/people", recipient=ADA).words


def test_a_refused_change_of_a_run_is_not_recorded_as_a_deed(
    stage_for_deeds: tuple[WholeStage, Browser],
) -> None:
    stage, _ = stage_for_deeds
    change = ("--run", RUN, *WHY)
    assert run("campaign", "resume", "weekly", *change).exit_code == 2  # the run is not paused
    assert run("campaign", "stop", "weekly", "--run", "unknown", "--yes", *WHY).exit_code != 0
    assert deeds_of(stage) == []
    assert run("campaign", "stop", "weekly", *change, "--yes").exit_code == 0
    assert run("campaign", "pause", "weekly", *change).exit_code == 2
    assert run("campaign", "stop", "weekly", *change, "--yes").exit_code == 1
    assert [deed.verb for deed in deeds_of(stage)] == [f"stop run {RUN}"]
