"""The poller of a FIFO queue: how much is under way, and what becomes of each batch."""

import queue
import threading
from dataclasses import replace

import pytest

from tests.support.local.fifo import DONE, MAPPING, RAISED, FifoShelf, Function, invoked_with_failures, poller

SOON = 5.0


def test_the_fifo_poller_receives_a_batch_only_if_the_mappings_concurrency_permits_it() -> None:
    shelf, function = FifoShelf("a", "b", "c"), Function()
    polling = poller(shelf, function)
    polling.poll()
    polling.poll()
    assert sorted(function.started.get(timeout=SOON) + function.started.get(timeout=SOON)) == ["a", "b"]
    third = threading.Thread(target=polling.poll, daemon=True)
    third.start()
    third.join(0.05)
    assert third.is_alive()
    assert len(shelf.asked) == 2
    function.may_end.release()
    assert function.started.get(timeout=SOON) == ["c"]
    function.may_end.release(2)


def test_the_fifo_poller_receives_a_batch_of_the_mappings_size_and_deletes_it_after_the_function() -> None:
    shelf, function = FifoShelf("a", "b", "c"), Function()
    poller(shelf, function, replace(MAPPING, batch_size=2)).poll()
    assert function.started.get(timeout=SOON) == ["a", "b"]
    assert shelf.deleted.empty()
    function.may_end.release()
    assert [shelf.deleted.get(timeout=SOON), shelf.deleted.get(timeout=SOON)] == ["a", "b"]


def test_a_crash_of_a_function_leaves_its_batch_in_the_queue_and_frees_the_pollers_worker() -> None:
    shelf, function = FifoShelf("a", "b", "c"), Function(lambda batch: RAISED if batch == ["a"] else DONE)
    polling = poller(shelf, function, replace(MAPPING, concurrency=1))
    function.may_end.release(3)
    for _ in range(3):
        polling.poll()
    assert [shelf.deleted.get(timeout=SOON), shelf.deleted.get(timeout=SOON)] == ["b", "c"]


def test_a_message_that_is_reported_as_failed_is_not_deleted() -> None:
    shelf, function = FifoShelf("a", "b"), Function(lambda _: invoked_with_failures("a"))
    function.may_end.release()
    poller(shelf, function, replace(MAPPING, batch_size=2)).poll()
    assert shelf.deleted.get(timeout=SOON) == "b"
    with pytest.raises(queue.Empty):
        shelf.deleted.get_nowait()


def test_a_poller_of_an_empty_queue_occupies_no_worker() -> None:
    shelf, function = FifoShelf(), Function()
    polling = poller(shelf, function, replace(MAPPING, concurrency=1))
    polling.poll()
    polling.poll()
    assert len(shelf.asked) == 2
