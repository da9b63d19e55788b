"""Replaying what the streams gave up on: what is handed to which function, and what becomes of it."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from moto.s3.models import s3_backends
from typer import Typer
from typer.testing import Result

from mailroom_ops.repair.failed_batches import FailedBatch, FailedBatches
from mailroom_ops.repair.resend import resend
from mailroom_ops.shared.deployed_stage import config_for_invocations
from tests.support.ops.run_app import run_app
from tests.support.ops.shared import (
    ACCOUNT,
    BUCKET,
    FakeDispatch,
    Session,
    Shelf,
    dispatch_event,
    document,
    key,
)


def replaying(dispatch: FakeDispatch | None = None) -> FailedBatches:
    return FailedBatches(Session({"lambda": dispatch or FakeDispatch()}), "dev")


app = Typer()
app.command()(resend)


def repair_given_up(
    monkeypatch: pytest.MonkeyPatch, dispatch: FakeDispatch, *options: str, typed: str | None = None
) -> Result:
    session = Session({"lambda": dispatch})
    monkeypatch.setattr("boto3.Session", lambda: session)
    return run_app(app, "--given-up", *options, typed=typed, columns=120)


class Meanwhile(FakeDispatch):
    """A dispatch during whose first invocation something else happens."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self._then: Callable[[], None] | None = then

    def invoke(self, **arguments: Any) -> dict[str, Any]:
        then, self._then = self._then, None
        if then is not None:
            then()
        return super().invoke(**arguments)


Found = tuple[FailedBatch, dict[str, Any]]


def batches(failed: FailedBatches) -> Iterator[Found]:
    """Return the waiting batches, the oldest first, each read at its turn."""
    return (found for since, key in failed.waiting() if (found := failed.read(key, since)) is not None)


@pytest.mark.parametrize(
    "written", [json.dumps(dispatch_event("a", "b")), dispatch_event("a", "b")], ids=["string", "object"]
)
def test_a_replay_reads_the_payload_of_a_given_up_batch_as_a_string_or_as_an_object(
    shelf_in_s3: Shelf, written: object
) -> None:
    shelf_in_s3.put("one", document(written, "RecordAgeExceeded"))
    ((found, read),) = batches(replaying())
    assert (found.key, read, found.condition) == (key("one"), dispatch_event("a", "b"), "RecordAgeExceeded")
    assert found.records == 2


def test_a_replay_lists_the_given_up_batches_from_the_oldest_to_the_newest(shelf_in_s3: Shelf) -> None:
    for name, day in (("a", 20), ("b", 18), ("c", 19)):
        shelf_in_s3.put(name, document(dispatch_event(name)))
        stored = s3_backends[ACCOUNT]["aws"].buckets[BUCKET].keys[key(name)]
        stored.last_modified = datetime(2026, 11, day, tzinfo=UTC).replace(tzinfo=None)
    assert [each for _, each in replaying().waiting()] == [key("b"), key("c"), key("a")]


def test_a_replay_finds_the_given_up_batches_on_every_page_of_the_s3_listing(
    shelf_in_s3: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    for name in "abcde":
        shelf_in_s3.put(name, document(dispatch_event(name)))
    assert len([*replaying().waiting()]) == 5


@pytest.mark.parametrize("function", ["dispatch", "outcomes:$LATEST", "index-messages"])
def test_a_replayed_batch_goes_whole_to_the_function_that_failed_and_moves_to_replayed(
    shelf_in_s3: Shelf, function: str
) -> None:
    written = document(dispatch_event("a", "b"), function=f"mailroom-dev-{function}")
    shelf_in_s3.put("one", written)
    dispatch = FakeDispatch()
    failed = replaying(dispatch)
    (found,) = batches(failed)
    assert failed.replay(*found).why == ""
    assert dispatch.invoked == [(f"mailroom-dev-{function.partition(':')[0]}", dispatch_event("a", "b"))]
    assert shelf_in_s3.keys() == [f"replayed/{key('one')}"]
    assert shelf_in_s3.read(f"replayed/{key('one')}") == written
    assert not [*failed.waiting()]


@pytest.mark.parametrize(
    ("function", "dispatch", "why"),
    [
        ("payroll", FakeDispatch(), "its function does not read a stream of this stage"),
        (
            "mailroom-dev-dispatch",
            FakeDispatch([{"batchItemFailures": [{"itemIdentifier": "1"}]}]),
            "1 of its records failed; see the log of mailroom-dev-dispatch",
        ),
        (
            "mailroom-dev-dispatch",
            FakeDispatch([{"errorMessage": "boom"}], error="Unhandled"),
            "its function failed; see the log of mailroom-dev-dispatch",
        ),
    ],
    ids=["another function", "a record fails", "the function fails"],
)
def test_a_given_up_batch_that_cannot_be_replayed_whole_stays_and_the_replay_returns_the_reason(
    shelf_in_s3: Shelf, function: str, dispatch: FakeDispatch, why: str
) -> None:
    shelf_in_s3.put("one", document(dispatch_event("a", "b"), function=function))
    failed = replaying(dispatch)
    (found,) = batches(failed)
    assert failed.replay(*found).why.startswith(why)
    assert (len(dispatch.invoked), shelf_in_s3.keys()) == (int(function != "payroll"), [key("one")])


# streaming


def test_a_replay_reads_each_batch_just_before_it_invokes_the_function(
    shelf_in_s3: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        shelf_in_s3.put(name, document(dispatch_event(name)))
    dispatch = Meanwhile(lambda: shelf_in_s3.put("c", document(dispatch_event("c", "later"))))
    assert repair_given_up(monkeypatch, dispatch, "--yes").exit_code == 0
    assert [len(told["Records"]) for _, told in dispatch.invoked] == [1, 1, 2]


def test_a_batch_that_another_operator_has_replayed_is_left_out(
    shelf_in_s3: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        shelf_in_s3.put(name, document(dispatch_event(name)))
    other = replaying()

    def another() -> None:
        for each in list(batches(other))[1:]:
            assert other.replay(*each).why == ""

    dispatch = Meanwhile(another)
    result = repair_given_up(monkeypatch, dispatch, "--yes", "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["found"], answer["replayed"]) == (0, 1, 1)
    assert len(dispatch.invoked) == 1


def test_a_replay_leaves_an_object_that_is_not_a_batch_in_the_bucket_and_replays_the_others(
    shelf_in_s3: Shelf,
) -> None:
    shelf_in_s3.put("odd", {"hello": "world"})
    shelf_in_s3.put("one", document(dispatch_event("a")))
    dispatch = FakeDispatch()
    failed = replaying(dispatch)
    assert sorted(bool(failed.replay(*each).why) for each in batches(failed)) == [False, True]
    assert len(dispatch.invoked) == 1
    assert set(shelf_in_s3.keys()) >= {key("odd")}


# the command


def test_the_output_of_a_replay_counts_batches_and_records_and_names_the_failed_batches(
    shelf_in_s3: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf_in_s3.put("one", document(dispatch_event("a", "b")))
    shelf_in_s3.put("two", document(dispatch_event("c"), "RecordAgeExceeded"))
    failing = FakeDispatch([{"batchItemFailures": [{"itemIdentifier": "0"}]}])
    result = repair_given_up(monkeypatch, failing, "--yes", "--json")
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
    assert (left["function"], left["result"]) == ("mailroom-dev-dispatch", "left")
    assert left["why"] == "1 of its records failed; see the log of mailroom-dev-dispatch"
    assert left["since"].endswith("Z")


def test_a_dry_run_of_a_replay_names_each_given_up_batch_and_does_not_invoke_a_function(
    shelf_in_s3: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf_in_s3.put("one", document(dispatch_event("a", "b")))
    dispatch = FakeDispatch()
    result = repair_given_up(monkeypatch, dispatch, "--dry-run")
    assert result.exit_code == 1
    assert f"{key('one')}: 2 records of mailroom-dev-dispatch since 20" in result.stdout
    assert "1 batch waits; run without --dry-run to replay." in result.stdout
    assert (dispatch.invoked, shelf_in_s3.keys()) == ([], [key("one")])


@pytest.mark.parametrize("option", ["--dry-run", "--json"])
@pytest.mark.usefixtures("shelf_in_s3")
def test_a_replay_exits_with_0_without_a_question_if_no_batch_was_given_up(
    monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    result = repair_given_up(monkeypatch, FakeDispatch())
    assert (result.exit_code, result.stdout) == (0, "0 batches replayed, 0 left.\n")
    assert repair_given_up(monkeypatch, FakeDispatch(), option).exit_code == 0


def test_a_replay_shows_the_number_and_the_age_of_the_batches_and_requires_a_confirmation(
    shelf_in_s3: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, hours in (("a", 3), ("b", 50)):
        shelf_in_s3.put(name, document(dispatch_event(name)))
        stored = s3_backends[ACCOUNT]["aws"].buckets[BUCKET].keys[key(name)]
        stored.last_modified = (datetime.now(UTC) - timedelta(hours=hours)).replace(tzinfo=None)
    dispatch = FakeDispatch()
    asked = repair_given_up(monkeypatch, dispatch, typed="n\n")
    assert asked.exit_code == 1
    assert "2 batches wait, the oldest since " in asked.stderr
    assert "2 days ago. Replay into dev? [y/N]" in asked.stderr
    assert (dispatch.invoked, len(shelf_in_s3.keys())) == ([], 2)
    assert repair_given_up(monkeypatch, dispatch, typed="y\n").exit_code == 0
    assert len(dispatch.invoked) == 2


def test_a_batch_whose_function_does_not_respond_is_left_and_the_others_are_replayed(
    shelf_in_s3: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        shelf_in_s3.put(name, document(dispatch_event(name)))
    dispatch = Meanwhile(out_of_reach)
    result = repair_given_up(monkeypatch, dispatch, "--yes")
    assert result.exit_code == 1
    assert "its function could not be invoked: Read timeout" in " ".join(result.stdout.split())
    assert "1 batch replayed, 1 left." in result.stdout


def out_of_reach() -> None:
    raise ReadTimeoutError(endpoint_url="https://lambda")


def test_the_client_for_replays_waits_longer_than_a_function_may_run_and_does_not_retry() -> None:
    config: Any = config_for_invocations()
    assert config.read_timeout > 900
    assert config.retries == {"total_max_attempts": 1}


@pytest.mark.usefixtures("shelf_in_s3")
def test_a_replay_uses_a_client_that_waits_longer_than_a_function_may_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, configs = Session({"lambda": FakeDispatch()}), dict[str, Any]()
    client = session.client

    def recorded(name: str, **options: Any) -> Any:
        configs[name] = options.get("config")
        return client(name, **options)

    monkeypatch.setattr(session, "client", recorded)
    FailedBatches(session, "dev")
    assert configs["lambda"].read_timeout > 900
