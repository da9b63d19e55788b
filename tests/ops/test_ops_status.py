"""`mailroom messages show`: the state of a message, and the next step."""

import json
from typing import Any

import boto3
import pytest

from mailroom.clock import epoch
from mailroom.ledger.status_reader import of_ledger, of_mailbox
from mailroom.ledger.waits import REASONS, Waits
from mailroom_ops.messages.status import settled
from mailroom_ops.messages.views import reader_of, view_of
from mailroom_ops.messages.waiting import WAITS_FOR, place_of, turn_of
from tests.support.campaign_start import start_in
from tests.support.ops.message import LEDGER, MAILBOX, Stage, answer, many, run
from tests.support.ops.shared import make_table

NOW = epoch("2026-11-21T14:00:00Z")
MS = int(NOW * 1000)


@pytest.fixture
def stage(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr("mailroom_ops.messages.status._CLAIMED_SECONDS", 0)  # no worker is about to claim
    return stage


def advice(**item: Any) -> str:
    """Return the command's text about a ledger's item at 14:00."""
    return " ".join(view_of(of_ledger({"id": "m", "event_type": "mail", **item}), "dev", NOW).advice)


def mark(reason: str) -> dict[str, Any]:
    """The mark of a message that waits."""
    return {"version": "v", "reason": reason}


def test_messages_show_has_a_sentence_for_each_reason_of_a_wait() -> None:
    assert tuple(WAITS_FOR) == REASONS


def test_messages_show_prints_the_history_the_callbacks_and_the_next_commands_of_a_failed_fax(
    stage: Stage,
) -> None:
    stage.put(
        LEDGER,
        id="m",
        event_type="fax",
        status="failed",
        to="+16175551234",
        attempts=20,
        provider="signalwire",
        provider_id="fax-7",
        completedAt=MS,
        updatedAt="2026-11-21T14:00:00.000Z",
        error={"code": "busy", "message": "Fax status: busy"},
        history=[{"at": MS - 60_000, "status": "retrying", "code": "busy"}, {"at": MS, "status": "failed"}],
        callbacks={"failed.20": {"status": "failed", "code": 503, "tries": 20, "at": MS}},
    )
    result = run("show", "m")
    assert result.exit_code == 0, result.stderr
    for words in (
        "failed since 2026-11-21 14:00:00 UTC",
        "+16175551234",
        "Fax status: busy (busy)",
        "signalwire fax-7",
        "20 ended",
        "2026-11-21 13:59:00 UTC",
        "failed.20",
        "failed, 20 tries; the endpoint answered 503",
        "mailroom messages resend m --channel fax --stage dev",
        "could not be delivered: failed.20",
    ):
        assert words in result.stdout


def test_messages_show_counts_many_recipients_and_names_the_failed_ones(stage: Stage) -> None:
    stage.put(LEDGER, id="m", event_type="mail", status="bounced", recipients=many())
    words = " ".join(run("show", "m").stdout.split())
    assert "46 delivered, 1 bounced, 1 complained, 1 without a report" in words
    for entry in ("bob@example.com bounced", "bouncedAt 2026-11-21 14:00:00 UTC", "error no such mailbox"):
        assert entry in words
    assert ("eve@example.com" in words, "p7@example.com" in words) == (True, False)


def test_messages_show_exits_with_1_if_the_message_is_unknown(stage: Stage) -> None:
    result = run("show", "nobody")
    assert (result.exit_code, "There is no message nobody in dev." in result.stdout) == (1, True)
    assert answer(run("show", "nobody", "--json")) == {"id": "nobody", "stage": "dev", "messages": []}


def test_messages_show_prints_each_message_of_an_id_or_only_that_of_the_selected_channel(
    stage: Stage,
) -> None:
    stage.put(MAILBOX, id="m", event_type="sms", to="+16175551234", text="secret words")
    stage.put(LEDGER, id="m", event_type="mail", status="sent", sentAt=MS)
    result = run("show", "m", "--json")
    assert [(each["event_type"], each["status"]) for each in answer(result)["messages"]] == [
        ("mail", "sent"),
        ("sms", "ready"),
    ]
    assert "secret words" not in result.stdout
    (one,) = answer(run("show", "m", "--channel", "sms", "--json"))["messages"]
    assert one["event_type"] == "sms"


RECENT, OLD = "2026-11-21T13:59:58Z", "2026-11-21T10:00:00Z"
AT_TELNYX = {"provider": "telnyx", "provider_id": "fx-1"}


def sending(updated_at: str = RECENT, **more: Any) -> dict[str, Any]:
    return {"status": "sending", "updatedAt": updated_at, **more}


def waiting_item(reason: str, until: str) -> dict[str, Any]:
    return {"status": "scheduled", "scheduledFor": f"2026-11-{until}:00Z", "wait": mark(reason)}


def trouble_of(code: str, message: str) -> dict[str, Any]:
    return {"trouble": {"code": code, "message": message}}


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (sending(startedAt=MS), ""),
        (sending(OLD, startedAt=MS), "mailroom messages resend"),
        (
            sending(OLD, **AT_TELNYX),
            "If no try finds out its outcome, ask telnyx for it, then: mailroom messages settle m",
        ),
        (
            sending(dead_lettered_at=MS, **AT_TELNYX),
            "mailroom messages settle m --channel mail --stage dev --as sent (or failed)",
        ),
        (sending(), "It is back in its queue"),
        (sending(**trouble_of("throttled", "slow down")), "It was not sent so far: slow down (throttled)"),
        (
            sending(**trouble_of("other_provider", "SES: Throttled")),
            "It was not sent so far: SES: Throttled (other_provider). It is tried by the channel's second "
            "provider.",
        ),
        (
            sending(startedAt=MS, **trouble_of("no_outcome", "SES: ReadTimeoutError")),
            "It may have been sent, and the next try looks for evidence first: SES: ReadTimeoutError",
        ),
        (sending(dead_lettered_at=MS), "mailroom messages dead-letters m --stage dev"),
        ({"status": "retrying", "updatedAt": OLD}, "Nothing has changed for 4 hours"),
        (
            waiting_item("send_at", "22T14:00"),
            "It waits for its send_at, 2026-11-22 14:00:00 UTC. To take it back: mailroom messages cancel m",
        ),
        (
            waiting_item("outside_window", "22T09:00"),
            "It waits until its window opens, 2026-11-22 09:00:00 UTC. Its content is stored with the wait",
        ),
        (
            waiting_item("day_used_up", "21T14:15"),
            "It waits for the daily quota, and is tried again about 2026-11-21 14:15:00 UTC.",
        ),
        (
            waiting_item("provider_refuses", "21T14:30"),
            "It waits until its provider accepts messages, and is tried about 2026-11-21 14:30:00 UTC",
        ),
        (
            waiting_item("paused", "21T10:00") | {"waits_in": "paused#mail#1"} | start_in("spring#r#ada"),
            "It waits for its campaign's run: mailroom campaign status spring shows who paused the run",
        ),
        (
            waiting_item("send_at", "21T10:00")
            | {"waits_in": "run_unknown#mail#1"}
            | start_in("spring#r#ada"),
            "It waits for its campaign's run, which is missing or cannot be read: see mailroom campaign "
            "status spring, and mailroom docs run-unknown, which shows how to end the wait. Its content",
        ),
        (waiting_item("run_unknown", "22T09:00") | {"waits_in": "due#1"}, "It waits until its window opens"),
        (waiting_item("send_at", "21T13:00"), "60 minutes late: the function release does not queue"),
        (
            {"status": "scheduled", "updatedAt": RECENT},
            "It is in its queue, and is sent at its time.",
        ),
        *(
            ({"status": status, "error": {"code": code}}, words)
            for status, code, words in (
                ("failed", "invalid", "under a new id"),
                ("failed", "expired", "expires_at"),
                ("failed", "content_gone", "still wants it to be sent, put it under a new id."),
                ("failed", "outcome_unknown", "ask the recipient"),
                ("failed", "rejected", "mailroom messages resend m --channel mail --stage dev"),
                ("suppressed", "opted_out", "mailroom people show"),
                (
                    "suppressed",
                    "not_allowed_here",
                    "mailroom.dev.recipients.only in cdk.json and deploy, then: ",
                ),
                ("suppressed", "bounce", "mailroom people show"),
                ("bounced", "", "mailroom people list"),
                ("cancelled", "", "under a new id"),
                (
                    "cancelled",
                    "stopped",
                    "A start of its run sends it, if its person is still in the audience.",
                ),
                ("cancelled", "unless", "under a new id without unless"),
            )
        ),
        ({"status": "sent"}, ""),
    ],
)
def test_the_advice_of_messages_show_depends_on_the_status_of_the_message(
    item: dict[str, Any], words: str
) -> None:
    sentences = advice(**item)
    assert words in sentences if words else sentences == ""


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "If it was put within the last 90 days, its sending has not begun"),
        (
            {},
            "puts it back: mailroom messages resend m --channel mail --stage dev. An older message may",
        ),
        ({"send_at": "2026-11-21T14:10:00Z"}, "It waits for 2026-11-21 14:10:00 UTC."),
    ],
)
def test_the_advice_of_messages_show_for_an_unclaimed_message_depends_on_its_send_at(
    more: dict[str, str], words: str
) -> None:
    item = {"id": "m", "event_type": "mail", "to": "a@example.com", **more}
    (sentence,) = view_of(of_mailbox(item, NOW), "dev", NOW).advice
    assert words in sentence


def test_messages_show_does_not_advise_a_resend_of_a_message_that_the_ledger_may_have_forgotten() -> None:
    item = {"id": "m", "event_type": "mail", "send_at": "2026-08-01T14:00:00Z"}
    found = view_of(of_mailbox(item, NOW), "dev", NOW)
    assert found.status == "forgotten"
    assert "may have been sent" in found.advice[0]
    assert "repair" not in found.advice[0]
    assert "messages resend" not in found.advice[0]


def test_the_command_that_messages_show_advises_quotes_an_id_for_the_shell() -> None:
    assert "resend 'a b'" in " ".join(
        view_of(of_ledger({"id": "a b", "event_type": "mail", "status": "failed"}), "dev", NOW).advice
    )


def test_messages_show_says_that_a_scheduled_message_without_its_item_ends_as_cancelled(stage: Stage) -> None:
    due = "2099-11-21T15:00:00.000Z"
    waits = {"status": "scheduled", "scheduledFor": due, "wait": mark("send_at")}
    stage.put(LEDGER, id="m", event_type="mail", **waits)
    said = "It was deleted from the mailbox: at 2099-11-21 15:00:00 UTC it ends as cancelled"
    assert said in run("show", "m").stdout
    stage.put(MAILBOX, id="m", event_type="mail", to="a@example.com", send_at=due)
    assert "To take it back: mailroom messages cancel m --channel mail" in run("show", "m").stdout


def test_a_message_that_waits_for_the_daily_quota_shows_its_place_and_its_estimated_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def before(_: Waits, channel: str, place: int) -> int:
        return {("mail", MS // 1000): ahead[-1]}[channel, place]

    monkeypatch.setattr(Waits, "before", before)
    variables = {"LEDGER_TABLE": LEDGER, "BUDGETS_TABLE": "budgets", "ROUTES": "{}"}
    line = {"per_second": 10, "per_day": [["2026-01-01", 1000]], "reserve": 0.2}
    found = of_ledger(
        {
            "id": "m",
            "event_type": "mail",
            "status": "scheduled",
            "putAt": MS,
            "scheduledFor": "2026-11-21T13:00:00Z",
            "wait": mark("day_used_up"),
            "waits_in": "line#mail#3",
        }
    )
    ahead = [0]
    assert (
        place_of(found, turn_of(stage.session, "dev", found, lambda: NOW)) == "It waits for the daily quota"
    )
    make_table(stage.dynamodb, "budgets", "name")
    stage.functions.environments["release"] = {**variables, "LINES": json.dumps({"mail": line})}
    # Bulk has 800 a day. 300 of them were granted at 11:00, and count until 12:15 tomorrow.
    hour = int(NOW) // 3600 - 3
    budget = {"oldest": hour - 30, "used": 300, "bulk": 300, f"used_{hour}": 300, f"bulk_{hour}": 300}
    stage.put("budgets", name="mail", line_at=MS // 1000, **budget)
    for count, said in (
        (450, "behind 450 others, until about 2026-11-21 14:01:00 UTC"),
        (700, "behind 700 others, until about 2026-11-22 12:15:00 UTC"),
        (2179, "behind 2,179 others, until about 2026-11-24 12:15:00 UTC"),
        (10_000, "behind 10,000+ others, beyond about 2026-12-03 14:00:00 UTC"),
    ):
        ahead.append(count)
        turn = turn_of(stage.session, "dev", found, lambda: NOW)
        assert place_of(found, turn) == f"It waits for the daily quota, {said}"
        (advised,) = view_of(found, "dev", NOW, turn=turn).advice
        assert advised.startswith(
            f"It waits for the daily quota, {said}. Its content is stored with the wait"
        )


def test_messages_show_polls_a_message_that_was_just_put_until_its_claim_or_a_time_limit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom_ops.messages.status._CLAIMED_SECONDS", 5)
    stage.put(MAILBOX, id="m", event_type="mail", to="a@example.com")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            stage.put(LEDGER, id="m", event_type="mail", status="sent")

    reader = reader_of(boto3.Session(), "dev")
    (found,) = settled(lambda: reader.find("m"), lambda: NOW + sum(slept), sleep)
    assert (found.status, len(slept)) == ("sent", 3)
    stage.put(MAILBOX, id="n", event_type="mail", to="a@example.com")
    (found,) = settled(lambda: reader.find("n"), lambda: NOW + sum(slept), sleep)
    assert (found.status, sum(slept) <= 10) == ("ready", True)


def test_messages_show_names_the_attributes_that_the_sent_template_does_not_use(stage: Stage) -> None:
    attributes = {"template": "default", "first_name": "Ada", "last_name": "L", "shoe": 7, "subject": "Hi"}
    stage.put(MAILBOX, id="m", event_type="mail", to="ada@example.com", **attributes)
    stage.put(LEDGER, id="m", event_type="mail", status="sent", to=["ada@example.com"], template="default")
    assert "shoe, subject" in run("show", "m").stdout
    assert answer(run("show", "m", "--json"))["messages"][0]["unused"] == ["shoe", "subject"]


def test_messages_show_prints_the_version_of_a_template_whose_content_cannot_be_read(stage: Stage) -> None:
    stage.put(MAILBOX, id="m", event_type="mail", to="ada@example.com", template="a", shoe=7)
    stage.put(LEDGER, id="m", event_type="mail", status="sent", template="a", template_version=7)
    assert "a, version 7" in run("show", "m").stdout
    assert answer(run("show", "m", "--json"))["messages"][0]["template_version"] == 7


def test_messages_show_names_the_characters_that_shorten_the_segments_of_an_sms(stage: Stage) -> None:
    attributes = {"event_type": "sms", "to": "+16175551234", "shoe": 7}
    stage.put(MAILBOX, id="s", text="It\u2019s " + "a" * 70, **attributes)
    sentence = "'\u2019' (U+2019) makes this text UCS-2: 70 characters a segment, not 160"
    assert f"→ {sentence}" in run("show", "s").stdout
    (message,) = answer(run("show", "s", "--json"))["messages"]
    assert (message["unused"], message["advice"][-1]) == (["shoe"], sentence)


def test_messages_show_prints_the_status_of_an_sms_whose_text_is_too_long_to_be_sent(stage: Stage) -> None:
    stage.put(MAILBOX, id="t", event_type="sms", to="+16175551234", text="ж" * 1600)
    (message,) = answer(run("show", "t", "--json"))["messages"]
    assert (message["status"], message["unused"]) == ("ready", [])
