"""Erasing a person beside their messages: choices, objects, batches, dead letters, runs, new tables."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer import Typer

from mailroom_ops.people.erase import erase
from tests.support.ops.dead_letters import PAYLOADS, Stage, erasable, run

ADA = "ada@example.com"
BOB = "bob@example.com"
OVER: dict[str, Any] = {
    "status": "sent",
    "completedAt": 2,
    "updatedAt": "2026-11-21T09:00:00.000Z",
    "attempts": 1,
}
app = Typer()
app.command()(erase)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with erasable(monkeypatch) as stage:
        yield stage


def erased(*options: str, recipient: str = ADA, code: int = 0) -> Any:
    result = run(app, recipient, "--yes", "--json", *options)
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return json.loads(result.stdout)


def place(answer: Any, name: str) -> dict[str, int]:
    (found,) = (each for each in answer["places"] if each["place"] == name)
    return {what: count for what, count in found.items() if what != "place" and count}


def chose(stage: Stage) -> None:
    stage.put("preferences", recipient=ADA, topic="news", opted_out_at=1, by="page")
    stage.put("preferences", recipient=BOB, topic="news", opted_out_at=1, by="page")
    stage.put("suppressions", recipient=ADA, channel="mail", reason="bounce", at=1, detail="", message_id="m")
    stage.put("suppressions", recipient=BOB, channel="mail", lifted_at=1)
    stage.ses.listed.add(ADA)


# choices


def test_opt_outs_and_suppressions_go_as_well_and_nobody_elses(stage: Stage) -> None:
    chose(stage)
    answer = erased()
    assert place(answer, "preferences") == {"found": 1, "erased": 1}
    assert place(answer, "suppressions") == {"found": 1, "erased": 1}
    assert (answer["ses"], stage.ses.listed) == ("lifted", set())
    assert [each["recipient"] for each in stage.items("preferences")] == [BOB]
    assert [each["recipient"] for each in stage.items("suppressions")] == [BOB]


def test_choices_may_be_kept_and_are_not_counted_as_left(stage: Stage) -> None:
    chose(stage)
    answer = erased("--keep-choices")
    assert place(answer, "preferences") == {"found": 1, "kept": 1}
    assert place(answer, "suppressions") == {"found": 1, "kept": 1}
    assert (answer["ses"], answer["left"], stage.ses.listed) == ("kept", 0, {ADA})
    assert len(stage.items("preferences")) == 2


# objects


def with_object(stage: Stage, id_: str, to: str, **attributes: object) -> None:
    stage.put("mailbox", id=id_, event_type="mail", to=to, **attributes)
    stage.put("ledger", id=id_, event_type="mail", to=to, **OVER)


def test_objects_of_the_persons_messages_go_and_what_others_need_too_stays(stage: Stage) -> None:
    for name in ("letter", "bill", "terms", "foreign"):
        stage.s3.put_object(Bucket=PAYLOADS, Key=name, Body=b"x")
    parts = [{"ref": f"s3://{PAYLOADS}/{name}"} for name in ("bill", "terms")]
    with_object(stage, "m-1", ADA, payload_ref=f"s3://{PAYLOADS}/letter", attachments=parts)
    with_object(stage, "m-2", BOB, attachments=parts[1:], payload_ref=f"s3://{PAYLOADS}/foreign")
    answer = erased(code=1)
    assert stage.objects(PAYLOADS) == ["foreign", "terms"]
    assert [(each["place"], each["what"]) for each in answer["remains"]] == [("payloads", "terms")]
    assert place(answer, "payloads") == {"found": 3, "erased": 2}


def test_an_object_that_a_retried_fax_needs_is_known_by_the_ledger_alone(stage: Stage) -> None:
    stage.s3.put_object(Bucket=PAYLOADS, Key="fax", Body=b"x")
    shared = {"event_type": "fax", "payload_ref": f"s3://{PAYLOADS}/fax", **OVER}
    stage.put("ledger", id="f-1", to=ADA, **shared)
    stage.put("ledger", id="f-2", to="+16175551234", **shared)
    erased(code=1)
    assert stage.objects(PAYLOADS) == ["fax"]


def test_an_object_that_was_just_put_keeps_its_message_for_the_next_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.s3.put_object(Bucket=PAYLOADS, Key="terms", Body=b"x")
    with_object(stage, "m-1", ADA, payload_ref=f"s3://{PAYLOADS}/terms")
    stage.send("mail-dlq", {"id": "m-1", "event_type": "mail", "to": ADA})
    with monkeypatch.context() as patch:
        patch.setattr("mailroom_ops.people.erased_messages.SETTLED_AFTER", 900)
        answer = erased(code=1)
    assert [(each["place"], each["what"]) for each in answer["remains"]] == [("payloads", "terms")]
    assert stage.objects(PAYLOADS) == ["terms"]
    erased()
    assert not stage.objects(PAYLOADS)
    assert not stage.items("mailbox")


def test_content_that_is_named_by_what_it_says_stays_for_whoever_says_the_same(stage: Stage) -> None:
    stage.s3.put_object(Bucket=PAYLOADS, Key="oversize/1f.json", Body=b"{}")
    with_object(stage, "m-1", ADA, payload_ref=f"s3://{PAYLOADS}/oversize/1f.json")
    answer = erased(code=1)
    assert [each["what"] for each in answer["remains"]] == ["oversize/1f.json"]
    assert stage.objects(PAYLOADS) == ["oversize/1f.json"]
    assert not stage.items("mailbox")
    erased()


def test_an_object_that_is_gone_holds_nothing_up(stage: Stage) -> None:
    with_object(stage, "m-1", ADA, payload_ref=f"s3://{PAYLOADS}/gone")
    assert place(erased(), "payloads") == {"found": 1}
    assert not stage.items("mailbox")
