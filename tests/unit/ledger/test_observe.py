"""Events of providers: in any order and number, the ledger ends the same."""

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from mailroom.aws.dynamo_updates import Update
from mailroom.ledger.claims import Completed
from mailroom.ledger.items import FAILURE_KEYS, where
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import Foreign, Outdated, Seen, observe
from mailroom.message.message import Key
from mailroom.message.outcome import Status
from tests.support.tables import failure
from tests.support.told import AT, ses_event
from tests.support.unit.shared import KEY, LEASE, LEDGER, NOW_MS, TTL, Aws, FakeClock, claimed, mail
from tests.support.unit.verbs import watched

EVENTS: list[Status] = ["sent", "undelivered", "delivered", "bounced", "complained"]
SEVERAL: dict[str, Any] = {"to": ["ada@example.com", "Eve <EVE@example.com>"], "bcc": "bob@example.com"}
_ids = itertools.count()


def test_an_event_from_the_provider_completes_a_message_whose_worker_crashed(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claimed(ledger)
    clock.advance(3)
    observed = observe(ledger, [ses_event(KEY, "sent", facts={"sentAt": AT})])
    stored = aws.item()
    assert observed == Seen(stored, moved=True)
    assert (stored["status"], stored["provider"], stored["provider_id"]) == ("sent", "ses", "p-1")
    assert (stored["completedAt"], stored["sentAt"], stored["attempts"]) == (NOW_MS + 3000, AT, 1)
    clock.advance(LEASE)
    assert ledger.claim(mail()) == Completed()


@pytest.mark.parametrize("by_number", [True, False])
def test_an_event_adds_the_provider_id_and_submit_time_only_to_messages_looked_up_by_phone_number(
    ledger: Ledger, aws: Aws, by_number: bool
) -> None:
    """The worker may have crashed before it could write them."""
    claimed(ledger)
    observe(ledger, [ses_event(KEY, "sent", found_by_number=by_number)])
    stored = aws.item()
    added = {"submittedAt": AT, "provider_ids": ["p-1"]} if by_number else {}
    assert {name: stored[name] for name in ("submittedAt", "provider_ids") if name in stored} == added


def test_an_event_without_a_status_marks_a_claimed_message_as_sent(ledger: Ledger, aws: Aws) -> None:
    claimed(ledger)
    observe(ledger, [ses_event(KEY, None, facts={"openedAt": AT})])
    assert (aws.item()["status"], aws.item()["openedAt"]) == ("sent", AT)
    assert "completedAt" in aws.item()


def test_an_event_about_an_unknown_message_creates_no_ledger_item(ledger: Ledger, aws: Aws) -> None:
    assert observe(ledger, [ses_event(KEY, "delivered")]) == Foreign()
    assert observe(ledger, [ses_event(KEY, None, facts={"openedAt": AT})]) == Foreign()
    assert aws.item() == {}


def test_a_later_event_does_not_overwrite_details_of_an_earlier_event(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    observe(ledger, [ses_event(KEY, "delivered", facts={"deliveredAt": 7})])
    observe(ledger, [ses_event(KEY, "bounced", facts={"deliveredAt": 9, "bounce_type": "Permanent"})])
    assert (aws.item()["deliveredAt"], aws.item()["bounce_type"]) == (7, "Permanent")


def test_a_repeated_event_makes_one_write_that_leaves_the_ledger_item_unchanged(
    aws: Aws, clock: FakeClock
) -> None:
    ledger, client = watched(aws, clock)
    ledger.complete(claimed(ledger), "ses", "p-1")
    event = ses_event(KEY, "delivered", facts={"deliveredAt": 7})
    observe(ledger, [event])
    before = aws.item()
    client.calls.clear()
    assert observe(ledger, [event]) == Seen(before)
    assert client.names() == ["update_item"]
    assert aws.item() == before


def test_an_event_with_another_provider_id_does_not_replace_the_recorded_id(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    observe(ledger, [ses_event(KEY, "delivered", provider_id="p-2")])
    assert aws.item()["provider_id"] == "p-1"


def test_all_events_of_a_batch_about_one_message_are_recorded_in_one_write(
    aws: Aws, clock: FakeClock
) -> None:
    ledger, client = watched(aws, clock)
    ledger.complete(claimed(ledger), "ses", "p-1")
    client.calls.clear()
    observe(
        ledger,
        [
            ses_event(KEY, "complained", at=AT + 2, facts={"complainedAt": 3, "sentAt": 8}),
            ses_event(KEY, "sent", at=AT, facts={"sentAt": 1}),
            ses_event(KEY, "delivered", at=AT + 1, facts={"deliveredAt": 2}),
        ],
    )
    assert client.names() == ["update_item"]
    stored = aws.item()
    assert stored["status"] == "complained"
    assert (stored["sentAt"], stored["deliveredAt"], stored["complainedAt"]) == (1, 2, 3)


def test_the_providers_reason_is_stored_as_the_error_until_a_delivery_event_removes_it(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    observe(ledger, [ses_event(KEY, "undelivered", kind="Rendering Failure", detail="no such variable")])
    assert aws.item()["error"] == {"code": "rendering_failure", "message": "no such variable"}
    observe(ledger, [ses_event(KEY, "delivered")])
    assert "error" not in aws.item()


def test_a_delivery_event_removes_a_message_of_unknown_outcome_from_the_index_of_failures(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.fail(claimed(ledger), "outcome_unknown", "ask the provider")
    observe(ledger, [ses_event(KEY, "delivered")])
    assert aws.item()["status"] == "delivered"
    assert not {*FAILURE_KEYS, "error"} & aws.item().keys()


@pytest.mark.parametrize("status", ["undelivered", "bounced", "complained"])
def test_a_message_that_fails_at_the_provider_enters_the_index_of_failures_with_the_time_of_the_event(
    ledger: Ledger, aws: Aws, clock: FakeClock, status: Status
) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    clock.advance(86_400)
    observe(ledger, [ses_event(KEY, status)])
    stored = aws.item()
    assert stored.items() >= failure(KEY, status, NOW_MS + 86_400_000).items()
    assert stored["completedAt"] == NOW_MS
    assert ledger.reopen(KEY, stored)
    assert not aws.item().keys() & set(FAILURE_KEYS)


def test_a_later_failure_of_a_message_replaces_its_entry_in_the_same_shard_of_the_failure_index(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    shards = []
    for status in ("bounced", "complained"):
        observe(ledger, [ses_event(KEY, status)])
        name, _, shard = aws.item()["failed_as"].partition("#")
        assert name == status
        shards.append(shard)
    assert shards[0] == shards[1]


def test_a_sent_event_removes_the_dead_letter_mark_and_the_recorded_trouble(ledger: Ledger, aws: Aws) -> None:
    ledger.doubt(claimed(ledger), "SES: ReadTimeoutError")
    ledger.dead_lettered(KEY)
    assert {"trouble", "dead_lettered_at"} <= aws.item().keys()
    observe(ledger, [ses_event(KEY, "sent")])
    assert not {"trouble", "dead_lettered_at"} & aws.item().keys()


@pytest.mark.parametrize("erased", [False, True])
def test_details_of_an_event_are_dropped_if_its_message_is_resent_or_erased_before_the_write(
    ledger: Ledger, aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, erased: bool
) -> None:
    another, write = Ledger(aws.dynamodb, LEDGER, lease=LEASE, ttl=TTL, clock=clock), ledger.write
    ledger.complete(claimed(ledger), "ses", "p-1")
    observe(ledger, [ses_event(KEY, "delivered")])

    def write_after_a_change(key: Key, update: Update, *arguments: Any, **options: Any) -> dict[str, Any]:
        if "openedAt" in update.once and not update.sets:
            if erased:
                aws.dynamodb.delete_item(TableName=LEDGER, Key=where(KEY))
            else:
                another.reopen(KEY, aws.item())
        return write(key, update, *arguments, **options)

    monkeypatch.setattr(ledger, "write", write_after_a_change)
    observed = observe(ledger, [ses_event(KEY, "delivered", facts={"openedAt": AT})])
    assert observed == (Foreign() if erased else Outdated(aws.item()))
    assert "openedAt" not in aws.item()


@pytest.mark.parametrize("status", [*EVENTS, None])
def test_an_event_about_an_attempt_before_a_resend_leaves_the_ledger_item_unchanged(
    ledger: Ledger, aws: Aws, status: Status
) -> None:
    late = ses_event(KEY, status, facts={"deliveredAt": 7, "bounce_type": "Permanent"})
    ledger.complete(claimed(ledger), "ses", "p-1")
    attempt = ledger.reopen(KEY, aws.item())
    reopened = aws.item()
    assert observe(ledger, [late]) == Outdated(reopened)
    assert aws.item() == reopened
    claim = claimed(ledger, mail(attempt=attempt))
    under_way = aws.item()
    assert observe(ledger, [late]) == Outdated(under_way)
    assert aws.item() == under_way
    ledger.complete(claim, "ses", "p-2")
    done = aws.item()
    assert observe(ledger, [late]) == Outdated(done)
    assert aws.item() == done


def test_an_event_about_the_attempt_after_a_resend_is_recorded(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(claimed(ledger), "ses", "p-1")
    observe(ledger, [ses_event(KEY, "bounced", facts={"bounce_type": "Permanent", "sentAt": 1})])
    ledger.reopen(KEY, aws.item())
    ledger.complete(claimed(ledger, mail(attempt=2)), "ses", "p-2")
    assert not {"bounce_type", "sentAt"} & aws.item().keys()
    observe(ledger, [ses_event(KEY, "delivered", attempt=2, provider_id="p-2", facts={"sentAt": 5})])
    assert (aws.item()["status"], aws.item()["sentAt"]) == ("delivered", 5)


def _outcomes(aws: Aws) -> dict[str, Any]:
    return {recipient: entry.get("status") for recipient, entry in aws.item()["recipients"].items()}


def test_a_mail_to_several_recipients_stores_an_outcome_for_each_recipient(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(claimed(ledger, mail(**SEVERAL)), "ses", "p-1")
    people = ("ada@example.com", "eve@example.com", "bob@example.com")
    assert _outcomes(aws) == dict.fromkeys(people)
    several: dict[str, Any] = {"several": True}
    observe(
        ledger,
        [
            ses_event(KEY, "delivered", recipients=people[:1], facts={"deliveredAt": 7}, **several),
            ses_event(KEY, "bounced", recipients=people[1:2], facts={"bounce_type": "Permanent"}, **several),
        ],
    )
    assert _outcomes(aws) == {people[0]: "delivered", people[1]: "bounced", people[2]: None}
    stored = aws.item()
    assert stored["recipients"][people[0]]["deliveredAt"] == 7
    assert stored["status"] == "bounced"  # a single bounce is enough
    assert "see `recipients` in the ledger" in stored["error"]["message"]
    assert "bounce_type" not in stored


ALL = ("ada@example.com", "eve@example.com", "bob@example.com")
COURSES: list[tuple[list[Status | None], Status]] = [
    (["delivered", "delivered", "delivered"], "delivered"),
    (["delivered", "delivered", None], "sent"),  # until all are known, either could be wrong
    (["delivered", "undelivered", "delivered"], "undelivered"),
    (["undelivered", None, None], "sent"),
    (["bounced", None, None], "bounced"),
    (["undelivered", "complained", "bounced"], "complained"),
]


@pytest.mark.parametrize(("courses", "status"), COURSES)
def test_a_mails_status_depends_on_the_outcomes_of_its_recipients_but_not_on_their_order(
    ledger: Ledger, aws: Aws, courses: list[Status | None], status: Status
) -> None:
    events = [
        ses_event(KEY, course, recipients=(recipient,), several=True)
        for recipient, course in zip(ALL, courses, strict=True)
        if course is not None
    ]
    for order in itertools.permutations(events):
        key = Key(f"any-{next(_ids)}", "mail")
        ledger.complete(claimed(ledger, mail(key.id, **SEVERAL)), "ses", "p-1")
        for event in order:
            observe(ledger, [structs.replace(event, key=key)])
        assert aws.item(key.id)["status"] == status


def test_a_mail_becomes_delivered_when_a_later_event_corrects_its_only_undelivered_recipient(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.complete(claimed(ledger, mail(**SEVERAL)), "ses", "p-1")
    statuses: tuple[Status, ...] = ("delivered", "delivered", "undelivered")
    for recipient, status in zip(ALL, statuses, strict=True):
        observe(ledger, [ses_event(KEY, status, recipients=(recipient,), several=True, detail="full")])
    assert aws.item()["recipients"][ALL[2]]["error"] == "full"
    assert aws.item()["error"]["code"] == "undelivered"
    observe(ledger, [ses_event(KEY, "delivered", recipients=ALL[2:], several=True)])
    assert aws.item()["status"] == "delivered"
    assert "error" not in aws.item()
    assert "error" not in aws.item()["recipients"][ALL[2]]


def test_an_event_about_the_only_recipient_that_was_not_suppressed_is_recorded(
    ledger: Ledger, aws: Aws
) -> None:
    claim = claimed(ledger, mail(**SEVERAL))
    for left_out in ALL[:2]:
        ledger.suppress_one(claim, left_out, "on the suppression list")
    ledger.complete(claim, "ses", "p-1")
    # SES got this recipient alone, so its event is not one of several.
    observe(ledger, [ses_event(KEY, "delivered", recipients=ALL[2:], facts={"deliveredAt": 7})])
    assert _outcomes(aws) == {ALL[0]: "suppressed", ALL[1]: "suppressed", ALL[2]: "delivered"}
    assert aws.item()["status"] == "delivered"


def test_a_rejection_of_the_whole_mail_marks_each_recipient_as_undelivered(ledger: Ledger, aws: Aws) -> None:
    ledger.complete(claimed(ledger, mail(**SEVERAL)), "ses", "p-1")
    observe(
        ledger,
        [ses_event(KEY, "undelivered", several=True, facts={"error_code": "Reject"}, detail="a virus")],
    )
    assert _outcomes(aws) == dict.fromkeys(ALL, "undelivered")
    assert (aws.item()["status"], aws.item()["error_code"]) == ("undelivered", "Reject")


def test_a_worker_that_lost_its_claim_cannot_mark_a_recipient_as_suppressed(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    late = claimed(ledger, mail(**SEVERAL))
    clock.advance(LEASE + 1)
    claimed(ledger, mail(**SEVERAL))
    ledger.suppress_one(late, ALL[0], "on the suppression list")
    assert _outcomes(aws)[ALL[0]] is None


def test_a_late_event_about_a_recipient_adds_details_and_keeps_the_recipients_newer_status(
    ledger: Ledger, aws: Aws
) -> None:
    ledger.complete(claimed(ledger, mail(**SEVERAL)), "ses", "p-1")
    ada: dict[str, Any] = {"recipients": ("ada@example.com",), "several": True}
    observe(ledger, [ses_event(KEY, "complained", facts={"complainedAt": 9}, **ada)])
    late = {"bouncedAt": 7, "bounce_type": "Permanent"}
    observe(ledger, [ses_event(KEY, "bounced", facts=late, **ada)])
    entry = aws.item()["recipients"]["ada@example.com"]
    assert entry == {"status": "complained", "complainedAt": 9, **late}


@pytest.mark.parametrize("to", [SEVERAL, {}], ids=["several recipients", "one recipient"])
def test_an_event_about_a_recipient_that_the_message_lacks_leaves_its_list_of_recipients_unchanged(
    ledger: Ledger, aws: Aws, to: dict[str, Any]
) -> None:
    ledger.complete(claimed(ledger, mail(**to)), "ses", "p-1")
    before = aws.item().get("recipients")
    observe(ledger, [ses_event(KEY, "bounced", recipients=("vincent@example.com",), several=True)])
    assert aws.item().get("recipients") == before


def test_a_second_claim_after_a_crash_keeps_the_outcomes_of_the_recipients(
    ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claim = claimed(ledger, mail(**SEVERAL))
    ledger.suppress_one(claim, "bob@example.com", "on the suppression list")
    clock.advance(LEASE + 1)
    claimed(ledger, mail(**SEVERAL))
    assert _outcomes(aws)["bob@example.com"] == "suppressed"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), events=st.lists(st.sampled_from(EVENTS), min_size=1, max_size=5))
def test_any_order_and_repetition_of_events_gives_the_same_status_and_details(
    aws: Aws, ledger: Ledger, data: st.DataObject, events: list[Status]
) -> None:
    shuffled = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events), max_size=4))))
    record_at = data.draw(st.integers(0, len(shuffled)))  # place of the worker's record among the events
    in_batches = data.draw(st.integers(1, 4))
    id_ = f"any-{next(_ids)}"
    key = Key(id_, "mail")
    claim = claimed(ledger, mail(id_))
    pending: list[Status] = []
    for at, event in enumerate([*shuffled, None]):
        if at == record_at:
            ledger.complete(claim, "ses", "p-1")
        if event is not None:
            pending.append(event)
        if pending and (event is None or len(pending) == in_batches):
            observe(ledger, [ses_event(key, status, facts={f"{status}At": AT}) for status in pending])
            pending = []
    stored = aws.item(id_)
    assert stored["status"] == max(["sent", *events], key=[*EVENTS].index)
    assert (stored["provider_id"], stored["attempts"]) == ("p-1", 1)
    assert all(stored[f"{status}At"] == AT for status in events)
    assert "completedAt" in stored
    entries = [EVENTS.index(entry["status"]) for entry in stored["history"]]
    assert entries == sorted(set(entries))
