"""Refusals whose words fit the message and the configuration: newer evidence decides."""

import itertools
import random

import pytest

from mailroom.channels.mail.contract import Mail
from mailroom.delivery.waiting.provider_refusals import MOST_REFUSED, MOST_UNDECIDED, UndecidedRefusals
from mailroom.environment import OtherProvider
from mailroom.message.message import Key
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry, Sent
from tests.support.unit.post import Counted, Make, Post
from tests.support.unit.shared import Aws, Item, item

UNDECIDED = Rejected("no number can send to this destination", undecided=True)
SENT = Sent("p-1")


def test_a_message_is_retried_after_its_first_undecided_refusal(
    make_post: Make, aws: Aws, counted: Counted
) -> None:
    assert make_post(UNDECIDED).handle(item()) == {"r-0": 4}
    assert aws.item()["status"] == "sending"
    assert counted() == {"Retried": 1}


def test_a_message_fails_if_others_were_accepted_between_its_three_undecided_refusals(
    make_post: Make, aws: Aws
) -> None:
    worker = make_post(UNDECIDED, SENT, UNDECIDED, SENT, UNDECIDED)
    worker.handle(item())
    worker.handle(item(id="m-2"))
    assert worker.handle(item(), receives=2) == {"r-0": 8}
    worker.handle(item(id="m-3"))
    assert worker.handle(item(), receives=3) == {}
    assert aws.item()["status"] == "failed"
    assert aws.item()["error"] == {"code": "rejected", "message": UNDECIDED.reason}


def test_messages_are_sent_after_two_separate_faults_of_the_configuration_refused_them(
    make_post: Make, aws: Aws, counted: Counted
) -> None:
    ids = ["m-1", "m-2", "m-3"]
    worker = make_post(*[UNDECIDED] * 3, SENT, *[UNDECIDED] * 3, *[SENT] * 3)
    worker.handle(*(item(id=id_) for id_ in ids))
    worker.handle(item(id="between"))
    worker.handle(*(item(id=id_) for id_ in ids), receives=2)
    worker.handle(*(item(id=id_) for id_ in ids), receives=3)
    assert [aws.item(id_)["status"] for id_ in ids] == ["sent"] * 3
    assert counted()["Retried"] == 6


def test_a_second_undecided_refusal_after_the_latest_acceptance_counts_as_a_misconfiguration(
    make_post: Make, aws: Aws, counted: Counted
) -> None:
    worker = make_post(SENT, UNDECIDED, UNDECIDED)
    worker.handle(item(id="m-2"))
    assert worker.handle(item()) == {"r-0": 4}
    assert worker.handle(item(), receives=2) == {"r-0": 20}
    assert "completedAt" not in aws.item()
    assert counted() == {"Sent": 1, "Retried": 1, "Misconfigured": 1}


def test_messages_do_not_fail_if_all_submits_since_their_first_undecided_refusal_are_refused(
    make_post: Make, aws: Aws
) -> None:
    ids = ["m-1", "m-2", "m-3"]
    worker = make_post(*[SENT] * 3, *[UNDECIDED] * 9)
    worker.handle(*(item(id=f"before-{id_}") for id_ in ids))
    for receives in (1, 2, 3):
        assert len(worker.handle(*(item(id=id_) for id_ in ids), receives=receives)) == len(ids)
    assert [aws.item(id_)["status"] for id_ in ids] == ["sending"] * 3


def test_a_message_that_is_accepted_at_its_second_try_after_an_undecided_refusal_is_sent(
    make_post: Make, aws: Aws
) -> None:
    worker = make_post(UNDECIDED, SENT)
    worker.handle(item())
    assert worker.handle(item(), receives=2) == {}
    assert aws.item()["status"] == "sent"


def test_undecided_refusals_of_messages_to_some_destinations_do_not_close_the_bulk_lane(
    make_post: Make, aws: Aws, counted: Counted
) -> None:
    worker, many = make_post(UNDECIDED, SENT, bulk=True), range(2 * MOST_REFUSED)
    for at in many:
        worker.handle(item(id=f"refused-{at}"), item(id=f"accepted-{at}"))
    for receives in (2, 3):
        for at in many:
            worker.handle(item(id=f"refused-{at}"), receives=receives)
            worker.handle(item(id=f"later-{receives}-{at}"))
    assert {aws.item(f"refused-{at}")["status"] for at in many} == {"failed"}
    assert "BulkClosed" not in counted()


def during(worker: Post, monkeypatch: pytest.MonkeyPatch, message: Item) -> None:
    """Let the worker handle `message` while its next submit is under way."""
    submit = worker.adapter.submit

    def overlapped(request: Mail) -> Outcome:
        monkeypatch.setattr(worker.adapter, "submit", submit)
        worker.handle(message)
        worker.forget_visibilities()
        return submit(request)

    monkeypatch.setattr(worker.adapter, "submit", overlapped)


def test_an_acceptance_during_the_second_refused_submit_does_not_count_against_the_message(
    make_post: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make_post(UNDECIDED, SENT, UNDECIDED)
    worker.handle(item())
    during(worker, monkeypatch, item(id="m-2"))
    assert worker.handle(item(), receives=2) == {"r-0": 20}


def test_an_acceptance_whose_submit_began_before_the_first_refusal_does_not_count_against_a_message(
    make_post: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make_post(UNDECIDED, SENT, UNDECIDED)
    during(worker, monkeypatch, item())
    worker.handle(item(id="m-2"))
    assert worker.handle(item(), receives=2) == {"r-0": 20}


def test_a_message_is_retried_if_only_one_of_its_three_undecided_refusals_followed_an_acceptance(
    make_post: Make, aws: Aws, counted: Counted
) -> None:
    worker = make_post(UNDECIDED, UNDECIDED, SENT, UNDECIDED)
    worker.handle(item())
    worker.handle(item(), receives=2)
    worker.handle(item(id="m-2"))
    worker.handle(item(), receives=3)
    assert "completedAt" not in aws.item()
    assert counted() == {"Sent": 1, "Retried": 2, "Misconfigured": 1}


def test_a_message_to_a_destination_that_its_provider_cannot_reach_goes_to_the_fallback_provider(
    make_post: Make, aws: Aws
) -> None:
    queue = aws.sqs.create_queue(QueueName="fallback")["QueueUrl"]
    other = OtherProvider(name="other", queue_url=queue, after_tries=4, after_seconds=600)
    worker = make_post(UNDECIDED, SENT, UNDECIDED, SENT, UNDECIDED, other_provider=other)
    worker.handle(item())
    worker.handle(item(id="m-2"))
    worker.handle(item(), receives=2)
    worker.handle(item(id="m-3"))
    assert worker.handle(item(), receives=3) == {}
    assert "completedAt" not in aws.item()
    assert aws.item()["trouble"] == {"code": "other_provider", "message": UNDECIDED.reason}
    (moved,) = aws.sqs.receive_message(QueueUrl=queue)["Messages"]
    assert '"m-1"' in moved["Body"]


def test_a_sender_forgets_its_oldest_undecided_refusal_above_the_maximum_number() -> None:
    refusals = UndecidedRefusals()
    keys = [Key(f"m-{at}", "mail") for at in range(MOST_UNDECIDED + 1)]
    for key in keys:
        refusals.decided(key, UNDECIDED, refusals.newest)
    assert isinstance(refusals.decided(keys[1], UNDECIDED, refusals.newest), Misconfigured)
    assert isinstance(refusals.decided(keys[0], UNDECIDED, refusals.newest), Retry)


class Submit:
    """A submit of a message by one thread, with what the rule notes when it begins."""

    def __init__(self, world: "FaultyAccount", message: int) -> None:
        self.message = message
        self.began, self.newest = world.rule.refusals, world.rule.newest
        self.began_at, self.ended_at = world.step, -1
        self.phase = -1
        """Phase of the account in which the submit reached the provider, or -1 before."""
        self.accepted = False


class FaultyAccount:
    """An account whose fault comes and goes: it refuses everything in odd phases. Threads submit new messages
    and repeat refused ones. Messages with even numbers have a destination that no account reaches."""

    def __init__(self, threads: int) -> None:
        self.rule = UndecidedRefusals()
        self.phase = self.step = 0
        self.threads: list[Submit | None] = [None] * threads
        self.ended: list[Submit] = []
        self.waiting: list[int] = []
        self.condemned: set[int] = set()

    def advance(self, thread: int, message: int = 0) -> None:
        """Begin a submit of `message`, or let the thread's submit reach the provider, or handle the response.
        Each of these is a step."""
        self.step += 1
        submit = self.threads[thread]
        if submit is None:
            self.threads[thread] = Submit(self, message)
        elif submit.phase < 0:
            submit.phase = self.phase
            submit.accepted = submit.message % 2 == 1 and self.phase % 2 == 0
        else:
            self.threads[thread] = None
            self._end(submit)

    def send(self, thread: int, message: int) -> None:
        for _ in range(3):
            self.advance(thread, message)

    def _end(self, submit: Submit) -> None:
        submit.ended_at = self.step
        self.ended.append(submit)
        if submit.accepted:
            self.rule.accepted(submit.began)
        elif self.rule.decided(Key(str(submit.message), "sms"), UNDECIDED, submit.newest) == UNDECIDED:
            self.condemned.add(submit.message)
        else:
            self.waiting.append(submit.message)

    def refused(self, message: int) -> list[Submit]:
        return [submit for submit in self.ended if submit.message == message]


def drawn(chance: random.Random) -> FaultyAccount:
    """Return a world after many steps in a random order."""
    world = FaultyAccount(threads=chance.randint(1, 4))
    new = itertools.count()
    flips, again = chance.choice([0.02, 0.1, 0.3]), chance.choice([0.5, 0.8])
    for _ in range(300):
        world.phase += chance.random() < flips
        message = None
        if world.waiting and chance.random() < again:
            message = world.waiting.pop(chance.randrange(len(world.waiting)))
        thread = chance.randrange(len(world.threads))
        if world.threads[thread] is not None and message is not None:
            world.waiting.append(message)
        world.advance(thread, next(new) if message is None else message)
    return world


DRAWN = [drawn(random.Random(seed)) for seed in range(300)]


def test_a_message_is_rejected_only_if_another_was_accepted_between_its_latest_two_refusals() -> None:
    for world in DRAWN:
        for message in world.condemned:
            *_, before, latest = world.refused(message)
            assert any(
                submit.accepted and before.ended_at < submit.began_at and submit.ended_at < latest.began_at
                for submit in world.ended
            )


def test_a_valid_message_is_rejected_only_if_three_separate_faults_of_the_account_refused_it() -> None:
    condemned = [(world, message) for world in DRAWN for message in world.condemned]
    for world, message in condemned:
        if message % 2 == 1:
            assert len({submit.phase for submit in world.refused(message)}) >= 3
    assert {message % 2 for _, message in condemned} == {0, 1}  # such worlds are drawn


@pytest.mark.parametrize("threads", range(1, 7))
def test_a_message_to_a_bad_destination_is_rejected_at_its_third_refusal_for_any_number_of_threads(
    threads: int,
) -> None:
    world, chance = FaultyAccount(threads), random.Random(threads)
    good = itertools.count(1, 2)
    for _ in range(3):
        assert world.condemned == set()
        while world.threads[0] is not None:
            world.advance(0)
        world.send(0, 0)
        accepted = len(world.ended)
        while len(world.ended) < accepted + 2 * threads:
            world.advance(chance.randrange(threads), next(good))
    assert world.condemned == {0}
    assert len(world.refused(0)) == 3
