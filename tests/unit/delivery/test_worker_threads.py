"""Several records of a batch at a time: one thread has each record from its claim to its result."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, get_ident
from typing import Any

from mailroom.channels.mail.contract import Mail
from mailroom.delivery.worker import Pace
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry, Sent
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import FakeAdapter
from tests.support.unit.post import Counted, Log, Post
from tests.support.unit.shared import BUCKET, LEASE, Aws, FakeClock, item

IDS = [f"m-{at}" for at in range(8)]
OUTCOMES: dict[str, Outcome | Exception] = {
    "m-1": Retry("slow"),
    "m-2": OSError("nobody knows"),
    "m-3": Rejected("no"),
    "m-4": Misconfigured("ours"),
}


class Together(FakeAdapter):
    """Adapter that responds by OUTCOMES, or with an own provider id, once `count` submits have begun."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._all_here = Barrier(count)
        self.threads: dict[str, set[int]] = {}

    def prepare(self, message: Mail) -> Any:
        self.threads.setdefault(message.id, set()).add(get_ident())
        return super().prepare(message)

    def submit(self, request: Any) -> Outcome:
        self.submitted.append(request)
        self.threads[request.id].add(get_ident())
        self._all_here.wait(timeout=20)
        outcome = OUTCOMES.get(request.id, Sent(f"p-{request.id}"))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def test_messages_submitted_at_the_same_time_by_threads_each_get_their_own_outcome(
    aws: Aws, clock: FakeClock, log: Log, counted: Counted
) -> None:
    adapter = Together(4)
    worker = Post(aws, clock, adapter, submits_at_once=4)
    waits = worker.handle(*(item(id=id_) for id_ in IDS))
    assert waits == {"r-1": 4, "r-2": int(LEASE) + 1, "r-4": 20}
    assert sorted(worker.submitted) == IDS
    stored = {id_: aws.item(id_) for id_ in IDS}
    assert [stored[id_]["status"] for id_ in IDS] == ["sent", "sending", "sending", "failed", "sending"] + [
        "sent"
    ] * 3
    assert all(stored[id_]["provider_id"] == f"p-{id_}" for id_ in IDS if stored[id_]["status"] == "sent")
    assert counted() == {"Sent": 4, "Retried": 1, "Unknown": 1, "Rejected": 1, "Misconfigured": 1}
    assert all(len(threads) == 1 for threads in adapter.threads.values())
    assert len(set.union(*adapter.threads.values())) == 4
    named = {line["id"]: line["message"] for line in log() if "id" in line}
    assert named == {
        "m-1": "not sent; it goes back to the queue",
        "m-2": "outcome unknown; the claim lasts until its lease ends",
        "m-3": "rejected",
        "m-4": "not sent: the configuration is invalid",
    }
    assert lines_about(log(), "rejected")[0]["id"] == "m-3"


def test_the_main_thread_of_a_worker_opens_the_session_of_a_batch_once_for_all_threads(
    aws: Aws, clock: FakeClock
) -> None:
    adapter, openers = Together(4), list[int]()
    opened = adapter.open
    adapter.open = lambda: openers.append(get_ident()) or opened()  # type: ignore[method-assign, func-returns-value]
    # Such a sender claims each message in its thread, by the account of the session.
    Post(aws, clock, adapter, submits_at_once=4, on_unknown="hold").handle(*(item(id=id_) for id_ in IDS[4:]))
    assert openers == [get_ident()]


def test_threads_of_a_worker_share_the_gap_between_submits(clock: FakeClock) -> None:
    slept: list[float] = []
    pace = Pace(0.5, clock, slept.append)
    with ThreadPoolExecutor(6) as threads:
        assert [*threads.map(lambda _: pace.wait(100), range(6))] == [True] * 6
    # Time stands still, so each turn is a gap behind the one before, whichever thread takes it.
    assert sorted(slept) == [0.5, 1.0, 1.5, 2.0, 2.5]


def test_messages_with_attachments_in_the_payload_bucket_are_delivered_one_at_a_time(
    aws: Aws, clock: FakeClock
) -> None:
    """The test looks at the lock, because threads that only rarely overlap would not prove anything."""
    aws.s3.put_object(Bucket=BUCKET, Key="terms.pdf", Body=b"%PDF")
    large = [{"ref": f"s3://{BUCKET}/terms.pdf"}]
    locked: list[bool] = []

    def prepare(_message: Mail) -> None:
        locked.append(worker._worker._tools.large_message_lock.locked())

    worker = Post(aws, clock, FakeAdapter(Sent("p-1"), prepare=prepare), submits_at_once=8)
    assert worker.handle(*(item(id=id_, attachments=large) for id_ in IDS)) == {}
    assert worker.handle(item(id="m-without-objects")) == {}
    assert locked == [*[True] * 8, False]


def test_several_copies_of_a_message_in_a_batch_are_submitted_once(aws: Aws, clock: FakeClock) -> None:
    adapter = Together(1)
    worker = Post(aws, clock, adapter, submits_at_once=5)
    waits = worker.handle(*(item(id=id_) for id_ in ("m-7", "m-7", "m-6", "m-7", "m-6")))
    assert Counter(worker.submitted) == {"m-6": 1, "m-7": 1}
    # A copy that finds the claim comes back after the lease; a copy that finds the outcome is dropped.
    assert set(waits.values()) <= {int(LEASE) + 1}
