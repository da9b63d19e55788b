"""Replaying what the streams gave up on: what is handed to which function, and what becomes of it."""

import json
from datetime import UTC, datetime

import pytest
from moto.s3.models import s3_backends

from ops.replay import Replay
from tests.ops.ops_support import ACCOUNT, BUCKET, FakeDispatch, Session, Shelf, document, event, key


def replaying(dispatch: FakeDispatch | None = None) -> Replay:
    return Replay(Session(dispatch or FakeDispatch()), "dev")


@pytest.mark.parametrize("written", [json.dumps(event("a", "b")), event("a", "b")], ids=["string", "object"])
def test_a_payload_is_read_as_a_string_and_as_an_object(shelf: Shelf, written: object) -> None:
    shelf.put("one", document(written, "RecordAgeExceeded"))
    (found,) = replaying().waiting()
    assert (found.key, found.event, found.condition) == (key("one"), event("a", "b"), "RecordAgeExceeded")
    assert found.records == 2


def test_the_oldest_comes_first(shelf: Shelf) -> None:
    for name, day in (("a", 20), ("b", 18), ("c", 19)):
        shelf.put(name, document(event(name)))
        stored = s3_backends[ACCOUNT]["aws"].buckets[BUCKET].keys[key(name)]
        stored.last_modified = datetime(2026, 11, day, tzinfo=UTC).replace(tzinfo=None)
    assert [each.key for each in replaying().waiting()] == [key("b"), key("c"), key("a")]


def test_a_batch_that_goes_through_is_handed_to_dispatch_whole_and_moves_to_replayed(shelf: Shelf) -> None:
    written = document(event("a", "b"))
    shelf.put("one", written)
    dispatch = FakeDispatch()
    replay = replaying(dispatch)
    (found,) = replay.waiting()
    assert replay.run(found)
    assert dispatch.invoked == [("mailroom-dev-dispatch", event("a", "b"))]
    assert shelf.keys() == [f"replayed/{key('one')}"]
    assert shelf.read(f"replayed/{key('one')}") == written


def test_a_batch_of_the_ledgers_stream_is_handed_to_outcomes(shelf: Shelf) -> None:
    shelf.put("one", document(event("a"), function="mailroom-dev-outcomes:$LATEST"))
    dispatch = FakeDispatch()
    replay = replaying(dispatch)
    (found,) = replay.waiting()
    assert replay.run(found)
    assert dispatch.invoked == [("mailroom-dev-outcomes", event("a"))]


def test_a_batch_of_any_other_function_is_left_and_invokes_nothing(shelf: Shelf) -> None:
    shelf.put("one", document(event("a"), function="payroll"))
    dispatch = FakeDispatch()
    replay = replaying(dispatch)
    (found,) = replay.waiting()
    assert not replay.run(found)
    assert (dispatch.invoked, shelf.keys()) == ([], [key("one")])


def test_a_batch_of_which_a_record_fails_stays_where_it_is(shelf: Shelf) -> None:
    shelf.put("one", document(event("a", "b")))
    replay = replaying(FakeDispatch([{"batchItemFailures": [{"itemIdentifier": "1"}]}]))
    (found,) = replay.waiting()
    assert not replay.run(found)
    assert shelf.keys() == [key("one")]


def test_a_batch_that_makes_dispatch_fail_stays_where_it_is(shelf: Shelf) -> None:
    shelf.put("one", document(event("a")))
    replay = replaying(FakeDispatch([{"errorMessage": "boom"}], error="Unhandled"))
    (found,) = replay.waiting()
    assert not replay.run(found)
    assert shelf.keys() == [key("one")]


def test_what_was_replayed_does_not_wait_any_more(shelf: Shelf) -> None:
    shelf.put("one", document(event("a")))
    replay = replaying()
    assert [replay.run(each) for each in replay.waiting()] == [True]
    assert not replay.waiting()


def test_more_batches_than_one_page_of_a_listing_are_all_found(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    for name in "abcde":
        shelf.put(name, document(event(name)))
    assert len(shelf.keys()) == 2
    assert len(replaying().waiting()) == 5
