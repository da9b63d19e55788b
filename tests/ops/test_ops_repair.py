"""`messages resend --stuck`: what is found, how it is judged, who is handed what, and what is said."""

import json
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from lab.harness.stage_client import typed
from mailroom.aws.dynamo_values import plain
from mailroom.clock import iso
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import CampaignStart, Key
from mailroom_ops.repair.judge import DAY, Diagnosis, Judge, Memory
from mailroom_ops.repair.requeuer import Requeuer
from mailroom_ops.shared.stage_queues import DeployedStage, StoredMessage
from tests.support.ops.repair import LEDGER, RepairStage, ms_ago, repair_stage, run, scanned
from tests.support.pipeline.items import mail_item

STAGE = repair_stage
NOW = 1_800_000_000.0
HOUR = 3600
COMPLETE = Memory(complete=True)
FORGETFUL = Memory(complete=False)
FINE = "fine", None
LYING, GONE = (NOW - 10 * DAY) * 1000, (NOW - 15 * DAY) * 1000
"""Marks of messages whose dead letters SQS may still have, and has deleted."""


def known(status: str, age: float, event_type: str = "mail", **attributes: Any) -> dict[str, Any]:
    """A ledger item that was changed so many seconds ago."""
    return {"id": "a", "event_type": event_type, "status": status, "updatedAt": iso(NOW - age), **attributes}


def diagnosis(
    ledger: dict[str, Any] | None,
    mailbox: dict[str, Any] | None,
    memory: Memory = COMPLETE,
    older_than: float | None = None,
) -> Diagnosis:
    message = StoredMessage(Key("a", "mail"), ledger, mailbox)
    return Judge(memory, older_than).judge(message, NOW)


# Stuck messages.

ITEM = mail_item("a")
MARK = {"version": "v", "reason": "day_used_up"}
"""Mark of a message that waits."""
IN_LEDGER: dict[str, tuple[dict[str, Any], tuple[str, str | None]]] = {
    "over": (known("sent", 9e6, completedAt=1), FINE),
    "claimed while a queue may hide it": (known("sending", 44_000, startedAt=1), FINE),
    "claimed long ago": (known("sending", 44_200, startedAt=1), ("overdue", "queue")),
    "released long ago": (known("sending", 44_200), ("overdue", "queue")),
    "a channel that is no more": (known("sending", 44_200, "pigeon"), ("overdue", "queue")),
    "reopened just now": (known("retrying", 800), FINE),
    "reopened and not begun": (known("retrying", 1000), ("overdue", "queue")),
    "it waits, though its time is long past": (
        known("scheduled", 9e6, scheduledFor=iso(NOW - 9e5), wait=MARK),
        FINE,
    ),
    "handed over while a queue may hide it": (
        known("scheduled", 44_000, scheduledFor=iso(NOW - 44_000)),
        FINE,
    ),
    "handed over before its time": (known("scheduled", 44_200, scheduledFor=iso(NOW - 44_000)), FINE),
    "handed over long ago": (
        known("scheduled", 44_200, scheduledFor=iso(NOW - 44_200)),
        ("overdue", "queue"),
    ),
    "a fax handed over long ago": (
        known("scheduled", 44_200, "fax", scheduledFor=iso(NOW - 44_200)),
        ("overdue", "dispatch"),
    ),
    "a fax handed over again long ago": (
        known("scheduled", 44_200, "fax", scheduledFor=iso(NOW - 44_200), claim_token="t"),
        ("overdue", "outcomes"),
    ),
    "a dead letter": (known("sending", 9e6, dead_lettered_at=LYING), ("dead_letter", "queue")),
    "a dead letter that is gone": (known("sending", 9e6, dead_lettered_at=GONE), ("overdue", "queue")),
    "a dead fax that is gone": (
        known("sending", 9e6, "fax", dead_lettered_at=GONE),
        ("overdue", "outcomes"),
    ),
    "a fax that waits": (known("retrying", 44_000, "fax", attempts=2, error={"code": "busy"}), FINE),
    "a fax that waited": (
        known("retrying", 44_200, "fax", attempts=2, error={"code": "busy"}),
        ("overdue", "outcomes"),
    ),
}


@pytest.mark.parametrize(("ledger", "found"), IN_LEDGER.values(), ids=IN_LEDGER)
def test_the_diagnosis_calls_a_message_overdue_if_the_time_of_its_next_step_has_passed(
    ledger: dict[str, Any], found: tuple[str, str | None]
) -> None:
    judged = diagnosis(ledger, ITEM)
    assert (judged.state, judged.route) == found


def test_the_option_older_than_replaces_the_age_from_which_a_message_is_overdue() -> None:
    item = known("sending", 70)
    states = [diagnosis(item, ITEM, older_than=each).state for each in (None, 80, 60)]
    assert states == ["fine", "fine", "overdue"]


def test_a_message_without_its_mailbox_item_cannot_be_requeued_unless_it_is_a_begun_fax() -> None:
    assert diagnosis(known("sending", 9e6), None).state == "gone"
    assert diagnosis(known("sending", 9e6, "fax"), None).route == "outcomes"
    for event_type in ("mail", "fax"):
        handed_over = known("scheduled", 9e6, event_type, scheduledFor=iso(NOW - 1e5))
        assert diagnosis(handed_over, None) == Diagnosis("gone", ("end",), not_ended="")


def test_a_message_without_a_ledger_item_is_missing_only_if_the_ledger_is_complete() -> None:
    assert diagnosis(None, ITEM) == Diagnosis("missing", ("requeue",), "dispatch")
    assert diagnosis(None, None).state == "unknown"
    assert diagnosis(None, ITEM, FORGETFUL) == Diagnosis("forgotten")
    assert diagnosis(None, ITEM, Memory(complete=False, confirmed=True)) == Diagnosis(
        "forgotten", ("requeue",), "dispatch", twice=True
    )


def test_a_requeue_or_redrive_of_a_stuck_message_is_offered_before_a_settlement_by_an_operator() -> None:
    cures = {
        "overdue": diagnosis(known("sending", 9e6, startedAt=1), ITEM).cures,
        "dead_letter": diagnosis(known("sending", 9e6, dead_lettered_at=LYING, startedAt=1), ITEM).cures,
        "gone": diagnosis(known("sending", 9e6, startedAt=1), None).cures,
        "held": diagnosis(known("sending", 9e6, startedAt=NOW * 1000), ITEM).cures,
        "over": diagnosis(known("sent", 9e6, completedAt=1), ITEM).cures,
    }
    assert cures == {
        "overdue": ("requeue", "end"),
        "dead_letter": ("redrive", "end"),
        "gone": ("end",),
        "held": ("requeue",),
        "over": (),
    }


def test_a_message_without_a_record_in_an_incomplete_ledger_is_forgotten_whatever_its_send_at() -> None:
    for at in (NOW - HOUR, NOW - 80 * DAY, NOW + DAY):
        assert diagnosis(None, mail_item("a", send_at=iso(at)), FORGETFUL) == Diagnosis("forgotten")


# the command


def test_a_missing_message_is_handed_to_dispatch_with_its_unchanged_item(stage: RepairStage) -> None:
    item = mail_item("lost", weight=7, tags={"a": [True, None]})
    stage.put(item)
    stage.dynamodb.put_item(
        TableName="mailroom-dev-mailbox", Item={**typed(mail_item("raw")), "blob": {"B": b"\x00\x01"}}
    )
    stage.failed("done")
    stage.put(mail_item("done"))
    code, answer = scanned("--yes")
    assert (code, answer["found"], answer["repaired"]) == (0, {"missing": {"mail": 2}}, {"mail": 2})
    images = {each["dynamodb"]["NewImage"]["id"]["S"]: each for each in stage.functions.records("dispatch")}
    assert sorted(images) == ["lost", "raw"]
    assert images["lost"]["dynamodb"]["NewImage"] == typed(item)
    # Dispatch reads the same attributes as of the stream's image.
    read = plain(images["raw"]["dynamodb"]["NewImage"])
    assert read == plain({**typed(mail_item("raw")), "blob": {"B": "AAE="}})
    assert {each["eventName"] for each in images.values()} == {"INSERT"}


def test_a_begun_message_is_queued_with_the_attempt_of_its_claim(stage: RepairStage) -> None:
    stage.know("first", status="sending", startedAt=1)
    stage.know("third", status="sending", attempts=2)
    stage.put(mail_item("first", expires_at="2020-01-01T00:00:00Z"), mail_item("third"))
    code, answer = scanned("--yes")
    assert (code, answer["repaired"]) == (0, {"mail": 2})
    assert {each["id"]: each["attempt"] for each in stage.bodies("mail")} == {"first": 1, "third": 3}


def test_a_repair_queues_a_message_that_a_later_start_of_its_run_prepared_but_did_not_queue(
    stage: RepairStage,
) -> None:
    start = CampaignStart("spring", "r", 2)
    new = mail_item("new") | {"attempt": 2, "campaign_start": structs.asdict(start)}
    ledger = Ledger(stage.dynamodb, LEDGER, lease=60, ttl=1e6, clock=lambda: 1_790_000_000.0)
    assert ledger.restart(Key("new", "mail"), {}, start) == 2
    stage.know("cut off", status="retrying", attempts=1)
    old = mail_item("cut off") | {"campaign_start": {**new["campaign_start"], "start": 1}}
    stage.put(new, old)
    code, answer = scanned("--yes")
    assert (code, answer["found"], answer["repaired"]) == (0, {"overdue": {"mail": 2}}, {"mail": 2})
    # The start stays: a crash before the new item was put leaves the old item, which the worker cancels.
    queued = sorted(stage.bodies("mail"), key=lambda body: body["id"])
    assert queued == [old | {"attempt": 2}, new]


def test_a_repair_hands_an_item_of_a_later_start_without_its_attempt_to_dispatch_if_it_is_missing(
    stage: RepairStage,
) -> None:
    item = mail_item("lost") | {"campaign_start": {"campaign": "spring", "run": "r", "start": 2}}
    stage.put(item | {"attempt": 2})
    assert scanned("--yes")[1]["repaired"] == {"mail": 1}
    (record,) = stage.functions.records("dispatch")
    assert plain(record["dynamodb"]["NewImage"]) == item


def test_a_waiting_message_is_left_to_the_function_release_and_a_released_one_is_queued_again(
    stage: RepairStage,
) -> None:
    due = {"status": "scheduled", "scheduledFor": "2026-01-01T00:00:00.000Z"}
    stage.know("waits", **due, wait=MARK)
    stage.know("lost", **due)
    stage.know("gone", **due)
    stage.put(mail_item("waits"), mail_item("lost"))
    before = stage.ledger("waits")
    code, answer = scanned("--yes")
    assert (code, answer["found"]) == (1, {"overdue": {"mail": 1}, "gone": {"mail": 1}})
    assert [body["id"] for body in stage.bodies("mail")] == ["lost"]
    assert "it waits for" in run("resend", "waits", "--dry-run").stdout
    assert stage.ledger("waits") == before


def test_a_due_attempt_of_a_fax_is_handed_to_the_function_outcomes_as_a_stream_record(
    stage: RepairStage,
) -> None:
    error = {"code": "busy", "message": "Fax status: busy"}
    stage.know("waits", "fax", status="retrying", attempts=2, error=error, to="+16175551234")
    stage.know("reopened", "fax", status="retrying", attempts=20, generation=1)
    stage.know("held", "fax", status="sending", attempts=1)
    assert scanned("--yes")[1]["repaired"] == {"fax": 3}
    changes = {
        each["dynamodb"]["NewImage"]["id"]["S"]: each["dynamodb"]
        for each in stage.functions.records("outcomes")
    }
    moved = {
        id_: (images["OldImage"]["status"]["S"], images["NewImage"]["status"]["S"])
        for id_, images in changes.items()
    }
    assert moved == dict.fromkeys(("waits", "reopened", "held"), ("sending", "retrying"))
    # Another generation is a resend, about which no callback is sent.
    lives = {id_: "generation" in images["OldImage"] for id_, images in changes.items()}
    assert lives == {"waits": False, "reopened": True, "held": True}
    assert changes["reopened"]["OldImage"]["generation"] == {"N": "0"}


def test_a_repair_does_not_write_to_the_ledger(stage: RepairStage) -> None:
    stage.know("a", status="sending", startedAt=1)
    stage.put(mail_item("a"), mail_item("b"))
    before = stage.ledger("a")
    scanned("--yes")
    assert stage.ledger("a") == before
    assert not stage.ledger("b")


def test_a_dry_run_of_a_repair_does_not_requeue_a_message_and_exits_with_1(stage: RepairStage) -> None:
    stage.put(mail_item("a"))
    code, answer = scanned("--dry-run")
    assert (code, answer["found"], answer["repaired"]) == (1, {"missing": {"mail": 1}}, {})
    assert not stage.functions.invoked
    assert scanned("--yes")[0] == 0


def test_a_repair_exits_with_0_without_a_question_if_no_message_is_stuck(stage: RepairStage) -> None:
    stage.put(mail_item("a"))
    stage.failed("a")
    result = run("resend", "--stuck", "--older-than", "0s")
    assert result.exit_code == 0
    assert result.stdout == "1 of the mailbox and 1 of the ledger looked at; 0 put back.\n"


def test_a_repair_counts_messages_that_dispatch_refuses_and_exits_with_1(stage: RepairStage) -> None:
    stage.put(mail_item("a"), mail_item("b"))
    stage.functions.failing = {"1"}
    assert [scanned("--yes")[1][name] for name in ("repaired", "failed")] == [{"mail": 1}, 1]
    stage.functions.error = "Unhandled"
    code, answer = scanned("--yes")
    assert (code, answer["repaired"], answer["failed"]) == (1, {}, 2)


def test_a_repair_skips_a_message_that_changes_between_its_two_scans(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put(mail_item("slow"), mail_item("lost"))
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 1:
            stage.know("slow", status="sending", updatedAt="2999-01-01T00:00:00.000Z")
        clock[0] += seconds

    clock = [NOW]
    # Other tests of this process may have left threads that sleep.
    monkeypatch.setattr("mailroom_ops.repair.stuck.time", SimpleNamespace(sleep=sleep, time=time.time))
    working = DeployedStage.of
    monkeypatch.setattr(
        "mailroom_ops.repair.stuck.DeployedStage.of",
        lambda *given: replace(working(*given), clock=lambda: clock[0]),
    )
    result = run("resend", "--stuck", "--older-than", "15m", "--yes", "--json")
    answer = json.loads(result.stdout)
    assert (sum(waited), answer["repaired"]) == (900, {"mail": 1})


def test_a_repair_with_an_invalid_span_of_time_exits_with_2(stage: RepairStage) -> None:
    result = run("resend", "--stuck", "--older-than", "soon")
    assert result.exit_code == 2
    assert "use one like 90s, 15m, 2h, 1d or 2w" in result.stderr


# dead letters


def test_a_repair_of_stuck_messages_reports_a_dead_letter_without_a_requeue_and_exits_with_1(
    stage: RepairStage,
) -> None:
    stage.know("a", status="sending", dead_lettered_at=ms_ago(HOUR))
    stage.put(mail_item("a"))
    code, answer = scanned("--yes")
    assert (code, answer["found"], answer["repaired"]) == (1, {"dead_letter": {"mail": 1}}, {})


# many


def test_a_repair_bounds_the_bytes_and_records_of_each_invocation_of_dispatch(stage: RepairStage) -> None:
    large = [mail_item(f"m{at}", text="x" * 300_000) for at in range(30)]
    small = [mail_item(f"s{at}") for at in range(250)]
    stored = [StoredMessage(Key(each["id"], "mail"), None, each) for each in (*large, *small)]
    requeuer = Requeuer(DeployedStage.of(stage.session, "dev"))
    assert requeuer.requeue([("dispatch", each) for each in stored]) == set()
    sizes = [len(records) for _, records in stage.functions.invoked]
    assert sum(sizes) == 280
    assert max(sizes) == 100
    assert sizes[0] == 13


def test_a_repair_reads_every_page_of_the_mailbox_and_of_the_ledger(stage: RepairStage) -> None:
    text = "x" * 100_000
    for at in range(25):
        stage.put(mail_item(f"m{at}", text=text))
        stage.know(f"k{at}", status="sending", startedAt=1)
    code, answer = scanned("--yes")
    assert (code, answer["looked_at"]) == (1, {"mailbox": 25, "ledger": 25})
    assert answer["found"] == {"missing": {"mail": 25}, "gone": {"mail": 25}}
    assert len(stage.functions.records("dispatch")) == 25
