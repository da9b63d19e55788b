"""Refusals whose words fit the message and the configuration: newer evidence decides."""

from mailroom.delivery.waiting.provider_refusals import MOST_REFUSED, MOST_UNDECIDED, UndecidedRefusals
from mailroom.environment import OtherProvider
from mailroom.message.message import Key
from mailroom.message.outcome import Misconfigured, Rejected, Retry, Sent
from tests.support.unit.post import Counted, Make
from tests.support.unit.shared import Aws, item

UNDECIDED = Rejected("no number can send to this destination", undecided=True)
SENT = Sent("p-1")


def test_the_first_undecided_refusal_of_a_message_is_retried(post: Make, aws: Aws, counted: Counted) -> None:
    assert post(UNDECIDED).handle(item()) == {"r-0": 4}
    assert aws.item()["status"] == "sending"
    assert counted() == {"Retried": 1}


def test_a_message_fails_if_another_one_was_accepted_between_two_undecided_refusals(
    post: Make, aws: Aws
) -> None:
    worker = post(UNDECIDED, SENT, UNDECIDED)
    worker.handle(item())
    worker.handle(item(id="m-2"))
    assert worker.handle(item(), receives=2) == {}
    assert aws.item()["status"] == "failed"
    assert aws.item()["error"] == {"code": "rejected", "message": UNDECIDED.reason}


def test_without_newer_evidence_an_undecided_refusal_is_a_fault_of_the_configuration(
    post: Make, aws: Aws, counted: Counted
) -> None:
    worker = post(SENT, UNDECIDED, UNDECIDED)
    worker.handle(item(id="m-2"))
    assert worker.handle(item()) == {"r-0": 4}
    assert worker.handle(item(), receives=2) == {"r-0": 20}
    assert "completedAt" not in aws.item()
    assert counted() == {"Sent": 1, "Retried": 1, "Misconfigured": 1}


def test_the_messages_of_a_deleted_pool_do_not_fail_although_earlier_ones_were_accepted(
    post: Make, aws: Aws
) -> None:
    ids = ["m-1", "m-2", "m-3"]
    worker = post(*[SENT] * 3, *[UNDECIDED] * 9)
    worker.handle(*(item(id=f"before-{id_}") for id_ in ids))
    for receives in (1, 2, 3):
        assert len(worker.handle(*(item(id=id_) for id_ in ids), receives=receives)) == len(ids)
    assert [aws.item(id_)["status"] for id_ in ids] == ["sending"] * 3


def test_a_message_that_is_accepted_at_its_second_try_has_no_refusal_to_remember(
    post: Make, aws: Aws
) -> None:
    worker = post(UNDECIDED, SENT)
    worker.handle(item())
    assert worker.handle(item(), receives=2) == {}
    assert aws.item()["status"] == "sent"


def test_undecided_refusals_of_some_destinations_do_not_close_the_bulk_lane(
    post: Make, aws: Aws, counted: Counted
) -> None:
    worker, many = post(UNDECIDED, SENT, bulk=True), range(2 * MOST_REFUSED)
    for at in many:
        worker.handle(item(id=f"refused-{at}"), item(id=f"accepted-{at}"))
    for at in many:
        worker.handle(item(id=f"refused-{at}"), receives=2)
        worker.handle(item(id=f"later-{at}"))
    assert {aws.item(f"refused-{at}")["status"] for at in many} == {"failed"}
    assert "BulkClosed" not in counted()


def test_acceptances_that_may_be_older_than_the_refusal_are_no_evidence() -> None:
    refusals, key = UndecidedRefusals(at_once=3), Key("m-1", "mail")
    assert isinstance(refusals.decided(key, UNDECIDED), Retry)
    refusals.accepted += 2  # both may have been submitted before the refusal
    assert isinstance(refusals.decided(key, UNDECIDED), Misconfigured)
    assert isinstance(refusals.decided(key, UNDECIDED), Retry)  # a fault is followed by a first refusal
    refusals.accepted += 3
    assert refusals.decided(key, UNDECIDED) == UNDECIDED


def test_acceptances_before_a_second_fault_of_the_configuration_are_no_evidence(
    post: Make, aws: Aws, counted: Counted
) -> None:
    worker = post(UNDECIDED, UNDECIDED, SENT, UNDECIDED)
    worker.handle(item())
    worker.handle(item(), receives=2)
    worker.handle(item(id="m-2"))
    worker.handle(item(), receives=3)
    assert "completedAt" not in aws.item()
    assert counted() == {"Sent": 1, "Retried": 2, "Misconfigured": 1}


def test_a_destination_that_the_own_provider_cannot_reach_goes_to_the_fallback(post: Make, aws: Aws) -> None:
    queue = aws.sqs.create_queue(QueueName="fallback")["QueueUrl"]
    other = OtherProvider(name="other", queue_url=queue, after_tries=3, after_seconds=600)
    worker = post(UNDECIDED, SENT, UNDECIDED, other_provider=other)
    worker.handle(item())
    worker.handle(item(id="m-2"))
    assert worker.handle(item(), receives=2) == {}
    assert "completedAt" not in aws.item()
    assert aws.item()["trouble"] == {"code": "other_provider", "message": UNDECIDED.reason}


def test_a_sender_forgets_the_oldest_undecided_refusals() -> None:
    refusals = UndecidedRefusals(at_once=1)
    keys = [Key(f"m-{at}", "mail") for at in range(MOST_UNDECIDED + 1)]
    for key in keys:
        refusals.decided(key, UNDECIDED)
    assert isinstance(refusals.decided(keys[1], UNDECIDED), Misconfigured)
    assert isinstance(refusals.decided(keys[0], UNDECIDED), Retry)
