"""`mailroom messages list --reasons`: the reasons of most failures, with the numbers of messages."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any

import pytest

from mailroom.clock import iso
from mailroom_ops.messages.failed_messages import Failure
from mailroom_ops.messages.failure_groups import groups_of
from tests.support.fuzz.work import assert_linear_time
from tests.support.ops.message import LEDGER, Stage, answer, run
from tests.support.ops.search import index
from tests.support.ops.shared import failure

MINUTE = 60.0


def put_failed_ago(stage: Stage, id_: str, minutes_ago: float, message: str, **more: Any) -> None:
    ended = time.time() - minutes_ago * MINUTE
    channel = more.pop("event_type", "mail")
    error = {"code": more.pop("code", "invalid"), "message": message, **more.pop("error", {})}
    stage.put(
        LEDGER,
        id=id_,
        event_type=channel,
        status="failed",
        completedAt=int(ended * 1000),
        updatedAt=iso(ended),
        **failure(id_, channel, "failed", int(ended * 1000)),
        error=error,
        **more,
    )


def troubled(stage: Stage, id_: str, minutes_ago: float, message: str, **more: Any) -> None:
    put = int((time.time() - minutes_ago * MINUTE) * 1000)
    item = {
        "id": id_,
        "event_type": "sms",
        "to": "+16175551234",
        "status": "sending",
        "ttl": 9_999_999_999,
        "putAt": put,
        "trouble": {"code": "retry", "message": message},
    }
    stage.put(LEDGER, **{**item, **more})


def groups(*words: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = answer(run("list", "--reasons", "--json", *words))["groups"]
    return listed


def test_messages_with_the_same_reason_are_one_group_with_their_number_and_the_first_time(
    stage: Stage,
) -> None:
    for number in range(4):
        put_failed_ago(
            stage, f"o-{number}", 10 + number, "line.price: is missing", template="order-confirmation"
        )
    put_failed_ago(stage, "x", 5, "to: 'ada' is not an address")
    put_failed_ago(stage, "y", 6, "to: 'bob' is not an address")
    largest, second = groups()
    expected = (4, "mail", "failed", "order-confirmation", "invalid", "line.price: is missing", "o-0")
    names = ("messages", "event_type", "status", "template", "reason", "message", "example")
    assert tuple(largest[name] for name in names) == expected
    assert abs(datetime.fromisoformat(largest["since"]).timestamp() - (time.time() - 13 * MINUTE)) < MINUTE
    assert (second["messages"], second["example"]) == (2, "x")


def test_the_groups_of_failures_include_retried_messages_and_dead_letters_with_the_providers_words(
    stage: Stage,
) -> None:
    for number in range(3):
        troubled(stage, f"code-{number}", 5, f"Twilio answered 500 to request {number}", template="code")
    troubled(stage, "dead", 30, "Twilio answered 500", dead_lettered_at=int(time.time() * 1000))
    troubled(stage, "old", 90, "Twilio answered 500 to request 9", template="code")
    troubled(stage, "older", 400, "Twilio answered 500 to request 9", template="code")
    stage.put(
        LEDGER, id="fine", event_type="sms", to="+16175551234", status="sent", putAt=1, ttl=9_999_999_999
    )
    index(stage.dynamodb)
    listed = [(group["messages"], group["status"], group["reason"]) for group in groups("--since", "1h")]
    assert listed == [(5, "sending", "retry"), (1, "dead-letter", "retry")]
    assert groups("--since", "1h", "--channel", "mail") == []
    result = run("list", "--reasons", "--since", "1h")
    for text in ("5", "code: sending, retry", "Twilio answered 500 to request", "such as code-"):
        assert text in result.stdout


def test_a_note_explains_that_retried_messages_are_not_counted_if_the_stage_has_no_search(
    stage: Stage,
) -> None:
    stage.functions.environment["SEARCH_TABLE"] = ""
    put_failed_ago(stage, "o-1", 10, "line.price: is missing")
    result = run("list", "--reasons")
    assert "line.price: is missing" in result.stdout
    assert "the stage has no search" in result.stdout


def test_messages_list_with_reasons_prints_a_sentence_if_there_is_nothing_to_group(stage: Stage) -> None:
    assert "No message failed or is tried again since" in run("list", "--reasons").stdout


def test_messages_list_with_reasons_refuses_a_misspelt_channel(stage: Stage) -> None:
    result = run("list", "--reasons", "--channel", "fxa")
    assert (result.exit_code, "'fxa' is not one of" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--csv --json", "--csv prints all messages; leave out --json"),
        ("--reasons --csv", "--reasons counts all failures; use only --since and filters"),
        ("--reasons ada@example.com", "--reasons counts all failures; use only --since and filters"),
    ],
)
def test_messages_list_refuses_options_that_exclude_each_other(
    stage: Stage, words: str, sentence: str
) -> None:
    result = run("list", *words.split())
    assert (result.exit_code, sentence in result.stderr) == (2, True)


def test_addresses_in_the_trouble_of_messages_that_are_tried_again_are_masked(stage: Stage) -> None:
    troubled(stage, "m-1", 5, "Email address is not verified: ada.lovelace@customer.example")
    index(stage.dynamodb)
    assert [group["message"] for group in groups()] == [
        "Email address is not verified: a***@customer.example"
    ]


def test_the_search_for_retried_messages_reads_past_sent_messages_up_to_a_number_of_pages(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    troubled(stage, "m-1", 90, "Twilio answered 500")
    for number in range(30):
        sent = {"status": "sent", "trouble": None}
        troubled(stage, f"sent-{number}", 5 + number, "", **sent)
    index(stage.dynamodb)
    monkeypatch.setattr("mailroom.search.finder.MAX_KEYS", 4)  # a page ends after eight messages
    monkeypatch.setattr("mailroom_ops.messages.failure_groups.MOST_TRIED", 8)
    assert [group["example"] for group in groups()] == ["m-1"]
    monkeypatch.setattr("mailroom_ops.messages.failure_groups.PAGES", 2)
    assert groups() == []
    result = run("list", "--reasons")
    assert "Messages that are tried again are counted if they were put after " in result.stdout


def test_groups_filtered_by_a_status_contain_dead_letters_of_that_status(stage: Stage) -> None:
    troubled(stage, "dead", 30, "Twilio answered 500", dead_lettered_at=int(time.time() * 1000))
    index(stage.dynamodb)
    assert [group["status"] for group in groups("--status", "sending")] == ["dead-letter"]
    result = run("list", "--reasons", "--status", "dead-letter")
    assert (result.exit_code, "is not a status" in result.stderr) == (2, True)


@pytest.mark.parametrize("seed", range(5))
def test_failures_whose_sentences_differ_only_in_their_values_are_one_group(
    seed: int,
) -> None:
    random = Random(seed)
    values = ["'a'", "'b c'", "7", "x***@example.com", "…12", '"q"']
    failures = [
        Failure(
            f"2026-11-29T10:{random.randrange(60):02}:00.000Z",
            f"m-{number}",
            random.choice(["mail", "sms"]),
            random.choice(["failed", "bounced"]),
            "",
            random.choice(["invalid", "rejected"]),
            f"{random.choice(['to', 'from'])}: {random.choice(values)} is wrong",
            1,
            template=random.choice(["", "order"]),
        )
        for number in range(200)
    ]
    expected = Counter(
        (each.event_type, each.status, each.reason, each.template, each.message.partition(":")[0])
        for each in failures
    )
    grouped = groups_of(failures)
    assert Counter(group.messages for group in grouped) == Counter(expected.values())
    assert [group.messages for group in grouped] == sorted(expected.values(), reverse=True)


@pytest.mark.parametrize("piece", ["a", "'", "a'", "@", "a@", '"', "7"])
def test_a_long_sentence_is_grouped_in_linear_time(piece: str) -> None:
    def grouping(size: int) -> Callable[[], object]:
        failure = Failure("", "m", "mail", "failed", "", "invalid", piece * size, 1)
        return lambda: groups_of([failure])

    assert_linear_time(grouping, 40_000)
