"""Replaying what the streams gave up on: what is handed to which function, and what becomes of it."""

import json
from datetime import UTC, datetime

import pytest
from moto.s3.models import s3_backends
from typer import Typer
from typer.testing import CliRunner, Result

from ops.replay import command as replay_command
from ops.replay.replaying import Replay
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
    assert not list(replay.waiting())


def test_more_batches_than_one_page_of_a_listing_are_all_found(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    for name in "abcde":
        shelf.put(name, document(event(name)))
    assert len(shelf.keys()) == 2
    assert len(list(replaying().waiting())) == 5


# streaming


def test_a_batch_is_read_when_it_is_its_turn_so_that_memory_does_not_grow_with_them(shelf: Shelf) -> None:
    for name in "abc":
        shelf.put(name, document(event(name)))
    batches = replaying().waiting()
    first = next(batches)
    shelf.put("c", document(event("c", "later")))
    assert first.records == 1
    assert sorted(each.records for each in batches) == [1, 2]


def test_a_batch_that_somebody_else_has_replayed_meanwhile_is_left_out(shelf: Shelf) -> None:
    for name in "ab":
        shelf.put(name, document(event(name)))
    one, other = replaying(), replaying()
    mine = one.waiting()
    assert next(mine).records == 1
    for each in list(other.waiting())[1:]:
        assert other.run(each)
    assert not list(mine)


def test_an_interrupted_replay_goes_on_where_it_ended(shelf: Shelf) -> None:
    for name in "abc":
        shelf.put(name, document(event(name)))
    replay = replaying()
    assert replay.run(next(replay.waiting()))
    dispatch = FakeDispatch()
    again = replaying(dispatch)
    assert all(again.run(each) for each in again.waiting())
    assert len(dispatch.invoked) == 2


def test_an_object_that_is_no_batch_invokes_nothing_and_stays_and_the_others_go_on(shelf: Shelf) -> None:
    shelf.put("odd", {"hello": "world"})
    shelf.put("one", document(event("a")))
    dispatch = FakeDispatch()
    replay = replaying(dispatch)
    assert sorted(replay.run(each) for each in replay.waiting()) == [False, True]
    assert len(dispatch.invoked) == 1
    assert set(shelf.keys()) >= {key("odd")}


# the command

app = Typer()
app.command()(replay_command.replay)


def run(monkeypatch: pytest.MonkeyPatch, dispatch: FakeDispatch, *options: str) -> Result:
    session = Session(dispatch)
    monkeypatch.setattr("boto3.Session", lambda: session)
    return CliRunner().invoke(app, options, env={"COLUMNS": "120"})


def test_the_answer_counts_batches_and_records_and_names_what_is_left(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put("one", document(event("a", "b")))
    shelf.put("two", document(event("c"), "RecordAgeExceeded"))
    failing = FakeDispatch([{"batchItemFailures": [{"itemIdentifier": "0"}]}])
    result = run(monkeypatch, failing, "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    (left,) = answer.pop("batches")
    assert answer == {
        "stage": "dev",
        "dry_run": False,
        "found": 2,
        "records": 3,
        "replayed": 1,
        "left": 1,
    }
    assert (left["function"], left["state"]) == ("mailroom-dev-dispatch", "left")
    assert left["since"].endswith("Z")


def test_a_dry_run_names_the_batches_whole_and_invokes_nothing(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put("one", document(event("a", "b")))
    dispatch = FakeDispatch()
    result = run(monkeypatch, dispatch, "--dry-run")
    assert result.exit_code == 0
    assert key("one") in result.stdout.splitlines()
    assert "1 batches wait; run without --dry-run to replay them." in result.stdout
    assert (dispatch.invoked, shelf.keys()) == ([], [key("one")])


@pytest.mark.usefixtures("shelf")
def test_nothing_to_replay_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, FakeDispatch())
    assert (result.exit_code, result.stdout) == (0, "0 batches replayed, 0 left.\n")
