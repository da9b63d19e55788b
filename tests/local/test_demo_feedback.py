"""The demo tells right from wrong about what came back, and where all messages stand in the end."""

from typing import Any

from lab.demo import report
from lab.demo.feedback import check_feedback
from lab.harness.expected import Key
from mailroom_ops.terminal import Terminal

EVENTS: dict[str, Any] = {
    "waiting": {"ses": 0, "twilio": 0},
    "ses": {"published": 9, "doubled": 2, "by_type": {"Send": 5, "Bounce": 4}},
}
CALLBACKS = [{"sid": "SM1", "answer": 204}, {"sid": "SM2", "answer": 204}]
MARKED = {("a@example.com", "mail"): "bounce", ("+1", "sms"): "bounce", ("arn", "push"): "gone"}
LEDGER: dict[Key, dict[str, Any]] = {
    ("a", "mail"): {"status": "delivered"},
    ("b", "mail"): {"status": "bounced"},
    ("c", "mail"): {"status": "delivered"},
    ("a", "fax"): {"status": "sent"},
    ("p", "pigeon"): {"status": "failed"},
}


def test_all_as_it_should_be() -> None:
    result = check_feedback(EVENTS, CALLBACKS, MARKED, MARKED)
    assert (result.events, result.doubled, result.by_type) == (9, 2, {"Send": 5, "Bounce": 4})
    assert (result.callbacks, result.answers) == (2, {"204": 2})
    assert (result.suppressed, result.failures) == ({"bounce": 2, "gone": 1}, [])


def test_a_callback_that_was_refused_is_seen() -> None:
    refused = [*CALLBACKS, {"sid": "SM3", "answer": 403}]
    (failure,) = check_feedback(EVENTS, refused, MARKED, MARKED).failures
    assert failure == "1 of Twilio's callbacks were answered 403 instead of 204."


def test_events_that_never_came_are_seen() -> None:
    none = EVENTS | {"ses": EVENTS["ses"] | {"published": 0}}
    assert check_feedback(none, CALLBACKS, MARKED, MARKED).failures == ["SES published no events."]


def test_a_recipient_that_is_not_suppressed_or_for_another_reason_is_seen() -> None:
    listed = {("+1", "sms"): "bounce", ("arn", "push"): "bounce"}
    failures = check_feedback(EVENTS, CALLBACKS, listed, MARKED).failures
    assert failures == [
        "a@example.com (mail) should be on the suppression list for bounce, not None.",
        "arn (push) should be on the suppression list for gone, not bounce.",
    ]


def test_a_recipient_that_is_suppressed_without_a_cause_is_seen() -> None:
    listed = MARKED | {("eve@example.com", "mail"): "complaint"}
    (failure,) = check_feedback(EVENTS, CALLBACKS, listed, MARKED).failures
    assert failure == "eve@example.com (mail) should be on the suppression list for None, not complaint."


def test_messages_are_counted_by_channel_and_status_and_what_is_no_channels_is_left_out() -> None:
    assert report.totals(LEDGER) == {
        "mail": {"delivered": 2, "bounced": 1},
        "sms": {},
        "push": {},
        "fax": {"sent": 1},
        "webhook": {},
    }


def test_the_table_has_a_column_for_each_channel_a_row_for_each_status_that_occurs_and_fits() -> None:
    console = Terminal(width=60, force_terminal=False)
    with console.capture() as printed:
        console.print(report.totals_table(report.totals(LEDGER)))
    words = [line.replace("│", " ").replace("┃", " ").split() for line in printed.get().splitlines()]
    assert ["status", "mail", "sms", "push", "fax", "webhook"] in words
    for row in (["sent", "1"], ["delivered", "2"], ["bounced", "1"]):
        assert row in words
    assert "undelivered" not in printed.get()
