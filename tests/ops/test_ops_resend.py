"""`resend`: which messages are sent again, what is asked, what is queued, and what is said."""

import json
import time
from io import StringIO
from typing import Any

import pytest
from msgspec import convert, structs

from mailroom.campaigns.runs import Runs
from mailroom.ledger.items import PAUSED
from mailroom.ledger.run_states import STOPPED, RunStates
from mailroom.message.message import CampaignStart, Key
from mailroom.recipients.choices import Suppression, Suppressions
from mailroom_ops.repair.resender import judge
from mailroom_ops.shared.screen import Refused
from mailroom_ops.shared.selected_messages import MessageRef, selected
from tests.support.campaign_start import of_run
from tests.support.ops.repair import RepairStage, repair_stage, run, run_resend
from tests.support.ops.shared import RUNS
from tests.support.pipeline.items import mail_item

STAGE = repair_stage


def test_a_failed_message_is_reopened_and_queued_with_its_next_attempt(stage: RepairStage) -> None:
    stage.failed("a")
    stage.put(mail_item("a", subject="Now", text="as it is now"))
    code, found = run_resend("a")
    assert (code, found["a"]["result"], found["a"]["attempt"]) == (0, "resent", 2)
    row = stage.ledger("a")
    assert (row["status"], row["generation"]) == ("retrying", 1)
    assert "completedAt" not in row
    assert "arrived_before" not in row
    assert stage.bodies("mail") == [mail_item("a", subject="Now", text="as it is now") | {"attempt": 2}]
    assert not stage.functions.invoked


def test_a_resent_message_goes_to_the_queue_of_its_lane_with_the_attributes_that_dispatch_sets(
    stage: RepairStage,
) -> None:
    stage.failed("bulk")
    stage.put(mail_item("bulk", lane="bulk"))
    stage.failed("hook", "webhook")
    stage.put({"id": "hook", "event_type": "webhook", "url": "https://hooks.example/x", "payload": 1})
    assert run_resend("bulk", "hook")[0] == 0
    assert [each["id"] for each in stage.bodies("mail-bulk")] == ["bulk"]
    url = stage.urls["webhook"]
    (message,) = stage.sqs.receive_message(
        QueueUrl=url, MessageAttributeNames=["All"], AttributeNames=["MessageGroupId"]
    )["Messages"]
    sent = {name: each["StringValue"] for name, each in message["MessageAttributes"].items()}
    assert sent == {"channel": "webhook", "type": "webhook"}
    assert message["Attributes"]["MessageGroupId"] == "hooks.example"


def failed_of_run(stage: RepairStage) -> tuple[Runs, dict[str, Any]]:
    """The runs of the past, and the item of a message of one of them, which failed."""
    runs = Runs(stage.dynamodb, RUNS, clock=lambda: 1_790_000_000.0)
    assert runs.begin("spring", "r", "s-1", "2026-09-21")
    run = runs.read("spring", "r")
    assert run is not None
    item = mail_item("", lane="bulk") | of_run(run, "ada")
    stage.put(item)
    stage.failed(item["id"])
    return runs, item


def halted(stage: RepairStage, item: dict[str, Any]) -> str:
    """Why a worker does not send the message now."""
    start = convert(item["campaign_start"], CampaignStart)
    return RunStates(stage.dynamodb, RUNS, time.time).halted([start]).get(start, "")


@pytest.mark.parametrize("since", ["stopped", "started again"])
def test_a_resent_message_of_a_run_is_cancelled_only_by_a_stop_after_the_resend(
    stage: RepairStage, since: str
) -> None:
    runs, item = failed_of_run(stage)
    if since == "stopped":
        assert runs.stop("spring", "r")
    else:
        assert runs.begin("spring", "r", "s-2", "2026-09-21")
    assert halted(stage, item) == STOPPED
    assert run_resend(item["id"])[0] == 0
    (queued,) = stage.bodies("mail-bulk")
    assert queued == item | {"attempt": 2, "campaign_start": queued["campaign_start"]}
    assert halted(stage, queued) == ""
    if since == "started again":
        assert structs.replace(runs, clock=lambda: time.time() + 60).stop("spring", "r")
        assert halted(stage, queued) == STOPPED


def test_a_resent_message_of_a_paused_run_is_held(stage: RepairStage) -> None:
    runs, item = failed_of_run(stage)
    assert runs.pause("spring", "r", "since then by ada: a wrong link")
    assert run_resend(item["id"])[0] == 0
    (queued,) = stage.bodies("mail-bulk")
    assert halted(stage, queued) == PAUSED


def test_a_reopened_fax_is_not_queued_because_the_ledgers_stream_does_it(stage: RepairStage) -> None:
    stage.failed("f", "fax", to="+16175551234", pdf_url="https://files.example/f.pdf", attempts=20)
    code, found = run_resend("f")
    assert (code, found["f"]["attempt"]) == (0, 21)
    assert stage.ledger("f", "fax")["status"] == "retrying"
    assert not stage.bodies("fax-retry")


PARTLY = {"a@b.example": {"status": "bounced"}, "c@b.example": {"status": "delivered"}}
OVER: dict[str, tuple[dict[str, Any], str]] = {
    "sent": ({"status": "sent"}, "so it would arrive twice; --force"),
    "delivered": ({"status": "delivered"}, "so it would arrive twice; --force"),
    "complained": ({"status": "complained"}, "so it would arrive twice; --force"),
    "cancelled": ({"status": "cancelled"}, "its producer took it back; --force"),
    "partly": ({"status": "bounced", "recipients": PARTLY}, "some of its recipients have received it"),
}
NEVER: dict[str, tuple[dict[str, Any], str]] = {
    "erased": ({"completedAt": 1, "status": "sent", "erased_at": 1}, "its recipient was erased"),
    "unless": (
        {"completedAt": 1, "status": "cancelled", "error": {"code": "unless", "message": "sms is delivered"}},
        "sms is delivered. To send it after all",
    ),
    "sending": ({"status": "sending", "startedAt": 1}, "on its way"),
    "scheduled": ({"status": "scheduled", "wait": {"reason": "day_used_up"}}, "waits for the daily quota"),
    "handed over": ({"status": "scheduled", "scheduledFor": "2026-01-01T00:00:00Z"}, "on its way"),
    "dead": ({"status": "sending", "dead_lettered_at": 1}, "it is a dead letter"),
}
BEGUN: dict[str, Any] = {"status": "failed", "error": {"code": "settled", "message": "?"}, "completedAt": 1}


@pytest.mark.parametrize(("item", "why"), OVER.values(), ids=OVER)
def test_a_delivered_or_cancelled_message_is_refused_without_force(item: dict[str, Any], why: str) -> None:
    judgement = judge({**item, "completedAt": 1}, force=False)
    assert (judgement.go, why in judgement.why) == (False, True)
    assert judge({**item, "completedAt": 1}, force=True).go


@pytest.mark.parametrize(("item", "why"), NEVER.values(), ids=NEVER)
def test_the_option_force_does_not_resend_an_unfinished_or_erased_message_or_one_ended_by_unless(
    item: dict[str, Any], why: str
) -> None:
    judgement = judge({"event_type": "mail", **item}, force=True)
    assert (judgement.go, why in judgement.why) == (False, True)


@pytest.mark.parametrize(
    ("more", "twice"), [({"unsettled_tries": ["1 "]}, True), ({"provider_id": "p-1"}, True), ({}, False)]
)
def test_a_resend_warns_that_a_settled_message_may_arrive_twice_if_it_may_have_been_submitted(
    more: dict[str, Any], *, twice: bool
) -> None:
    judgement = judge({**BEGUN, **more}, force=False)
    assert (judgement.go, judgement.twice) == (True, twice)


def test_a_delivered_message_is_refused_and_sent_again_with_force(stage: RepairStage) -> None:
    stage.failed("a", status="delivered")
    stage.put(mail_item("a"))
    code, found = run_resend("a")
    assert (code, found["a"]["result"], stage.ledger("a")["completedAt"]) == (1, "refused", 1)
    assert not stage.bodies("mail")
    assert run_resend("a", "--force", "--yes")[0] == 0
    assert (len(stage.bodies("mail")), "arrived_before" in stage.ledger("a")) == (1, True)


def test_a_reopened_but_unqueued_message_is_queued_without_another_generation(stage: RepairStage) -> None:
    stage.failed("a")
    stage.put(mail_item("a"))
    assert stage.verbs().reopen(Key("a", "mail"), stage.ledger("a")) == 2
    assert run_resend("a")[0] == 0
    assert stage.ledger("a")["generation"] == 1
    assert [each["attempt"] for each in stage.bodies("mail")] == [2]


UNFIT: dict[str, tuple[dict[str, Any] | None, str]] = {
    "gone": (None, "no longer in the mailbox"),
    "wrong": ({"email": "nobody"}, "is not a mail address"),
    "to come": ({"send_at": "2030-01-01T00:00:00Z"}, "is in the future"),
    "an unknown lane": ({"lane": "express"}, "is not a lane"),
    "missing variable": (
        {"subject": None, "text": None, "template": "weekly-followers", "followers": []},
        "is missing; weekly-followers/subject.txt:1 uses it",
    ),
}


@pytest.mark.parametrize(("changes", "why"), UNFIT.values(), ids=UNFIT)
def test_a_message_that_would_fail_again_is_refused_with_the_advice_to_use_a_new_id(
    stage: RepairStage, changes: dict[str, Any] | None, why: str
) -> None:
    stage.failed("a")
    if changes is not None:
        stage.put(mail_item("a", **changes))
    code, found = run_resend("a", "--force", "--yes")
    assert (code, found["a"]["result"]) == (1, "refused")
    assert why in found["a"]["why"]
    assert "new id" in found["a"]["why"]
    assert stage.ledger("a")["completedAt"] == 1


def test_a_message_with_an_unknown_outcome_but_without_its_item_is_refused_with_advice(
    stage: RepairStage,
) -> None:
    stage.failed("a", error={"code": "outcome_unknown", "message": "?"})
    assert "ask its provider first" in run_resend("a", "--force", "--yes")[1]["a"]["why"]


def test_a_resend_refuses_a_fax_that_its_contract_would_refuse_again(stage: RepairStage) -> None:
    stage.failed("f", "fax", to="+16175551234")
    code, found = run_resend("f")
    assert code == 1
    assert "pdf_url" in found["f"]["why"]


def test_a_message_to_a_suppressed_recipient_is_not_resent_until_the_suppression_is_lifted(
    stage: RepairStage,
) -> None:
    suppressions = Suppressions(stage.dynamodb, "mailroom-dev-suppressions")
    suppressions.mark(Suppression("ada@example.com", "mail", "bounce", 1_795_251_600_000))
    stage.failed("a", status="bounced", error={"code": "bounce", "message": "hard bounce"})
    stage.put(mail_item("a"))
    code, found = run_resend("a")
    assert code == 1
    assert "it would be suppressed again: on the suppression list since 2026-11-21" in found["a"]["why"]
    suppressions.lift("ada@example.com", "mail")
    assert run_resend("a")[0] == 0


def test_a_resend_of_a_message_with_an_unknown_outcome_requires_a_confirmation(stage: RepairStage) -> None:
    stage.failed("a", error={"code": "outcome_unknown", "message": "?"})
    stage.put(mail_item("a"))
    refused = run("resend", "a", typed="n\n")
    assert refused.exit_code == 1
    assert "1 of them may arrive twice" in refused.stderr
    piped = run("resend", "-", typed="a\n")
    assert (piped.exit_code, "use --yes" in piped.stderr) == (2, True)
    assert stage.ledger("a")["completedAt"] == 1
    assert run("resend", "a", typed="y\n").exit_code == 0
    assert len(stage.bodies("mail")) == 1


@pytest.mark.parametrize(("count", "asked"), [(10, False), (11, True)])
def test_a_resend_of_more_than_ten_messages_requires_a_confirmation(
    stage: RepairStage, count: int, *, asked: bool
) -> None:
    for number in range(count):
        stage.failed(f"m{number}")
        stage.put(mail_item(f"m{number}"))
    result = run("resend", *(f"m{number}" for number in range(count)))
    assert (result.exit_code, "Send 11 messages of dev again?" in result.stderr) == (int(asked), asked)
    assert bool(stage.bodies("mail")) != asked


@pytest.mark.parametrize(
    "piped",
    [
        "a\nb\n\na\n",
        json.dumps(
            {
                "stage": "dev",
                "more": False,
                "failures": [{"id": "a", "event_type": "mail"}, {"id": "b", "channel": "mail"}],
            }
        ),
        '{"id": "a", "event_type": "mail"}\n{"id": "b", "event_type": "mail"}\n',
    ],
    ids=["lines", "object", "objects"],
)
def test_resend_reads_ids_from_standard_input(piped: str) -> None:
    assert [ref.id for ref in selected(["-"], None, StringIO(piped), "dev")] == ["a", "b"]


@pytest.mark.parametrize(
    ("piped", "words"),
    [
        ('{"stage": "moon", "failures": [{"id": "a", "event_type": "mail"}]}', "is about stage moon"),
        ('{"id": "a", "stage": "dev"}\n{"id": "b", "event_type": "sms", "stage": "moon"}', "stage moon"),
        ('{"stage": "dev", "more": true, "failures": [{"id": "a", "event_type": "mail"}]}', "--limit"),
        ('{"id": "a", "event_type": "mail"}\nb\n', "is not JSON: b"),
    ],
    ids=["another stage", "a line of another stage", "cut off by its limit", "a line that is not JSON"],
)
def test_resend_refuses_a_list_on_standard_input_that_is_invalid_truncated_or_of_another_stage(
    piped: str, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        selected(["-"], None, StringIO(piped), "dev")


@pytest.mark.parametrize(
    ("id_", "channel", "words"),
    [
        ("", None, "the id ''; an id has 1 to 180 bytes"),
        ("x" * 2_049, "mail", "an id has 1 to 180 bytes"),
        ("m", "", "channel: '' cannot be a channel"),
        ("m", "x" * 1_025, "cannot be a channel"),
    ],
    ids=["empty id", "long id", "empty channel", "long channel"],
)
def test_resend_refuses_an_id_or_a_channel_that_a_message_cannot_have(
    id_: str, channel: str | None, words: str
) -> None:
    with pytest.raises(Refused, match=words):
        selected([id_], channel, StringIO(), "dev")


def test_resend_reads_the_json_of_another_resend_although_it_has_an_unknown_message(
    stage: RepairStage,
) -> None:
    stage.failed("a")
    stage.put(mail_item("a"))
    _, messages = run_resend("a", "nosuch", "--dry-run")
    piped = json.dumps({"stage": "dev", "messages": [*messages.values()]})
    assert messages["nosuch"]["event_type"] == ""
    assert selected(["-"], None, StringIO(piped), "dev") == [MessageRef("a", "mail"), MessageRef("nosuch")]


def test_a_message_that_has_changed_during_the_confirmation_is_refused_despite_force(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.failed("a")
    stage.put(mail_item("a"))

    def asked(*_: object, **__: object) -> None:
        stage.failed("a", status="sent", attempts=2)

    monkeypatch.setattr("mailroom_ops.messages.sets.confirm", asked)
    code, found = run_resend("a", "--force")
    assert (code, found["a"]["result"]) == (1, "refused")
    assert "has changed since" in found["a"]["why"]
    assert stage.ledger("a")["status"] == "sent"
    assert not stage.bodies("mail")


def test_a_resend_requires_the_channel_for_an_id_that_two_channels_have(stage: RepairStage) -> None:
    stage.failed("a")
    stage.failed("a", "sms")
    stage.put(mail_item("a"))
    assert "mail and sms" in run_resend("a")[1]["a"]["why"]
    assert run_resend("a", "--channel", "mail")[0] == 0


def test_a_resend_queues_an_unclaimed_message_and_refuses_an_unknown_one(stage: RepairStage) -> None:
    stage.put(mail_item("ready"))
    code, found = run_resend("ready", "nowhere")
    assert code == 1
    assert found["ready"]["result"] == "resent"
    assert found["nowhere"]["why"] == "there is no such message in the ledger"


def test_a_dry_run_of_a_resend_shows_the_message_and_does_not_queue_it(stage: RepairStage) -> None:
    stage.failed("a")
    stage.put(mail_item("a"))
    code, found = run_resend("a", "--dry-run")
    assert (code, found["a"]["result"]) == (0, "ready")
    result = run("resend", "a", "--dry-run")
    assert "failed: rejected: 550 no" in result.stdout
    assert stage.ledger("a")["completedAt"] == 1
    assert not stage.bodies("mail")


def test_a_resend_recognizes_its_own_reopening_by_a_token_after_a_lost_response(
    stage: RepairStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.failed("a")
    stage.put(mail_item("a"))
    client = stage.dynamodb
    update = client.update_item

    def twice(**arguments: Any) -> Any:
        update(**arguments)  # the response is lost, and the SDK repeats the request
        return update(**arguments)

    monkeypatch.setattr(client, "update_item", twice)
    code, found = run_resend("a")
    assert (code, found["a"]["result"], found["a"]["attempt"]) == (0, "resent", 2)
