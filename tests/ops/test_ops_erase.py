"""Erasing a person at the command line: from everywhere, in all spellings, and only this person."""

import json
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from typer import Typer

from mailroom.channels.contracts import CONTRACTS
from mailroom.ledger.contents import Contents, Held, item_in
from mailroom.ledger.waits import Wait, Waits
from mailroom.message.message import Key, Message, encode, parse
from mailroom_ops.people.erase import erase
from tests.support.ops.dead_letters import DeadLettersStage, erasable
from tests.support.ops.message import PAYLOADS
from tests.support.ops.run_app import run_app

STAGE = erasable
ADA = "ada@example.com"
BOB = "bob@example.com"
NOW = 1_795_251_600.0
OVER = {
    "status": "sent",
    "startedAt": 1,
    "completedAt": 2,
    "updatedAt": "2026-11-21T09:00:00.000Z",
    "attempts": 1,
}
app = Typer()
app.command()(erase)


def put_sent_message(
    stage: DeadLettersStage, id_: str, *, event_type: str = "mail", to: object = ADA, **more: Any
) -> None:
    """Put a message with an outcome into both tables. `more` are attributes of the ledger's item."""
    stage.put("mailbox", id=id_, event_type=event_type, to=to, first_name="Ada")
    stage.put("ledger", id=id_, event_type=event_type, to=to, **{**OVER, "provider_id": f"p-{id_}", **more})


def erased(*options: str, recipient: str = ADA, code: int = 0) -> Any:
    result = run_app(app, recipient, "--yes", "--json", *options)
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return json.loads(result.stdout)


def places(answer: Any, what: str) -> dict[str, int]:
    """Return the counts by place, without zeros."""
    return {each["place"]: each[what] for each in answer["places"] if each[what]}


# The operator.


def test_an_erasure_finds_an_address_in_another_spelling(stage: DeadLettersStage) -> None:
    put_sent_message(stage, "m-1", to="Ada Lovelace <ADA@Example.com>")
    answer = erased(recipient="Ada <Ada@Example.Com>")
    assert places(answer, "erased") == {"mailbox": 1, "ledger": 1}
    assert not stage.items("mailbox")


def test_an_erasure_finds_a_number_that_was_stored_in_the_national_form_of_the_stages_country(
    stage: DeadLettersStage,
) -> None:
    stage.put("mailbox", id="s-1", event_type="sms", to="(617) 555-1234")
    stage.put("ledger", id="s-1", event_type="sms", to="+16175551234", line="+16175551234", **OVER)
    erased(recipient="+1 617 555 1234")
    assert not stage.items("mailbox")
    assert not stage.item("ledger", "s-1", "sms").keys() & {"to", "line", "provider_ids"}


# messages


def test_a_message_to_one_person_is_deleted_and_its_ledger_item_is_emptied(stage: DeadLettersStage) -> None:
    error = {"code": "rejected", "message": f"550 {ADA} unknown"}
    put_sent_message(
        stage, "m-1", error=error, callback_url="https://x.example/cb", diagnostic_code=f"smtp; {ADA}"
    )
    answer = erased()
    assert (answer["left"], places(answer, "left"), answer["remains"]) == (0, {}, [])
    assert not stage.items("mailbox")
    (row,) = stage.items("ledger")
    assert row.keys() == {
        *("id", "event_type", "status", "startedAt", "completedAt", "updatedAt", "attempts", "error"),
        *("erased_at", "erased_by"),
    }
    assert row["erased_by"] == "arn:aws:sts::123456789012:user/moto"
    assert row["error"] == {"code": "rejected", "message": "erased"}


def test_a_mail_to_several_recipients_loses_only_the_erased_one(stage: DeadLettersStage) -> None:
    both = {ADA: {"status": "bounced", "diagnostic_code": f"550 {ADA}"}, BOB: {"status": "delivered"}}
    stage.put("mailbox", id="m-1", event_type="mail", to=[f"Ada <{ADA}>", BOB], cc=ADA, subject="Hello")
    stage.put("ledger", id="m-1", event_type="mail", to=[f"Ada <{ADA}>", BOB], recipients=both, **OVER)
    assert erased()["left"] == 0
    assert stage.items("mailbox") == [{"id": "m-1", "event_type": "mail", "to": [BOB], "subject": "Hello"}]
    (row,) = stage.items("ledger")
    assert (row["to"], row["recipients"]) == ([BOB], {BOB: {"status": "delivered"}})
    assert "erased_at" not in row


def test_a_recipient_in_cc_is_erased_from_the_mailbox_and_from_the_ledgers_list_of_recipients(
    stage: DeadLettersStage,
) -> None:
    stage.put("mailbox", id="m-1", event_type="mail", to=BOB, cc=[ADA], subject="Hello")
    stage.put("ledger", id="m-1", event_type="mail", to=BOB, recipients={ADA: {}, BOB: {}}, **OVER)
    erased()
    assert stage.items("mailbox") == [{"id": "m-1", "event_type": "mail", "to": BOB, "subject": "Hello"}]
    assert stage.items("ledger")[0]["recipients"] == {BOB: {}}


LATER = "2099-12-24T09:00:00.000Z"


def scheduled(stage: DeadLettersStage, id_: str, at: str = LATER, send_at: str = LATER, **item: Any) -> None:
    """A mail that waits for its `send_at`; `at` is what the ledger says of that."""
    stage.put("mailbox", id=id_, event_type="mail", send_at=send_at, **item)
    row = {"status": "scheduled", "scheduledFor": at, "updatedAt": "x", "wait": {"reason": "send_at"}}
    stage.put("ledger", id=id_, event_type="mail", to=item["to"], **row)


def waits_with_content(stage: DeadLettersStage, id_: str, to: object) -> None:
    """A mail that waits for the day, whose item is gone from the mailbox."""
    item = {"id": id_, "event_type": "mail", "to": to, "subject": "Hello", "text": f"Hi {to}"}
    message = parse(item, CONTRACTS)
    wait = Wait(message, "day_used_up", NOW, "v1", lines_up=True)
    assert Waits(stage.dynamodb, "mailroom-dev-ledger", 1e6, lambda: NOW).hold([wait]) == [True]
    hold_contents(stage, item, "v0", "v1")


def hold_contents(stage: DeadLettersStage, item: dict[str, Any], *versions: str) -> None:
    """Contents of waits of a message, in the table `contents`."""
    key = Key(item["id"], item["event_type"])
    contents_of_stage(stage).put([(Held(key, version), encode(item), NOW) for version in versions])


def contents_of_stage(stage: DeadLettersStage) -> Contents:
    """The contents of what waits."""
    return Contents(stage.dynamodb, "mailroom-dev-contents")


def test_an_erasure_moves_recipients_in_cc_to_the_field_to_if_that_would_be_empty(
    stage: DeadLettersStage,
) -> None:
    scheduled(stage, "m-1", to=ADA, cc=[BOB], bcc="carol@example.com")
    erased()
    (item,) = stage.items("mailbox")
    assert (item["to"], item["bcc"]) == ([BOB], "carol@example.com")
    assert (stage.items("ledger")[0]["status"], ADA in stage.everything()) == ("scheduled", False)
    assert "cc" not in item


def test_a_recipient_in_bcc_is_never_moved_to_a_visible_field(stage: DeadLettersStage) -> None:
    scheduled(stage, "m-1", to=ADA, bcc=[BOB])
    before = stage.everything("deeds")
    assert "would have only recipients in bcc left" in erased(code=1)["remains"][0]["why"]
    assert stage.everything("deeds") == before


def test_the_variable_email_of_a_mail_with_a_field_to_is_not_a_recipient(stage: DeadLettersStage) -> None:
    scheduled(stage, "m-1", to=ADA, email=BOB)
    erased()
    assert not stage.items("mailbox")
    assert stage.items("ledger")[0]["status"] == "cancelled"


def test_a_mention_in_a_message_to_others_is_erased_if_the_message_has_ended(stage: DeadLettersStage) -> None:
    stage.put("mailbox", id="m-1", event_type="mail", to=BOB, text=f"From ADA@example.com and {BOB}")
    stage.put("ledger", id="m-1", event_type="mail", to=BOB, **OVER)
    assert erased()["left"] == 0
    assert stage.item("mailbox", "m-1")["text"] == f"From erased and {BOB}"


def test_a_mention_in_an_unsent_message_to_others_is_left_and_named(stage: DeadLettersStage) -> None:
    stage.put("mailbox", id="m-1", event_type="mail", to=BOB, text=f"From {ADA}")
    answer = erased(code=1)
    assert [each["what"] for each in answer["remains"]] == ["m-1 (mail)"]
    assert stage.item("mailbox", "m-1")["text"] == f"From {ADA}"


# The message is being sent.


@pytest.mark.parametrize("row", [None, {"status": "scheduled"}, {"status": "sending", "claim_token": "t"}])
def test_an_unsent_message_to_the_person_is_cancelled_and_erased(
    stage: DeadLettersStage, row: dict[str, Any] | None
) -> None:
    stage.put("mailbox", id="m-1", event_type="mail", to=ADA)
    if row is not None:
        stage.put("ledger", id="m-1", event_type="mail", to=ADA, updatedAt="x", **row)
    answer = erased()
    assert (answer["cancelled"], answer["left"]) == (1, 0)
    assert stage.item("ledger", "m-1")["status"] == "cancelled"
    assert "completedAt" in stage.item("ledger", "m-1")
    assert ADA not in stage.everything()


def test_a_message_that_waits_with_its_content_is_cancelled_and_its_content_deleted(
    stage: DeadLettersStage,
) -> None:
    waits_with_content(stage, "m-1", ADA)
    waits_with_content(stage, "m-2", BOB)
    answer = erased()
    assert (answer["cancelled"], answer["left"]) == (1, 0)
    assert {each["place"]: (each["found"], each["erased"]) for each in answer["places"]}["contents"] == (2, 2)
    row = stage.item("ledger", "m-1")
    assert row["status"] == "cancelled"
    assert not row.keys() & {"wait", "waits_in", "waits_at", "to"}
    assert {each["message"] for each in stage.items("contents")} == {"mail#m-2"}


def test_the_leftover_content_of_an_ended_message_is_deleted_with_the_message(
    stage: DeadLettersStage,
) -> None:
    put_sent_message(stage, "m-1")
    hold_contents(stage, {"id": "m-1", "event_type": "mail", "to": ADA}, "v1")
    assert places(erased(), "erased")["contents"] == 1
    assert not stage.items("contents")


@pytest.mark.parametrize("row", [None, {"status": "sent", "erased_at": 1, **OVER}])
def test_a_content_that_a_crash_left_without_a_wait_in_the_ledger_is_erased(
    stage: DeadLettersStage, row: dict[str, Any] | None
) -> None:
    hold_contents(stage, {"id": "m-1", "event_type": "mail", "to": ADA}, "v1")
    hold_contents(stage, {"id": "m-2", "event_type": "mail", "to": BOB, "text": "Hi"}, "v1")
    if row is not None:
        stage.put("ledger", id="m-1", event_type="mail", **row)
    answer = erased()
    assert (places(answer, "found")["contents"], places(answer, "erased")["contents"]) == (1, 1)
    assert [each["message"] for each in stage.items("contents")] == ["mail#m-2"]
    assert erased()["places"][1]["found"] == 0


@pytest.mark.parametrize("row", [None, OVER, {"status": "scheduled", "updatedAt": "x"}])
def test_a_message_to_others_stays_unchanged_if_a_leftover_content_of_its_id_is_to_the_person(
    stage: DeadLettersStage, row: dict[str, Any] | None
) -> None:
    hold_contents(stage, {"id": "m-1", "event_type": "mail", "to": ADA}, "v1")
    hold_contents(stage, {"id": "m-1", "event_type": "mail", "to": BOB}, "v2")
    stage.put("mailbox", id="m-1", event_type="mail", to=BOB)
    if row is not None:
        stage.put("ledger", id="m-1", event_type="mail", to=BOB, **row)
    before = [*stage.items("mailbox"), *stage.items("ledger")]
    erased(code=0 if row is OVER else 1)
    assert [*stage.items("mailbox"), *stage.items("ledger")] == before
    versions = {each["version"] for each in stage.items("contents")}
    assert versions == ({"v2"} if row is OVER else {"v1", "v2"})


def test_a_leftover_content_of_a_message_to_several_is_erased_if_the_message_has_ended(
    stage: DeadLettersStage,
) -> None:
    for id_ in ("over", "queued", "waits"):
        hold_contents(stage, {"id": id_, "event_type": "mail", "to": [ADA, BOB]}, "v1")
    stage.put("ledger", id="over", event_type="mail", to=[ADA, BOB], **OVER)
    stage.put("ledger", id="waits", event_type="mail", to=[ADA, BOB], status="scheduled", updatedAt="x")
    answer = erased(code=1)
    assert {each["what"] for each in answer["remains"]} == {"queued (mail)", "waits (mail)"}
    assert {each["message"] for each in stage.items("contents")} == {"mail#queued", "mail#waits"}


def draw(stage: DeadLettersStage, random: Random, id_: str) -> None:
    """Put a message in any state, with the contents that crashes may leave."""
    to = random.choice([ADA, ADA, [ADA, BOB], BOB])
    text = random.choice(["Hi", f"Hi {ADA}"])
    item = {"id": id_, "event_type": "mail", "to": to, "subject": "Hello", "text": text}
    if random.random() < 0.5:
        stage.put("mailbox", **item)
    states = (None, OVER, {"status": "scheduled", "updatedAt": "x"}, {**OVER, "erased_at": 1}, "waits")
    state = random.choice(states)
    if state == "waits":
        wait = Wait(parse(item, CONTRACTS), "day_used_up", NOW, "v1", lines_up=True)
        assert Waits(stage.dynamodb, "mailroom-dev-ledger", 1e6, lambda: NOW).hold([wait]) == [True]
    elif isinstance(state, dict):
        who = {} if "erased_at" in state else {"to": to}
        stage.put("ledger", id=id_, event_type="mail", **who, **state)
    hold_contents(stage, item, *random.sample(["v0", "v1", "v2"], random.randrange(4)))


def contents_about_ada(stage: DeadLettersStage) -> set[str]:
    """The ids of the messages whose contents name Ada."""
    images = stage.dynamodb.scan(TableName="mailroom-dev-contents")["Items"]
    return {item["id"] for item in map(item_in, images) if ADA in json.dumps(item)}


@pytest.mark.parametrize("seed", range(6))
def test_each_content_about_the_person_is_erased_or_its_message_is_named_as_left(
    stage: DeadLettersStage, seed: int
) -> None:
    random = Random(seed)
    for number in range(30):
        draw(stage, random, f"m-{number}")
    foreign = {each["message"] for each in stage.items("contents")} - {
        f"mail#{id_}" for id_ in contents_about_ada(stage)
    }
    answer = json.loads(run_app(app, ADA, "--yes", "--json").stdout)
    named = {each["what"].removesuffix(" (mail)") for each in answer["remains"]}
    assert contents_about_ada(stage) <= named
    assert foreign <= {each["message"] for each in stage.items("contents")}
    for item in stage.items("ledger"):  # the other messages end later
        stage.put("ledger", **{**item, **OVER})
    ends = {item["id"] for item in stage.items("ledger")}
    run_app(app, ADA, "--yes", "--json")
    assert contents_about_ada(stage) <= named - ends


@pytest.mark.parametrize("held", [{"startedAt": 5}, {"provider_id": "f-1"}])
def test_a_message_that_is_being_sent_is_left_whole_and_named(
    stage: DeadLettersStage, held: dict[str, Any]
) -> None:
    stage.put("mailbox", id="m-1", event_type="mail", to=ADA)
    stage.put("ledger", id="m-1", event_type="mail", to=ADA, status="sending", updatedAt="x", **held)
    before = stage.items("ledger"), stage.items("mailbox")
    answer = erased(code=1)
    assert answer["remains"][0]["what"] == "m-1 (mail)"
    assert "has no outcome yet (sending)" in answer["remains"][0]["why"]
    assert (stage.items("ledger"), stage.items("mailbox")) == before


def test_a_mail_to_several_recipients_that_is_being_sent_is_left_to_the_next_erasure(
    stage: DeadLettersStage,
) -> None:
    stage.put("mailbox", id="m-1", event_type="mail", to=[ADA, BOB])
    several = {"to": [ADA, BOB], "recipients": {ADA: {}, BOB: {}}}
    stage.put("ledger", id="m-1", event_type="mail", status="sending", startedAt=5, updatedAt="x", **several)
    assert erased(code=1)["left"] == 2
    stage.put("ledger", id="m-1", event_type="mail", **several, **OVER)
    assert erased()["left"] == 0
    assert ADA not in stage.everything()


def test_a_mail_to_several_recipients_that_waits_with_its_content_is_left_whole(
    stage: DeadLettersStage,
) -> None:
    waits_with_content(stage, "m-1", [ADA, BOB])
    before = stage.everything("deeds")
    assert "has no outcome yet (scheduled)" in erased(code=1)["remains"][0]["why"]
    assert stage.everything("deeds") == before


@pytest.mark.parametrize(
    ("at", "send_at"),
    [("2026-01-01T00:00:00.000Z", LATER), (LATER, "2026-01-01T00:00:00.000Z")],
    ids=["its time has come", "it was put anew, to go at once"],
)
def test_a_mail_to_several_recipients_whose_time_may_have_come_is_left_whole(
    stage: DeadLettersStage, at: str, send_at: str
) -> None:
    scheduled(stage, "m-1", at, send_at, to=[ADA, BOB])
    before = stage.everything("deeds")
    assert "has no outcome yet (scheduled)" in erased(code=1)["remains"][0]["why"]
    assert stage.everything("deeds") == before


def test_an_unclaimed_mail_to_several_recipients_is_left_whole_until_it_has_an_outcome(
    stage: DeadLettersStage,
) -> None:
    stage.put("mailbox", id="m-1", event_type="mail", to=[ADA, BOB])
    answer = erased(code=1)
    assert "it has no record of being sent" in answer["remains"][0]["why"]
    assert stage.items("mailbox")[0]["to"] == [ADA, BOB]
    assert not stage.items("ledger")
    stage.put("ledger", id="m-1", event_type="mail", to=[ADA, BOB], **OVER)
    erased()
    assert stage.items("mailbox")[0]["to"] == [BOB]


# again


def test_a_second_erasure_of_a_person_finds_no_data(stage: DeadLettersStage) -> None:
    put_sent_message(stage, "m-1")
    erased()
    before = stage.items("ledger")
    assert not places(erased(), "found")
    assert stage.items("ledger") == before


def test_a_dry_run_of_an_erasure_reports_the_places_with_data_but_does_not_change_an_item(
    stage: DeadLettersStage,
) -> None:
    put_sent_message(stage, "m-1")
    stage.put("preferences", recipient=ADA, topic="news", opted_out_at=1, by="page")
    before = stage.everything()
    answer = erased("--dry-run")
    assert places(answer, "found") == {"mailbox": 1, "ledger": 1, "preferences": 1}
    assert (answer["dry_run"], answer["left"]) == (True, 3)
    assert stage.everything() == before


def test_an_erasure_shows_its_survey_and_requires_a_confirmation(stage: DeadLettersStage) -> None:
    put_sent_message(stage, "m-1")
    stage.put("preferences", recipient=ADA, topic="news", opted_out_at=1, by="page")
    before = stage.everything()
    result = run_app(app, ADA, typed="n\n")
    assert result.exit_code == 1
    assert "Delete 1 message of dev and remove the recipient from 0 messages to others?" in result.stderr
    assert "After that, a campaign" in result.stdout
    assert stage.everything() == before


def test_an_erasure_that_crashes_is_finished_by_the_next_one(
    stage: DeadLettersStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        put_sent_message(stage, f"m-{number}")
    stage.s3.put_object(Bucket=PAYLOADS, Key="a", Body=b"x")
    stage.put("mailbox", id="m-0", event_type="mail", to=ADA, payload_ref=f"s3://{PAYLOADS}/a")
    with monkeypatch.context() as patch:
        patch.setattr("mailroom_ops.people.erase_messages.MessageErasure._delete", dies)
        assert isinstance(run_app(app, ADA, "--yes").exception, RuntimeError)
    assert erased()["left"] == 0
    assert ADA not in stage.everything()
    assert not stage.objects(PAYLOADS)


def dies(*_: object) -> None:
    raise RuntimeError("killed")


def test_an_erasure_reports_data_that_expires_by_itself_with_the_time_of_its_end(
    stage: DeadLettersStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_sent_message(stage, "m-1")
    monkeypatch.setattr("mailroom_ops.people.stage_data.time", SimpleNamespace(time=lambda: 1_800_000_000.0))
    assert erased()["goes"] == [
        {"what": "dead letters and their records", "by": "2027-01-29T08:00:00.000Z"},
        {"what": "batches that a stream gave up on", "by": "2027-02-14T08:00:00.000Z"},
        {"what": "backups", "by": "2027-02-19T08:00:00.000Z"},
    ]
    assert "completedAt" in stage.item("ledger", "m-1")


def test_an_erasure_reports_ids_that_contain_the_recipient_and_when_they_expire(
    stage: DeadLettersStage,
) -> None:
    put_sent_message(stage, f"welcome-{ADA}", ttl=1_803_078_485)
    for _ in range(2):
        answer = erased(code=1)
        assert answer["ids"] == [f"welcome-{ADA}"]
        assert answer["ids_until"] == "2027-02-19T23:08:05.000Z"


# A custom channel.


class Chat(Message, frozen=True, kw_only=True):
    """A channel for which the command lacks a row."""

    addressing: ClassVar[tuple[str, ...]] = ("chat_id",)
    chat_id: str


def chatted(stage: DeadLettersStage, id_: str, chat_id: str) -> None:
    stage.put("mailbox", id=id_, event_type="chat", chat_id=chat_id, text="Your code is 12345.")
    stage.put("ledger", id=id_, event_type="chat", to=chat_id, **OVER)


def test_a_recipient_of_a_custom_channel_is_found_by_the_contract_of_the_channel(
    stage: DeadLettersStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONTRACTS, "chat", Chat)
    chatted(stage, "c-1", "12345")
    stage.put("suppressions", recipient="12345", channel="chat", reason="gone", at=1)
    chatted(stage, "c-2", "99999")
    put_sent_message(stage, "m-1", to=BOB, subject="12345")
    stage.put("suppressions", recipient="12345", channel="mail", reason="gone", at=1)
    others = [stage.item("ledger", "c-2", "chat"), stage.item("ledger", "m-1")]
    answer = erased("--channel", "chat", recipient=" 12345 ")
    assert places(answer, "erased") == {"mailbox": 1, "ledger": 1, "suppressions": 1}
    assert sorted(each["id"] for each in stage.items("mailbox")) == ["c-2", "m-1"]
    assert "to" not in stage.item("ledger", "c-1", "chat")
    assert [stage.item("ledger", "c-2", "chat"), stage.item("ledger", "m-1")] == others
    assert [each["channel"] for each in stage.items("suppressions")] == ["mail"]


def counts_of_place(answer: Any, name: str) -> dict[str, int]:
    (found,) = (each for each in answer["places"] if each["place"] == name)
    return {what: count for what, count in found.items() if what != "place" and count}


def chose(stage: DeadLettersStage) -> None:
    stage.put("preferences", recipient=ADA, topic="news", opted_out_at=1, by="page")
    stage.put("preferences", recipient=BOB, topic="news", opted_out_at=1, by="page")
    stage.put("suppressions", recipient=ADA, channel="mail", reason="bounce", at=1, detail="", message_id="m")
    stage.put("suppressions", recipient=BOB, channel="mail", lifted_at=1)
    stage.ses.listed.add(ADA)


# choices


def test_opt_outs_and_suppressions_of_the_person_alone_are_erased(stage: DeadLettersStage) -> None:
    chose(stage)
    answer = erased()
    assert counts_of_place(answer, "preferences") == {"found": 1, "erased": 1}
    assert counts_of_place(answer, "suppressions") == {"found": 1, "erased": 1}
    assert (answer["ses"], stage.ses.listed) == ("lifted", set())
    assert [each["recipient"] for each in stage.items("preferences")] == [BOB]
    assert [each["recipient"] for each in stage.items("suppressions")] == [BOB]


def test_an_erasure_may_keep_opt_outs_and_suppressions_and_does_not_count_them_as_left(
    stage: DeadLettersStage,
) -> None:
    chose(stage)
    answer = erased("--keep-choices")
    assert counts_of_place(answer, "preferences") == {"found": 1, "kept": 1}
    assert counts_of_place(answer, "suppressions") == {"found": 1, "kept": 1}
    assert (answer["ses"], answer["left"], stage.ses.listed) == ("kept", 0, {ADA})
    assert len(stage.items("preferences")) == 2


# objects


def with_object(stage: DeadLettersStage, id_: str, to: str, **attributes: object) -> None:
    stage.put("mailbox", id=id_, event_type="mail", to=to, **attributes)
    stage.put("ledger", id=id_, event_type="mail", to=to, **OVER)


def test_objects_of_the_persons_messages_are_deleted_unless_another_message_needs_them(
    stage: DeadLettersStage,
) -> None:
    for name in ("letter", "bill", "terms", "foreign"):
        stage.s3.put_object(Bucket=PAYLOADS, Key=name, Body=b"x")
    parts = [{"ref": f"s3://{PAYLOADS}/{name}"} for name in ("bill", "terms")]
    with_object(stage, "m-1", ADA, payload_ref=f"s3://{PAYLOADS}/letter", attachments=parts)
    with_object(stage, "m-2", BOB, attachments=parts[1:], payload_ref=f"s3://{PAYLOADS}/foreign")
    answer = erased(code=1)
    assert stage.objects(PAYLOADS) == ["foreign", "terms"]
    assert [(each["place"], each["what"]) for each in answer["remains"]] == [("payloads", "terms")]
    assert counts_of_place(answer, "payloads") == {"found": 3, "erased": 2}


def test_an_object_stays_if_the_ledger_item_of_a_fax_to_another_person_names_it(
    stage: DeadLettersStage,
) -> None:
    stage.s3.put_object(Bucket=PAYLOADS, Key="fax", Body=b"x")
    shared = {"event_type": "fax", "payload_ref": f"s3://{PAYLOADS}/fax", **OVER}
    stage.put("ledger", id="f-1", to=ADA, **shared)
    stage.put("ledger", id="f-2", to="+16175551234", **shared)
    erased(code=1)
    assert stage.objects(PAYLOADS) == ["fax"]


def test_an_object_that_was_just_put_is_left_with_its_message_until_the_next_erasure(
    stage: DeadLettersStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.s3.put_object(Bucket=PAYLOADS, Key="terms", Body=b"x")
    with_object(stage, "m-1", ADA, payload_ref=f"s3://{PAYLOADS}/terms")
    with monkeypatch.context() as patch:
        patch.setattr("mailroom_ops.people.erase_messages.SETTLED_AFTER", 900)
        answer = erased(code=1)
    assert [(each["place"], each["what"]) for each in answer["remains"]] == [("payloads", "terms")]
    assert stage.objects(PAYLOADS) == ["terms"]
    assert [item["id"] for item in stage.items("mailbox")] == ["m-1"]
    erased()
    assert not stage.objects(PAYLOADS)
    assert not stage.items("mailbox")


def test_an_erasure_leaves_and_names_an_object_with_a_content_hash_as_its_key(
    stage: DeadLettersStage,
) -> None:
    stage.s3.put_object(Bucket=PAYLOADS, Key="oversize/1f.json", Body=b"{}")
    with_object(stage, "m-1", ADA, payload_ref=f"s3://{PAYLOADS}/oversize/1f.json")
    answer = erased(code=1)
    assert [each["what"] for each in answer["remains"]] == ["oversize/1f.json"]
    assert stage.objects(PAYLOADS) == ["oversize/1f.json"]
    assert not stage.items("mailbox")
    erased()


def test_a_missing_object_does_not_stop_an_erasure(stage: DeadLettersStage) -> None:
    with_object(stage, "m-1", ADA, payload_ref=f"s3://{PAYLOADS}/gone")
    assert counts_of_place(erased(), "payloads") == {"found": 1}
    assert not stage.items("mailbox")
