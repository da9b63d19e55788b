"""A message's history, step by step, and the reason for its present state."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.clock import epoch
from mailroom.ledger.status_reader import of_ledger, of_mailbox
from mailroom_ops.messages.advice import advice, commands
from mailroom_ops.messages.timeline import meaning, timeline

NOW = epoch("2026-11-21T14:00:00Z")
MS = int(NOW * 1000)


def life(channel: str = "mail", **item: Any) -> list[tuple[str, str, float | None]]:
    """The steps after the message came in: what, its details, and the seconds since the step before."""
    found = of_ledger({"id": "m", "event_type": channel, **item})
    first, *steps = timeline(found, NOW)
    assert (first.at, first.what) == (None, "came in")
    return [(each.what, each.detail, each.after and round(each.after, 3)) for each in steps]


def test_the_timeline_has_a_step_with_the_reason_for_each_attempt_of_a_fax() -> None:
    history = [
        {"at": MS, "status": "retrying", "code": "busy"},
        {"at": MS + 60_000, "status": "retrying", "code": "no_answer"},
        {"at": MS + 200_000, "status": "delivered"},
    ]
    assert life(
        "fax",
        status="delivered",
        attempts=3,
        provider="telnyx",
        provider_id="f-3",
        startedAt=MS + 120_000,
        submittedAt=MS + 121_000,
        completedAt=MS + 200_000,
        deliveredAt=MS + 199_000,
        history=history,
    ) == [
        ("try failed", "number 1: busy; another follows", None),
        ("try failed", "number 2: no_answer; another follows", 60.0),
        ("sending began", "try 3", 60.0),
        ("submitted", "to Telnyx f-3", 1.0),
        ("delivered", "reported by Telnyx", 78.0),
    ]


def test_a_timeline_begins_with_the_put_and_has_one_step_for_each_fact() -> None:
    told = timeline(
        of_ledger(
            {
                "id": "m",
                "event_type": "mail",
                "status": "delivered",
                "provider": "ses",
                "provider_id": "0101",
                "putAt": MS,
                "startedAt": MS + 1_000,
                "sentAt": MS + 1_500,
                "completedAt": MS + 2_000,
                "deliveredAt": MS + 3_000,
                "history": [
                    {"at": MS + 2_000, "status": "sent"},
                    {"at": MS + 4_000, "status": "delivered", "code": "Delivery"},
                ],
            }
        ),
        NOW,
    )
    assert [(each.what, each.detail, each.after) for each in told] == [
        ("came in", "", None),
        ("sending began", "", 1.0),
        ("sent", "accepted by SES 0101", 1.0),
        ("delivered", "reported by SES", 1.0),
    ]


def drawn(chance: random.Random) -> dict[str, Any]:
    """Draw the life of a message, and return the ledger item that the sender and the events write, which may
    come late, in another order, or at the same time."""
    channel = chance.choice(("mail", "sms", "fax"))
    started, accepted, delivered, read = (
        MS + sum(chance.choices((0, 1, 400, 5_000), k=count)) for count in (1, 2, 3, 4)
    )
    accepted, delivered = max(started, accepted), max(started, accepted, delivered)
    read = max(delivered, read)

    def recorded(at: int) -> int:
        return at + chance.choice((0, 1, 400, 5_000))

    base = {"id": "m", "event_type": channel, "putAt": MS, "startedAt": started, "status": "delivered"}
    callbacks = {"delivered.1": {"status": "delivered", "at": read + 30_000, "code": 200, "tries": 1}}
    base["callbacks"] = callbacks
    if channel == "fax":
        last = {
            "submittedAt": accepted,
            "deliveredAt": delivered,
            "completedAt": (end := recorded(delivered)),
        }
        return {**base, **last, "history": [{"at": end, "status": "delivered"}]}
    # Mail's events have the provider's time, and callbacks about a text the time of their arrival.
    told: Callable[[int], int] = recorded if channel == "sms" else lambda at: at
    reports = {"sentAt": told(accepted), "deliveredAt": told(delivered)}
    reports |= {"readAt" if channel == "sms" else "openedAt": told(read)} if chance.random() < 0.5 else {}
    reports = {name: at for name, at in reports.items() if name != "sentAt" or chance.random() < 0.7}
    by_sender, by_event = recorded(accepted), max(recorded(at) for at in reports.values())
    history = [{"at": by_event, "status": "delivered", "code": "Delivery"}]
    ended = by_event
    if chance.random() < 0.7:  # otherwise the sender crashed before it recorded the acceptance
        history, ended = [{"at": by_sender, "status": "sent"}, *history], by_sender
    elif "sentAt" in reports and chance.random() < 0.5:
        recorded_sent = recorded(accepted)
        history = [{"at": recorded_sent, "status": "sent", "code": "Send"}, *history]
        ended = recorded_sent
    # The index of telephone lines contains the time of the latest event.
    line = {"submittedAt": max(reports.values())} if channel == "sms" else {}
    return {**base, **reports, **line, "completedAt": ended, "history": history}


def test_each_random_timeline_is_sorted_by_time_and_no_step_precedes_a_step_that_it_proves() -> None:
    chance, order = random.Random(76), ["came in", "sending began", "submitted", "sent", "delivered"]
    seen = set()
    for _ in range(3_000):
        item = drawn(chance)
        steps = timeline(of_ledger(item), NOW)
        times = [epoch(step.at or "") for step in steps]
        assert times == sorted(times), item
        words = [step.what for step in steps]
        assert words == [word for word in (*order, "opened", "read", "callback") if word in words], item
        expected = {"came in", "sending began", "delivered", "callback"}
        expected |= {"submitted"} if item["event_type"] == "fax" else set()
        assert expected <= {*words}, item
        seen.add(tuple(words))
    assert len(seen) == 7


def test_a_bounce_of_an_earlier_generation_keeps_its_step_in_the_timeline() -> None:
    history = [
        {"at": MS, "status": "bounced", "code": "permanent"},
        {"at": MS + 1_000, "status": "retrying", "code": "reopened"},
        {"at": MS + 2_000, "status": "sent"},
        {"at": MS + 4_000, "status": "bounced", "code": "permanent"},
    ]
    steps = life(status="bounced", bouncedAt=MS + 3_000, completedAt=MS + 2_000, history=history)
    assert [what for what, *_ in steps] == ["bounced", "sent again", "sent", "bounced"]


def test_a_deed_of_an_operator_is_a_step_of_the_timeline_and_does_not_count_as_an_attempt() -> None:
    history = [
        {"at": MS, "status": "failed", "code": "rejected"},
        {"at": MS + 1_000, "status": "retrying", "code": "reopened"},
        {"at": MS + 2_000, "status": "retrying", "code": "busy"},
        {"at": MS + 3_000, "status": "failed", "code": "settled"},
    ]
    steps = life(status="failed", attempts=3, completedAt=MS + 3_000, history=history)
    assert [each[:2] for each in steps] == [
        ("failed", "rejected"),
        ("sent again", "by an operator"),
        ("try failed", "number 2: busy; another follows"),
        ("failed", "settled"),
    ]


def test_the_timeline_has_a_step_for_each_later_start_of_a_messages_run_and_numbers_the_tries_on() -> None:
    history = [
        {"at": MS, "status": "retrying", "code": "superseded"},
        {"at": MS + 1_000, "status": "cancelled", "code": "stopped"},
        {"at": MS + 2_000, "status": "retrying", "code": "restarted"},
    ]
    prepared = ("prepared", "for a later start of its campaign's run")
    item: dict[str, Any] = {"status": "retrying", "attempts": 2, "history": history}
    assert [each[:2] for each in life(**item)] == [prepared, ("cancelled", "stopped"), prepared]
    found = of_ledger({"id": "m", "event_type": "mail", **item})
    assert meaning(found).startswith("It is not sent yet. Its campaign's run was started again")
    claimed = life(**{**item, "startedAt": MS + 3_000})
    assert claimed[-1][:2] == ("sending began", "try 3")
    busy = [*history, {"at": MS + 4_000, "status": "retrying", "code": "busy"}]
    failed = life(status="retrying", attempts=3, history=busy)
    assert failed[-1][:2] == ("try failed", "number 3: busy; another follows")


def test_an_outcome_that_the_full_history_lacks_is_a_step_of_the_timeline() -> None:
    history = [{"at": MS, "status": "retrying", "code": "busy"}]
    steps = life(status="failed", attempts=60, completedAt=MS + 9_000, history=history)
    assert steps[-1] == ("completed", "failed", 9.0)


def test_each_reported_recipient_and_each_callback_has_a_step_in_the_timeline() -> None:
    steps = life(
        status="sent",
        provider="ses",
        recipients={"ada@example.com": {"status": "delivered", "deliveredAt": MS}, "bob@example.com": {}},
        callbacks={"sent.1": {"status": "failed", "at": MS + 5_000, "code": None, "tries": 9}},
    )
    assert steps == [
        ("delivered", "to ada@example.com, reported by SES", None),
        ("callback", "of sent: failed, 9 tries; the endpoint did not answer", 5.0),
    ]


def test_the_timeline_of_many_recipients_has_steps_only_for_the_failed_ones() -> None:
    delivered = {"status": "delivered", "deliveredAt": MS}
    recipients = {f"p{at}@example.com": delivered for at in range(9)}
    recipients["bob@example.com"] = {"status": "bounced", "bouncedAt": MS}
    steps = life(status="bounced", provider="ses", recipients=recipients)
    assert steps == [("bounced", "to bob@example.com, reported by SES", None)]


def test_a_future_step_is_the_last_of_the_timeline() -> None:
    item = {"id": "m", "event_type": "mail", "to": "a@example.com", "send_at": "2026-12-24T09:00:00Z"}
    _, due = timeline(of_mailbox(item, NOW), NOW)
    assert (due.what, due.detail, due.kind) == ("due", "by its send_at", "ahead")


def test_the_sentence_about_a_status_depends_on_error_trouble_provider_wait_and_recipients() -> None:
    def of(status: str, channel: str = "mail", **more: Any) -> str:
        return meaning(of_ledger({"id": "m", "event_type": channel, "status": status, **more}))

    error = {"code": "rejected", "message": "550 no"}
    assert of("failed", error=error) == "It was not sent. 550 no (rejected)"
    unknown = {"code": "outcome_unknown", "message": "the worker was cut off"}
    assert of("failed", error=unknown).startswith("It is unknown whether it was sent.")
    trouble = {"code": "throttled", "message": "slow down"}
    assert of("sending", trouble=trouble) == "It is being sent. slow down (throttled)"
    assert of("delivered", "fax", provider="telnyx") == "Telnyx says that it was delivered."
    assert of("sent", "fax", provider="telnyx") == "Telnyx accepted it."
    assert (
        of("scheduled", wait={"version": "v", "reason": "send_at"}) == "It has to wait, and is not sent yet."
    )
    assert of("a status of a later version") == ""
    two = {"ada@example.com": {"status": "delivered"}, "bob@example.com": {}}
    assert of("sent", recipients=two) == "1 delivered, 1 without a report."


@pytest.mark.parametrize(("account", "name"), [("", "its provider"), ("twilio/AC1", "Twilio")])
def test_a_try_with_an_unknown_outcome_is_a_step_of_the_timeline_that_names_the_provider(
    account: str, name: str
) -> None:
    assert life(status="sending", unsettled_tries=[f"{MS} {account}"]) == [
        ("in doubt", f"a try since then may have reached {name}", None)
    ]


def test_an_erasure_is_a_step_of_the_timeline_with_its_operator_and_not_a_try() -> None:
    begun: dict[str, Any] = {
        "startedAt": MS,
        "completedAt": MS + 1_000,
        "erased_at": MS + 9_000,
        "erased_by": "ada",
    }
    assert life(status="sent", attempts=2, **begun) == [
        ("sending began", "", None),
        ("completed", "sent", 1.0),
        ("erased", "by ada", 8.0),
    ]


def test_the_timeline_of_a_cancelled_message_does_not_have_a_due_step() -> None:
    due = "2026-12-24T09:00:00.000Z"
    steps = life(status="cancelled", completedAt=MS, scheduledFor=due)
    assert [what for what, *_ in steps] == ["completed"]


def test_the_sentence_about_a_dead_letter_says_that_it_stays_until_an_operator_acts() -> None:
    found = of_ledger({"id": "m", "event_type": "mail", "status": "sending", "dead_lettered_at": MS})
    assert meaning(found) == "It is a dead letter: it is not tried again until somebody puts it back."


def test_messages_show_tells_why_mailroom_refused_a_callback_and_does_not_blame_the_endpoint() -> None:
    entry = {
        "status": "failed",
        "at": MS,
        "code": None,
        "tries": 1,
        "reason": "url: 10.0.0.1 is a private address",
    }
    (step,) = life(status="sent", callbacks={"sent.1": entry})
    assert step[1] == "of sent: failed, 1 try; url: 10.0.0.1 is a private address"
    found = of_ledger({"id": "m", "event_type": "mail", "status": "sent", "callbacks": {"sent.1": entry}})
    (said,) = advice(found, commands(found, "dev"), NOW, None)
    assert said.startswith("Mailroom did not send these callbacks, because it refuses their URL: sent.1.")
