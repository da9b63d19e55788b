"""`mailroom messages list` and `mailroom messages list`: what support asks first."""

import json
import re
from collections import Counter
from typing import Any

import pytest

from mailroom.campaigns.runs import Runs
from mailroom.clock import iso
from mailroom_ops.messages.filters import MessageFilter
from mailroom_ops.messages.list_command import list_
from tests.support.campaign_start import start_in
from tests.support.ops.message import LEDGER, MAILBOX, Stage, answer, run
from tests.support.ops.search import index
from tests.support.ops.shared import RUNS, failure, make_runs
from tests.support.unit.shared import before_each_call

RUN = "2026-11-21T09:00Z"
AT = 1_795_251_600_000


def know(stage: Stage, id_: str, to: Any = "ada@example.com", channel: str = "mail", **more: Any) -> None:
    """A message as the ledger has it; each later one was put a second later."""
    known = int(stage.dynamodb.scan(TableName=LEDGER)["Count"])
    item = {"id": id_, "event_type": channel, "to": to, "status": "delivered", "ttl": 9_999_999_999}
    stage.put(LEDGER, **{**item, "putAt": AT + 1_000 * known, **more})


def found_ids(*words: str) -> list[str]:
    return [each["id"] for each in answer(run(*words, "--json"))["messages"]]


def test_a_persons_messages_are_found_in_all_spellings_with_the_newest_first(stage: Stage) -> None:
    know(stage, "m-1", "ada@bücher.example")
    know(stage, "m-2", "bob@example.com")
    know(stage, "m-3", ["bob@example.com", "Ada@bücher.example"])
    know(stage, "s-1", "+16175551234", "sms")
    index(stage.dynamodb)
    assert found_ids("list", "ADA@xn--bcher-kva.example") == ["m-3", "m-1"]
    assert found_ids("list", "(617) 555-1234") == ["s-1"]
    assert found_ids("list", "ada@bücher.example", "--channel", "sms") == []


def test_a_message_is_listed_with_its_time_status_subject_and_recipient(stage: Stage) -> None:
    know(stage, "m-1", template="welcome", subject="Welcome, Ada", status="bounced")
    index(stage.dynamodb)
    result = run("list", "ada@example.com")
    for said in ("2026-11-21 09:00:00", "mail", "bounced", "Welcome, Ada", "to ada@example.com", "m-1"):
        assert said in result.stdout
    assert "1 message to ada@example.com in dev." in result.stdout
    assert answer(run("list", "ada@example.com", "--json")) == {
        "stage": "dev",
        "by": "recipient",
        "messages": [
            {
                "put_at": "2026-11-21T09:00:00.000Z",
                "id": "m-1",
                "event_type": "mail",
                "status": "bounced",
                "waits_for": "",
                "reason": "unknown",
                "field": "",
                "message": "",
                "template": "welcome",
                "subject": "Welcome, Ada",
                "to": "ada@example.com",
                "dead_lettered_at": None,
                "updated_at": None,
            }
        ],
        "more": False,
        "cursor": None,
        "looked_back_to": None,
        "queued": None,
    }


def test_an_unclaimed_message_is_found_by_its_whole_id(stage: Stage) -> None:
    stage.put(MAILBOX, id="order-42", event_type="mail", to="ada@example.com")
    assert found_ids("list", "order-42") == ["order-42"]


SES_ID = "0100019aa6f3c5d0-1f7d6b0e-8c1a-4c55-a1de-000000000000-000000"


def test_a_message_is_found_by_its_own_id_and_by_its_providers_id(stage: Stage) -> None:
    know(stage, "order-42", provider_id=SES_ID)
    know(stage, "other", "bob@example.com", "sms", provider_id="SM1f7d6b0e8c1a4c55a1de000000000000")
    index(stage.dynamodb)
    for text in (
        "b3JkZXItNDI",  # the X-Correlation-ID of the mail
        "b3JkZXItNDI.2",
        "X-Correlation-ID: b3JkZXItNDI",
        f"Message-ID: <{SES_ID}@eu-central-1.amazonses.com>",
        "der-4",
        SES_ID,
        f"{SES_ID}@email.amazonses.com",
    ):
        assert found_ids("list", text) == ["order-42"], text
    assert found_ids("list", "SM1f7d6b0e8c1a4c55a1de000000000000") == ["other"]


def test_an_address_in_a_domain_of_ses_is_read_as_a_recipient_and_not_as_a_message_id(stage: Stage) -> None:
    know(stage, "m-1", "bounce@simulator.amazonses.com")
    index(stage.dynamodb)
    assert found_ids("list", "bounce@simulator.amazonses.com") == ["m-1"]


@pytest.mark.parametrize("text", ["ada", "@example.com", "555-1234"])
def test_a_part_of_an_address_finds_no_message_and_the_output_explains_it(stage: Stage, text: str) -> None:
    know(stage, "m-1")
    index(stage.dynamodb)
    result = run("list", text)
    assert (result.exit_code, "type the whole address or number, not a part." in result.stdout) == (1, True)
    assert "not a part" not in run("list", "eve@example.com").stdout


def test_messages_list_exits_with_1_if_the_searched_recipient_has_no_message(stage: Stage) -> None:
    result = run("list", "eve@example.com")
    assert result.exit_code == 1
    assert "No messages to eve@example.com in dev." in result.stdout


def test_messages_list_without_a_result_shows_the_number_of_messages_in_queues(stage: Stage) -> None:
    lanes = {}
    for lane, count in (("normal", 2), ("bulk", 3)):
        lanes[lane] = stage.sqs.create_queue(QueueName=f"mailroom-dev-mail-{lane}")["QueueUrl"]
        for _ in range(count):
            stage.sqs.send_message(QueueUrl=lanes[lane], MessageBody="{}")
    stage.functions.environments["dispatch"]["ROUTES"] = json.dumps({"mail": lanes})
    said = "5 messages are in queues and not listed yet."
    assert f"No messages to ada@example.com in dev so far; {said}" in run("list", "ada@example.com").stdout
    assert f"No messages in dev so far; {said}" in run("list").stdout
    assert answer(run("list", "--json"))["queued"] == 5


@pytest.mark.parametrize("words", [("list", "ada@example.com"), ("list", "--campaign", f"spring#{RUN}")])
def test_a_waiting_message_is_listed_with_its_reason(stage: Stage, words: tuple[str, ...]) -> None:
    id_ = f"spring#{RUN}#ada#{1_795_251_600:08x}{'0' * 32}"
    wait = {"version": "v", "reason": "day_used_up"}
    know(stage, id_, **start_in(id_), status="scheduled", wait=wait, waits_in="line#mail#1")
    index(stage.dynamodb)
    (message,) = answer(run(*words, "--json"))["messages"]
    assert (message["id"], message["status"], message["waits_for"]) == (id_, "scheduled", "day_used_up")
    shown = run(*words).stdout
    assert ("waits for" in shown, "the daily quota" in shown) == (True, True)


def test_the_newest_messages_are_listed_in_pages_by_a_cursor(stage: Stage) -> None:
    for at in range(60):
        know(stage, f"m-{at:02}", f"p{at}@example.com")
    index(stage.dynamodb)
    first = answer(run("list", "--json"))
    assert ([len(first["messages"]), first["more"]]) == [50, True]
    second = answer(run("list", "--cursor", first["cursor"], "--json"))
    ids = [each["id"] for each in (*first["messages"], *second["messages"])]
    assert ids == [f"m-{at:02}" for at in range(59, -1, -1)]
    assert f"More: --cursor {first['cursor']}" in run("list").stdout


def test_a_filter_selects_the_messages_with_its_value(stage: Stage) -> None:
    know(stage, "other")
    titles = {"status": "suppressed", "template": "welcome"}
    know(stage, "spring#1#ada", "+16175551234", "sms", **titles, **start_in("spring#1#ada"))
    know(stage, "spring#1#of a producer")
    index(stage.dynamodb)
    for name, value in (("status", "suppressed"), ("template", "welcome"), ("campaign", "spring")):
        assert found_ids("list", f"--{name}", value) == ["spring#1#ada"]
    assert found_ids("list", "--channel", "sms") == ["spring#1#ada"]


def test_messages_list_shows_the_time_to_which_it_looked_back_if_few_messages_match(stage: Stage) -> None:
    for at in range(250):
        know(stage, f"m-{at}", putAt=AT + 1_000 * at)
    index(stage.dynamodb)
    result = run("list", "--channel", "sms")
    said = " ".join(result.stdout.split())
    assert "No messages in dev, looked back to 2026-11-21 09:00:50 UTC." in said
    assert "More: --cursor" in said


def wrong(stage: Stage, id_: str, status: str, at: int = AT, **more: Any) -> None:
    """A message that went wrong, as the ledger's index of failures has it."""
    keys = failure(id_, "mail", status, at)
    know(stage, id_, status=status, completedAt=at, updatedAt=iso(at / 1000), **keys, **more)


def test_failures_are_listed_in_pages_from_their_own_index_although_the_search_table_is_gone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: AT / 1000 + 3 * 86_400)
    for at in range(60):
        wrong(stage, f"b-{at:02}", "bounced", AT - 3_600_000 * at)
    wrong(stage, "f-0", "failed")
    know(stage, "new")  # not in the search: the index of failures alone knows the others
    index(stage.dynamodb)
    stage.dynamodb.delete_table(TableName="mailroom-dev-search")
    first = answer(run("list", "--status", "bounced", "--json"))
    assert [message["id"] for message in first["messages"]] == [f"b-{at:02}" for at in range(50)]
    second = answer(run("list", "--status", "bounced", "--cursor", first["cursor"], "--json"))
    assert [message["id"] for message in second["messages"]] == [f"b-{at:02}" for at in range(50, 60)]
    assert second["more"] is False
    assert "1 of 1 message in dev." in " ".join(run("list", "--status", "failed").stdout.split())


@pytest.mark.parametrize("words", [("list", "--status", "bounced"), ("list", "--status", "failure")])
def test_a_failure_is_listed_although_its_time_is_ahead_of_the_operators_clock(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr("time.time", lambda: AT / 1000 - 240)
    wrong(stage, "b-1", "bounced")
    assert "b-1" in run(*words).stdout


def test_failures_of_the_same_moment_are_each_listed_once(stage: Stage) -> None:
    for at in range(115):
        wrong(stage, f"b-{at}", "bounced")
    wrong(stage, "before", "bounced", AT - 1)
    ids: list[str] = []
    cursor = ""
    for _ in range(3):
        page = answer(run("list", "--status", "bounced", "--cursor", cursor, "--json"))
        ids += [message["id"] for message in page["messages"]]
        cursor = page["cursor"] or ""
    assert (len(ids), len(set(ids)), ids[-1], cursor) == (116, 116, "before", "")


def test_the_csv_of_several_pages_of_failures_queries_each_shard_of_the_index_only_twice(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(400):
        wrong(stage, f"b-{at}", "bounced", AT - at)
    calls = Counter[str]()
    before_each_call(monkeypatch, lambda operation: calls.update([operation]))
    rows = run("list", "--status", "bounced", "--csv").stdout.splitlines()
    assert (len(rows), calls) == (401, {"Query": 8})  # the first page, and the round


def test_a_misspelt_filter_is_refused_with_the_valid_values(stage: Stage) -> None:
    make_runs(stage.dynamodb)
    Runs(stage.dynamodb, RUNS, lease=60, clock=lambda: AT / 1000).begin("spring", RUN, "s-1", RUN)
    for words, sentence in (
        (("list", "--status", "bouncd"), "status: 'bouncd' is not a status; use scheduled,"),
        (("list", "ada@example.com", "--channel", "mial"), "channel: 'mial' is not one of mail, sms,"),
        (("list", "--reasons", "--status", "bouncd"), "status: 'bouncd' is not a status; use scheduled,"),
        (
            ("list", "--status", "failure", "--campaign", "sprng"),
            "campaign: 'sprng' had no run in dev; campaigns here: ",
        ),
        (("list", "--reasons", "--campaign", "#x"), "campaign: '#x' had no run in dev; campaigns here: "),
        (("list", "--campaign", "spring#nov"), "spring has no run 'nov' in dev; use 2026-11-21T09:00Z."),
    ):
        result = run(*words)
        assert (result.exit_code, sentence in " ".join(result.stderr.split())) == (2, True), result.stderr


def test_failures_are_filtered_by_campaign_and_run(stage: Stage) -> None:
    for at, name in enumerate(("nov", "dec")):
        wrong(stage, f"spring#{name}#ada", "bounced", AT + at, **start_in(f"spring#{name}#ada"))
        wrong(stage, f"spring#{name}#of a producer", "bounced", AT + at)
    wrong(stage, "springtime#nov#ada", "bounced", **start_in("springtime#nov#ada"))
    asked = ("list", "--status", "failure", "--since", "2026-11-21", "--json", "--campaign")
    found = [
        [each["id"] for each in answer(run(*asked, name))["messages"]] for name in ("spring", "spring#nov")
    ]
    assert found == [["spring#dec#ada", "spring#nov#ada"], ["spring#nov#ada"]]


def test_messages_list_refuses_an_invalid_cursor(stage: Stage) -> None:
    result = run("list", "--cursor", "7")
    assert result.exit_code == 2
    assert "cursor: is not a valid cursor; use the cursor of the previous page." in result.stderr


def test_messages_list_names_the_setting_search_if_the_stage_lacks_the_search_table(stage: Stage) -> None:
    del stage.functions.environment["SEARCH_TABLE"]
    result = run("list", "ada@example.com")
    assert result.exit_code == 2
    assert "mailroom.dev.search true in cdk.json" in " ".join(result.stderr.split())


def test_messages_that_may_have_arrived_twice_are_listed_and_marked_by_messages_show(stage: Stage) -> None:
    know(stage, "m-1", unsettled_tries={"1000 ", "2000 "})
    know(stage, "m-2", unsettled_tries={"1000 "}, provider_id="p-1")
    know(stage, "m-3", arrived_before=1, provider_id="p-1")
    index(stage.dynamodb)
    assert found_ids("list", "--twice") == ["m-3", "m-1"]
    assert "may_have_arrived_twice" in run("show", "m-3").stdout


def test_the_help_of_messages_list_names_every_status_that_its_filter_accepts() -> None:
    words = set(re.findall(r"[a-z-]+", list_.__doc__ or ""))
    assert words >= {*MessageFilter.statuses}
