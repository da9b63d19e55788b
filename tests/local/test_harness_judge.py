"""Each verdict about a message, and each thing that can be wrong with one, on every channel."""

import base64
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lab.harness.acceptances import UNKNOWN, acceptances
from lab.harness.callbacks import ReceivedCallback
from lab.harness.expected import MESSAGES, Expected, Item, Key
from lab.harness.judge import Judgement, Observation, announced_again, judge, verdict
from lab.load import fax
from tests.support.pipeline.items import correlation

UNCERTAIN = {"status": "failed", "completedAt": 1, "error": {"code": "outcome_unknown", "message": "held"}}
FAILED = {"status": "failed", "completedAt": 1, "error": {"code": "invalid", "message": "to: is missing"}}
SENT: dict[str, Any] = {"status": "sent", "completedAt": 1}
DELIVERED = {"status": "delivered", "completedAt": 1, "provider_id": "p-1", "segments": 2}
ONE, OTHER = "+14155550130", "+14155550131"
MAIL = Expected({"id": "m", "event_type": "mail", "to": "m@example.com"}, facts={"segments": 2})
BAD = Expected({"id": "b", "event_type": "sms"}, reason="to")
SEVERAL = Expected(
    {"id": "s", "event_type": "mail", "to": ["c@example.com", "d@example.com"]},
    ends="bounced",
    recipients={"c@example.com": "bounced", "d@example.com": "delivered"},
)
FIRST = fax("f", ONE, providers="http://here")
SECOND = fax("g", ONE, providers="http://here", fails=1, max_attempts=3)
BUSY = fax("busy", OTHER, providers="http://here", fails=3, max_attempts=3, reason="busy")
HOOK = Expected({"id": "w", "event_type": "webhook", "payload": {"order": 7}})
LOAD = [MAIL, BAD, SEVERAL, FIRST, SECOND, BUSY, HOOK]
RECIPIENTS = {"c@example.com": {"status": "bounced"}, "d@example.com": {"status": "delivered"}}
LEDGER: dict[Key, dict[str, Any]] = {
    MAIL.key: DELIVERED,
    BAD.key: FAILED,
    SEVERAL.key: SENT | {"status": "bounced", "recipients": RECIPIENTS, "provider_id": "p-1"},
    FIRST.key: DELIVERED,
    SECOND.key: DELIVERED,
    BUSY.key: FAILED | {"error": {"code": "busy", "message": "is busy"}},
    HOOK.key: SENT,
}


@pytest.mark.parametrize(
    ("accepted", "declared", "row", "dead", "expected"),
    [
        (1, 0, SENT, False, "fine"),
        (1, 1, SENT, False, "fine"),
        (2, 0, SENT, False, "sent_twice"),
        (2, 1, SENT, False, "declared"),
        (3, 1, SENT, False, "sent_twice"),
        (2, 0, UNCERTAIN, False, "sent_twice"),
        (0, 0, UNCERTAIN, False, "declared"),
        (1, 0, UNCERTAIN, False, "declared"),
        (0, 0, FAILED, False, "failed"),
        (0, 0, SENT, False, "lost"),
        (0, 0, {}, False, "lost"),
        (0, 0, {"status": "sending"}, False, "lost"),
        (0, 0, {"status": "sending"}, True, "waiting"),
    ],
)
def test_the_judges_verdict_on_a_message_follows_from_its_acceptances_and_its_ledger_item(
    accepted: int, declared: int, row: dict[str, Any], dead: bool, expected: str
) -> None:
    assert verdict(accepted, 1, declared, row, dead=dead) == expected


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
def test_the_judge_counts_only_repeats_that_were_announced_since_the_previous_acceptance(
    accepted: Sequence[float], announced: Sequence[float], expected: int
) -> None:
    assert announced_again(accepted, announced) == expected


def inbox_mail(message: Expected, second: float = 110, number: int = 1, to: str = "") -> Item:
    return {
        "channel": "mail",
        "to": to or message.address,
        "provider_id": f"p-{number}",
        "content": {"headers": {"X-Correlation-ID": correlation(message.id)}},
        "received_at": datetime.fromtimestamp(second, UTC).isoformat(),
    }


def logged_fax(message: Expected, second: float, status: str = "delivered", **parts: Any) -> Item:
    """A line of the provider's log: a fax that took a second."""
    url = f"https://example.com/faxes/{message.id}.pdf?signature=x"
    taken = {"to": message.address, "media_url": url, "status": status, "created": second}
    return taken | {"ended": second + 1, "overlaps": [], "media_ok": None} | parts


def received_webhook(id_: str = "msg_w", payload: Any = None, about: str = "w") -> ReceivedCallback:
    return ReceivedCallback(id_, MESSAGES, about, payload or {"order": 7}, verified=True, at=110.0)


def callbacks_of(message: Expected) -> list[ReceivedCallback]:
    payloads = [
        {"fax_id": message.id, "status": status, "message": sentence, "timestamp": at}
        for at, (status, sentence) in enumerate(message.callbacks)
    ]
    return [
        ReceivedCallback(f"{message.id}-{at}", "callbacks", message.id, payload, verified=True)
        for at, payload in enumerate(payloads)
    ]


CALLS = [
    *(logged_fax(FIRST, 110), logged_fax(SECOND, 112, "busy"), logged_fax(SECOND, 114)),
    *(logged_fax(BUSY, at, "busy") for at in (110, 115, 120)),
]
SEEN = Observation(
    inbox=[inbox_mail(MAIL), inbox_mail(SEVERAL)],
    faxes=CALLS,
    requests=[received_webhook(), *(each for one in (FIRST, SECOND, BUSY) for each in callbacks_of(one))],
    ledger=LEDGER,
    put_at={each.key: 100.0 for each in LOAD},
)


def judged(*, strict: bool = True, **parts: Any) -> Judgement:
    return judge(LOAD, replace(SEEN, **parts), strict=strict)


def with_row(message: Expected, **change: Any) -> dict[Key, dict[str, Any]]:
    return LEDGER | {message.key: LEDGER[message.key] | change}


def without(message: Expected) -> dict[Key, dict[str, Any]]:
    return {key: row for key, row in LEDGER.items() if key != message.key}


@pytest.mark.parametrize("strict", [True, False])
def test_the_judge_does_not_report_a_message_of_a_harness_run_without_faults(strict: bool) -> None:
    judgement = judged(strict=strict)
    assert judgement.wrong == []
    assert {each for key, each in judgement.verdicts.items() if key != BAD.key} == {"fine"}
    found = judgement.figures(LEDGER)
    assert (found.put, found.accepted, found.failed) == (7, 6, 1)
    assert (found.sent_twice, found.declared, found.lost, found.waiting, found.announced) == (0, 0, 0, 0, 0)
    assert (found.median_seconds, found.worst_seconds) == (10, 12)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"inbox": [inbox_mail(SEVERAL)]}, "mail m is lost: the ledger says delivered, no error."),
        ({"inbox": [inbox_mail(SEVERAL)]}, "m was accepted 0 times instead of 1."),
        ({"ledger": without(MAIL)}, "m has not ended: the ledger says not in the ledger."),
        (
            {"ledger": LEDGER | {MAIL.key: {"status": "sending", "segments": 2}}},
            "m has not ended: the ledger says sending, no error.",
        ),
        (
            {"inbox": [*SEEN.inbox, inbox_mail(MAIL, 130, 2)]},
            "mail m was accepted 10.0, 30.0 s after it was put, and announced to be sent again never: "
            f"the ledger says {DELIVERED['status']}, no error.",
        ),
        (
            {"inbox": [inbox_mail(MAIL, to="eve@example.com")]},
            "m went to eve@example.com instead of m@example.com.",
        ),
        ({"ledger": with_row(MAIL, segments=3)}, "m: segments should be 2; the ledger says 3."),
        (
            {"ledger": with_row(MAIL, provider_id="p-9")},
            "m: the ledger has the provider id 'p-9', which is wrong.",
        ),
        ({"ledger": with_row(BAD, status="sent")}, "b should be failed; the ledger says sent, "),
        (
            {"ledger": with_row(BAD, error={"code": "busy", "message": "busy"})},
            "b: the reason 'busy' does not contain 'to'.",
        ),
        (
            {"ledger": with_row(SEVERAL, recipients=RECIPIENTS | {"d@example.com": {"status": "bounced"}})},
            "s: its recipients should be {'c@example.com': 'bounced', 'd@example.com': 'delivered'}",
        ),
        (
            {"faxes": [logged_fax(FIRST, 110, overlaps=["x"]), *CALLS[1:]]},
            f"A fax to {ONE} overlapped with 1 others on its line.",
        ),
        ({"faxes": [*CALLS, logged_fax(FIRST, 130)]}, "fax f was accepted 10.0, 30.0 s after it was put"),
        ({"faxes": CALLS[:-1]}, "busy was accepted 2 times instead of 3."),
        ({"faxes": [logged_fax(FIRST, 110, to="+1"), *CALLS[1:]]}, f"f went to +1 instead of {ONE}."),
        (
            {"faxes": [logged_fax(FIRST, 110, media_ok=False), *CALLS[1:]]},
            "The provider could not fetch the document of f.",
        ),
        (
            {"inbox": [*SEEN.inbox, inbox_mail(replace(MAIL, item={"id": "eve"}))]},
            "A provider got eve, which was not",
        ),
        ({"requests": SEEN.requests[1:]}, "webhook w is lost"),
        (
            {"requests": [received_webhook(payload={"a": 1}), *SEEN.requests[1:]]},
            "w arrived with another payload",
        ),
        (
            {"requests": [*SEEN.requests, received_webhook("again")]},
            "webhook w was accepted 10.0, 10.0 s after",
        ),
        ({"requests": SEEN.requests[:-1]}, "busy: no callback 'perm_fail'."),
        (
            {"requests": [*SEEN.requests, replace(callbacks_of(FIRST)[0], about="eve", webhook_id="e")]},
            "A callback about eve was not expected.",
        ),
        (
            {"requests": [*SEEN.requests, replace(received_webhook(), verified=False)]},
            "A request about w has a wrong signature.",
        ),
    ],
)
def test_the_judge_reports_each_fault_of_a_message_in_a_sentence(
    parts: dict[str, Any], sentence: str
) -> None:
    assert any(each.startswith(sentence) or sentence in each for each in judged(**parts).wrong)


@pytest.mark.parametrize(
    ("parts", "message", "expected"),
    [
        (
            {"inbox": [*SEEN.inbox, inbox_mail(MAIL, 130, 2)], "announced": {MAIL.key: [129.9]}},
            MAIL,
            "declared",
        ),
        # A repeat under the same webhook-id.
        ({"requests": [*SEEN.requests, received_webhook()]}, HOOK, "declared"),
        ({"inbox": [], "ledger": without(MAIL), "dead": '{"id": "m"}'}, MAIL, "waiting"),
        # Only one of two tries was delivered.
        ({"faxes": [*CALLS, logged_fax(FIRST, 130, "busy")]}, FIRST, "fine"),
    ],
)
def test_the_judge_of_a_disturbed_stage_accepts_announced_repeats_and_repairable_messages(
    parts: dict[str, Any], message: Expected, expected: str
) -> None:
    judgement = judged(strict=False, **parts)
    assert judgement.verdicts[message.key] == expected
    assert not [each for each in judgement.wrong if each.startswith(f"{message.channel} {message.id}")]


def test_the_judge_reports_a_failed_message_only_if_the_stage_was_undisturbed() -> None:
    parts: dict[str, Any] = {"inbox": [inbox_mail(SEVERAL)], "ledger": LEDGER | {MAIL.key: FAILED}}
    assert judged(strict=False, **parts).wrong == []
    assert judged(**parts).wrong[0].startswith("m should be delivered; the ledger says failed")


def test_the_judge_assigns_acceptances_of_simulators_to_messages_by_their_content() -> None:
    def entry(channel: str, **content: Any) -> Item:
        return {"channel": channel, "content": content, "received_at": "2026-11-24T09:00:00+00:00"}

    coded = base64.urlsafe_b64encode(b"sms-\xc3\xa9").rstrip(b"=").decode()
    inbox = [
        entry("mail", headers={"X-Correlation-ID": "bQ"}),
        *(entry("sms", callback=f"https://api.example/twilio/{path}") for path in (coded, f"{coded}.2", "!")),
        *(entry("push", payloads={"APNS": {"aps": {}, **data}}) for data in ({"demo_id": "push-1"}, {})),
        entry("fax"),
    ]
    found = {key: len(those) for key, those in acceptances(inbox, [], []).items()}
    ids: dict[Key, int] = {("m", "mail"): 1, ("sms-é", "sms"): 2, ("push-1", "push"): 1}
    assert found == ids | {(UNKNOWN, "sms"): 1, (UNKNOWN, "push"): 1}
