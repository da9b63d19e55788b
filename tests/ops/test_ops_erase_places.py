"""Erasing a person beside their messages: choices, objects, batches, dead letters, runs, new tables."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer import Typer

from ops.erase.command import erase
from tests.support.ops.dead_letters import PAYLOADS, UNPROCESSED, Over, Stage, erasable, run

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


def test_the_spelling_of_before_goes_with_the_choices_and_with_no_message_of_the_other_domain(
    stage: Stage,
) -> None:
    now, before = "v@xn--strae-oqa.example", "v@strasse.example"
    for each in (now, before, BOB):
        stage.put("preferences", recipient=each, topic="news", opted_out_at=1, by="page")
    both = {"to": ["v@straße.example", BOB], "recipients": {before: {}, BOB: {}}}
    stage.put("ledger", id="m-1", event_type="mail", status="sent", completedAt=2, **both)
    stage.put("ledger", id="m-2", event_type="mail", status="sent", completedAt=2, to=before)
    answer = erased(recipient="v@straße.example")
    assert (answer["left"], place(answer, "preferences")) == (0, {"found": 2, "erased": 2})
    assert [each["recipient"] for each in stage.items("preferences")] == [BOB]
    ledger = {each["id"]: each for each in stage.items("ledger")}
    assert (ledger["m-1"]["to"], [*ledger["m-1"]["recipients"]]) == ([BOB], [BOB])
    assert ledger["m-2"]["to"] == before


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
        patch.setattr("ops.erase.messages.SETTLED_AFTER", 900)
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


# batches


def test_a_waiting_batch_loses_the_persons_records_and_keeps_the_others(stage: Stage) -> None:
    items = [
        {"id": f"m-{at}", "event_type": "mail", "to": to} for at, to in enumerate([ADA, BOB, [ADA, BOB]])
    ]
    key = stage.put_batch("one", *items)
    assert place(erased(), "unprocessed") == {"found": 1, "erased": 1}
    assert stage.batch(key) == [items[1], {**items[2], "to": [BOB]}]


def test_a_batch_of_nothing_but_the_person_goes_also_one_that_was_replayed(stage: Stage) -> None:
    for waiting in (True, False):
        stage.put_batch("one", {"id": "m-1", "event_type": "mail", "email": ADA}, waiting=waiting)
    erased()
    assert not stage.objects(UNPROCESSED)


def test_a_batch_without_the_person_is_not_written(stage: Stage) -> None:
    key = stage.put_batch("one", {"id": "m-1", "event_type": "mail", "to": BOB})
    before = stage.s3.head_object(Bucket=UNPROCESSED, Key=key)["LastModified"]
    erased()
    assert stage.s3.head_object(Bucket=UNPROCESSED, Key=key)["LastModified"] == before


def test_an_undispatched_message_to_others_keeps_its_words_and_is_named(stage: Stage) -> None:
    item = {"id": "m-1", "event_type": "mail", "to": BOB, "text": f"From {ADA}"}
    waits, over = stage.put_batch("one", item), stage.put_batch("two", item, waiting=False)
    answer = erased(code=1)
    assert [each["what"] for each in answer["remains"]] == [waits]
    assert (stage.batch(waits), stage.batch(over)[0]["text"]) == ([item], "From erased")


def test_a_batch_whose_message_would_be_left_with_those_in_bcc_alone_stays_and_is_named(stage: Stage) -> None:
    item = {"id": "m-1", "event_type": "mail", "to": ADA, "bcc": [BOB]}
    key = stage.put_batch("one", item)
    assert [each["what"] for each in erased(code=1)["remains"]] == [key]
    assert stage.batch(key) == [item]


class Replaying(Stage):
    """Somebody replays a batch while it is read: it is moved just before `call`."""

    call = "get_object"

    def client(self, service_name: Any, *args: Any, **kwargs: Any) -> Any:
        client = super().client(service_name, *args, **kwargs)
        if service_name != "s3" or not hasattr(self, "urls"):
            return client
        return Over(client, **{self.call: lambda **how: self._moved(client, **how)})

    def _moved(self, client: Any, **how: Any) -> Any:
        if how["Key"].startswith("aws/"):
            place = {"Bucket": how["Bucket"], "Key": how["Key"]}
            client.copy_object(Bucket=how["Bucket"], Key=f"replayed/{how['Key']}", CopySource=place)
            client.delete_object(**place)
        return getattr(client, self.call)(**how)


@pytest.mark.parametrize(("call", "code"), [("get_object", 0), ("put_object", 1)])
def test_a_batch_that_is_replayed_meanwhile_is_not_brought_back(
    monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    with erasable(monkeypatch, Replaying) as stage:
        assert isinstance(stage, Replaying)
        stage.call = call
        others = [{"id": f"m-{at}", "event_type": "mail", "to": to} for at, to in enumerate([ADA, BOB])]
        key = stage.put_batch("one", *others)
        assert run(app, ADA, "--yes", "--json").exit_code == code
        assert stage.objects(UNPROCESSED) == [f"replayed/{key}"]
        assert run(app, ADA, "--yes", "--json").exit_code == 0
        assert stage.batch(f"replayed/{key}") == others[1:]


def test_an_object_that_is_no_text_is_named_and_holds_nothing_up(stage: Stage) -> None:
    stage.s3.put_object(Bucket=UNPROCESSED, Key="aws/lambda/a", Body=b"\xff\xfe\x00")
    stage.put_batch("one", {"id": "m-1", "event_type": "mail", "to": ADA})
    answer = erased(code=1)
    assert [each["what"] for each in answer["remains"]] == ["aws/lambda/a"]
    assert stage.objects(UNPROCESSED) == ["aws/lambda/a"]


# dead letters


def test_a_letter_of_a_message_that_was_cancelled_goes_with_what_was_told_of_it(stage: Stage) -> None:
    item = {"id": "m-1", "event_type": "mail", "to": ADA}
    stage.put("mailbox", **item)
    stage.put("ledger", **item, status="sending", claim_token="t", updatedAt="x")
    letter = stage.send("mail-dlq", item)
    stage.put("dead-letters", message_id=letter, id="m-1", event_type="mail", first_seen=1)
    answer = erased()
    assert place(answer, "dead-letter queues") == {"found": 1, "erased": 1}
    assert not stage.waiting("mail-dlq")
    assert not stage.items("dead-letters")
    assert stage.item("ledger", "m-1")["status"] == "cancelled"


def test_a_letter_that_neither_table_knows_goes_and_its_copies_are_never_sent(stage: Stage) -> None:
    stage.send("mail-dlq", {"id": "m-1", "event_type": "mail", "to": ADA})
    assert erased()["left"] == 0
    assert not stage.waiting("mail-dlq")
    assert "completedAt" in stage.item("ledger", "m-1")


def test_letters_to_others_stay_and_those_that_name_the_person_are_told_of(stage: Stage) -> None:
    stage.send("mail-dlq", {"id": "m-1", "event_type": "mail", "to": BOB})
    named = stage.send("mail-dlq", {"id": "m-2", "event_type": "mail", "to": [ADA, BOB]})
    odd = stage.send("mail-dlq", f"nonsense of {ADA}")
    answer = erased(code=1)
    assert {each["what"] for each in answer["remains"]} == {
        f"mail, dead letter {each}" for each in (named, odd)
    }
    assert len(stage.waiting("mail-dlq")) == 3


def test_a_letter_of_what_a_worker_holds_stays(stage: Stage) -> None:
    item = {"id": "m-1", "event_type": "mail", "to": ADA}
    stage.put("ledger", **item, status="sending", startedAt=5, updatedAt="x")
    stage.send("mail-dlq", item)
    erased(code=1)
    assert len(stage.waiting("mail-dlq")) == 1


def test_more_letters_of_one_fifo_group_than_one_receive_shows_all_go(stage: Stage) -> None:
    number = "+16175551234"
    for at in range(13):
        body = {"fax_id": f"f-{at}", "to": number, "pdf_url": "https://x.example/f.pdf"}
        stage.send("fax-dlq.fifo", body, MessageGroupId=number, MessageDeduplicationId=f"d-{at}")
    result = run(app, number, "--yes", "--json")
    assert place(json.loads(result.stdout), "dead-letter queues")["erased"] == 13
    assert not stage.waiting("fax-dlq.fifo")


# runs and other tables


def test_what_a_run_quotes_goes_and_its_counts_stay(stage: Stage) -> None:
    faults = [f"line 3: {ADA!r} twice", "line 4: 'x' is no address"]
    stage.put("campaign-runs", campaign="c", run="r", state="collected", refused=2, faults=faults)
    assert erased()["left"] == 0
    (row,) = stage.items("campaign-runs")
    assert row["faults"] == ["line 3: 'erased' twice", faults[1]]
    assert row["refused"] == 2


def test_the_place_where_a_run_goes_on_is_left_until_it_is_over(stage: Stage) -> None:
    run_ = {"campaign": "c", "run": "r", "cursor": json.dumps([ADA])}
    stage.put("campaign-runs", **run_, state="collecting")
    assert "is collecting" in erased(code=1)["remains"][0]["why"]
    assert stage.items("campaign-runs")[0]["cursor"] == run_["cursor"]
    stage.put("campaign-runs", **run_, state="stopped")
    assert erased()["left"] == 0
    assert "cursor" not in stage.items("campaign-runs")[0]


def test_a_table_that_is_new_to_the_stage_is_not_forgotten(stage: Stage) -> None:
    stage.dynamodb.create_table(
        TableName="mailroom-dev-diary",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "day", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "day", "AttributeType": "S"}],
    )
    stage.put("diary", day="today", said=f"met {ADA}")
    answer = erased(code=1)
    assert place(answer, "diary") == {"found": 1, "left": 1}
