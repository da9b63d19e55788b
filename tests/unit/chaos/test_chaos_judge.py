"""Each verdict of the chaos run, and what its figures and sentences say."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from chaos.judge import Judgement, Observation, doubted, judge, verdict
from chaos.load import Load
from local.demo.checks.callbacks import ReceivedCallback
from local.demo.client import Item
from local.demo.scenarios import MESSAGES, Scenario
from local.demo.scenarios.faxes import FaxScenario
from tests.support.pipeline.items import correlation

UNKNOWN = {"status": "failed", "completedAt": 1, "error": {"code": "outcome_unknown", "message": "held"}}
FAILED = {"status": "failed", "completedAt": 1, "error": {"code": "invalid", "message": "to: is no address"}}
SENT = {"status": "delivered", "completedAt": 1, "provider_id": "p-1"}
MAIL, FAX, HOOK = ("m", "mail"), ("f", "fax"), ("w", "webhook")
PAYLOAD = {"order": 7}


@pytest.mark.parametrize(
    ("accepted", "declared", "row", "dead", "expected"),
    [
        (1, 0, SENT, False, "fine"),
        (1, 1, SENT, False, "fine"),
        (2, 0, SENT, False, "sent_twice"),
        (2, 1, SENT, False, "declared"),
        (3, 1, SENT, False, "sent_twice"),
        (2, 0, UNKNOWN, False, "sent_twice"),
        (0, 0, UNKNOWN, False, "declared"),
        (1, 0, UNKNOWN, False, "declared"),
        (0, 0, FAILED, False, "failed"),
        (0, 0, SENT, False, "lost"),
        (0, 0, {}, False, "lost"),
        (0, 0, {"status": "sending"}, False, "lost"),
        (0, 0, {"status": "sending"}, True, "waiting"),
    ],
)
def test_a_message_is_judged_by_what_was_accepted_and_what_is_said_of_it(
    accepted: int, declared: int, row: dict[str, Any], dead: bool, expected: str
) -> None:
    assert verdict(accepted, declared, row, dead=dead) == expected


@pytest.mark.parametrize(
    ("accepted", "announced", "expected"),
    [
        ([5.0], [], 0),
        ([5.0, 25.0], [24.9], 1),
        ([5.0, 25.0], [], 0),
        ([5.0, 25.0], [4.0], 0),  # said of an earlier try, which was not accepted
        ([5.0, 25.0], [26.0], 0),
        ([5.0, 25.0, 45.0], [24.9], 1),
        ([5.0, 25.0, 45.0], [24.9, 44.9], 2),
    ],
)
def test_only_what_was_announced_since_the_last_acceptance_is_declared(
    accepted: Sequence[float], announced: Sequence[float], expected: int
) -> None:
    assert doubted(accepted, announced) == expected


def seen(**parts: Any) -> Observation:
    """A run in which each of the three messages was accepted once, ten seconds after it was put."""
    observation = Observation(
        put_at={MAIL: 100.0, FAX: 100.0, HOOK: 100.0},
        inbox=[accepted_mail(110)],
        fax_log=[fax(110)],
        webhooks=[webhook("msg_1")],
        ledger={MAIL: SENT, FAX: SENT | {"status": "sent"}, HOOK: SENT | {"status": "sent"}},
        announced={},
    )
    return replace(observation, **parts)


def accepted_mail(second: float, number: int = 1) -> Item:
    return {
        "channel": "mail",
        "to": "m@example.com",
        "provider_id": f"p-{number}",
        "content": {"headers": {"X-Correlation-ID": correlation("m")}},
        "received_at": datetime.fromtimestamp(second, UTC).isoformat(),
    }


def fax(second: float, status: str = "delivered", **parts: Any) -> Item:
    call = {"to": "+13125550130", "media_url": "https://example.com/faxes/f.pdf", "status": status}
    return call | {"created": second, "ended": second + 1, "overlaps": [], "media_ok": None} | parts


def webhook(id_: str, payload: Any = PAYLOAD) -> tuple[ReceivedCallback, float]:
    return ReceivedCallback(id_, MESSAGES, "w", payload, verified=True), 110.0


def sent_callback(status: str, message: str) -> tuple[ReceivedCallback, float]:
    payload = {"fax_id": "f", "status": status, "message": message}
    return ReceivedCallback(f"cb-{status}", "callbacks", "f", payload, verified=True), 111.0


def judged(observation: Observation) -> Judgement:
    mail = Scenario({"id": "m", "event_type": "mail", "to": "m@example.com"})
    one_fax = FaxScenario("f", "+13125550130")
    items = [mail.item, one_fax.item("http://here", ""), {"id": "w", "event_type": "webhook"}]
    load = Load(items, [mail], [one_fax], {"w": PAYLOAD})
    told = sent_callback("sent", "Fax sent successfully")
    return judge(load, replace(observation, webhooks=[*observation.webhooks, told]), max_attempts=3)


def test_where_everything_was_accepted_once_nothing_is_wrong() -> None:
    judgement = judged(seen())
    assert judgement.wrong == []
    assert [judgement.total(name) for name in ("put", "accepted", "sent_twice", "declared", "lost")] == [
        *(3, 3, 0, 0, 0)
    ]
    assert judgement.by_channel["mail"].median_seconds == judgement.by_channel["fax"].worst_seconds == 10
    assert judgement.accepted_at == [110.0] * 3


def test_a_mail_that_was_accepted_twice_is_wrong_and_one_that_was_announced_is_declared() -> None:
    twice = [accepted_mail(110), accepted_mail(130, 2)]
    (sentence,) = judged(seen(inbox=twice)).wrong
    assert sentence.startswith("mail m was accepted 10.0, 30.0 s after it was put")
    declared = judged(seen(inbox=twice, announced={MAIL: [129.9]}))
    assert (declared.wrong, declared.by_channel["mail"].declared) == ([], 1)
    assert declared.by_channel["mail"].announced == 1


def test_a_mail_that_nobody_accepted_is_lost_whatever_the_ledger_says() -> None:
    judgement = judged(seen(inbox=[]))
    assert (judgement.total("lost"), judgement.by_channel["mail"].lost) == (1, 1)
    assert "mail m is lost" in judgement.wrong[0]


def test_a_mail_in_a_dead_letter_queue_waits() -> None:
    ledger = dict(seen().ledger) | {MAIL: {"status": "sending"}}
    judgement = judged(seen(inbox=[], ledger=ledger, dead='{"id": "m"}'))
    assert (judgement.by_channel["mail"].waiting, judgement.total("lost")) == (1, 0)


def test_a_fax_that_was_busy_may_be_submitted_again_and_not_delivered_twice() -> None:
    again = judged(seen(fax_log=[fax(110), fax(120)]))
    assert again.by_channel["fax"].sent_twice == 1
    busy = judged(seen(fax_log=[fax(110, "busy"), fax(120)]))
    assert busy.by_channel["fax"].sent_twice == 0


def test_two_faxes_at_once_to_a_number_are_wrong() -> None:
    assert any("met 1 other" in each for each in judged(seen(fax_log=[fax(110, overlaps=["x"])])).wrong)


def test_a_webhook_that_comes_again_is_declared_by_its_id_and_by_nothing_else() -> None:
    repeated = judged(seen(webhooks=[webhook("msg_1"), webhook("msg_1")]))
    assert (repeated.by_channel["webhook"].declared, repeated.wrong) == (1, [])
    twice = judged(seen(webhooks=[webhook("msg_1"), webhook("msg_2")], announced={HOOK: [110.0]}))
    assert (twice.by_channel["webhook"].sent_twice, len(twice.wrong)) == (1, 1)


def test_what_was_accepted_once_must_pass_the_demos_checks() -> None:
    unrecorded = judged(seen(ledger=dict(seen().ledger) | {MAIL: {"status": "sending"}}))
    assert "m is lost: sending, no error." in unrecorded.wrong
    other = judged(seen(webhooks=[webhook("msg_1", {"order": 8})]))
    assert other.wrong == ["The webhook w arrived with another payload."]
