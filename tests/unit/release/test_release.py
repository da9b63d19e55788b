"""Two versions side by side: this one reads what the last release wrote, and the release what this writes.

During a deployment functions of both run, and a rollback puts the old ones before what the new ones left.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, get_args

import pytest

from mailroom.message.outcome import Status
from stacks.paths import ROOT

pytestmark = pytest.mark.process

HERE = Path(__file__).parent
TOPIC = {"ledger/*/topic": "events tell of it; other versions read and write items without it"}
FIELD = {
    "ledger/m-invalid/error/M": "the attribute at fault stands beside the code; others do not read it",
    "ledger/m-bounced with callbacks/callbacks/M": "why one failed is kept; others do not read it",
    "queues/webhook": "callbacks have timestamp_ms and field; versions of before post the body as it is",
}
DIFFERENT: dict[str, dict[str, str]] = {
    "0.2.0": {
        **TOPIC,
        **FIELD,
        "ledger/*/unsettled_tries": "a claim says where it submits; 0.2.0 reads and writes items without it",
        "ledger/f-following settled": "0.2.0 has no mailroom settle",
        "outcomes/operated/settle *": "0.2.0 has no mailroom settle",
        "outcomes/met/[fs]-lost sending, of unknown outcome": (
            "0.2.0 did not write where it submitted: nothing proves that it did not, and on_unknown decides"
        ),
    },
    "unreleased": {
        **TOPIC,
        **FIELD,
        "ledger/*/unsettled_tries": "tries are counted; versions of before read and write items without it",
    },
}
"""By release: what this version writes or does otherwise, and why that is right. `unreleased` is what was
merged after 0.2.0 and may be deployed from here."""
TIME = re.compile(r"[0-9]{10}([0-9]{3})?|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)")
"""Epoch seconds or milliseconds, or ISO 8601."""
FILES = (
    *("campaign-runs", "dead-letters", "ledger", "mailbox"),
    *("preferences", "queues", "schedules", "suppressions"),
)


def _run(module: str, *arguments: Path) -> None:
    """In a process of its own, whose time and tokens are fixed before the library is imported."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'lambdas'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", f"tests.unit.release.{module}", *map(str, arguments)]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What this version writes, recorded as the release was."""
    folder = tmp_path_factory.mktemp("recorded")
    _run("record", folder)
    return folder


@pytest.fixture(scope="module", params=DIFFERENT)
def release(request: pytest.FixtureRequest) -> str:
    """Each release in turn."""
    return str(request.param)


@pytest.fixture(scope="module")
def replayed(release: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What this version does with what the release wrote."""
    answer = tmp_path_factory.mktemp("replayed") / "outcomes.json"
    _run("replay", HERE / release, answer)
    return json.loads(answer.read_text())


def test_this_version_does_with_each_thing_what_the_release_did(replayed: Any, release: str) -> None:
    found = _differences(_read(release, "outcomes"), replayed, "outcomes")
    assert _unexplained(found, release) == []


@pytest.mark.parametrize("kind", FILES)
def test_this_version_writes_what_the_release_can_read(recorded: Path, release: str, kind: str) -> None:
    now = json.loads((recorded / f"{kind}.json").read_text())
    found = _differences(_shape(_read(release, kind)), _shape(now), kind)
    assert _unexplained(found, release) == []


def test_every_known_difference_is_still_one(recorded: Path, replayed: Any, release: str) -> None:
    found = {*_differences(_read(release, "outcomes"), replayed, "outcomes")}
    for kind in FILES:
        now = json.loads((recorded / f"{kind}.json").read_text())
        found.update(_differences(_shape(_read(release, kind)), _shape(now), kind))
    assert [known for known in DIFFERENT[release] if not any(fnmatch(each, known) for each in found)] == []


def test_what_was_over_is_not_submitted_again(replayed: Any, release: str) -> None:
    ledger = _read(release, "ledger")
    over = [name for name, item in ledger.items() if "completedAt" in item and name in replayed["met"]]
    assert len(over) > 20
    assert [name for name in over if "submitted" in replayed["met"][name]] == []


def test_what_names_no_account_is_held_and_not_submitted_again(replayed: Any, release: str) -> None:
    unnamed = [
        name
        for name, item in _read(release, "ledger").items()
        if "unsettled_since" in item and "completedAt" not in item and "unsettled_tries" not in item
    ]
    assert unnamed or release != "0.2.0"
    assert {name: replayed["met"][name] for name in unnamed} == dict.fromkeys(unnamed, "failed")


def test_every_status_and_every_queue_is_recorded(release: str) -> None:
    items = _read(release, "ledger").values()
    assert {each["status"]["S"] for each in items} == {*get_args(Status)}
    assert {"erased_at", "trouble", "dead_lettered_at", "generation", "recipients"} <= {
        name for each in items for name in each
    }
    assert _read(release, "queues").keys() == {
        *("mail", "mail-bulk", "sms", "push", "fax.fifo", "fax-retry", "webhook", "scheduled", "feedback"),
        *("collect", "audience"),
    }


@pytest.mark.parametrize(
    ("then", "now", "path"),
    [
        ({"a": {"S": "x"}}, {}, "ledger/a"),
        ({}, {"a": {"S": "x"}}, "ledger/a"),
        ({"a": {"S": "x"}}, {"a": {"N": "1"}}, "ledger/a"),
        ({"a": '{"b": 1}'}, {"a": '{"c": 1}'}, "ledger/a"),
        ({"a": [1, 2]}, {"a": [1, "2"]}, "ledger/a"),
        ({"a": {"N": "1795251600000"}}, {"a": {"N": "1795251600"}}, "ledger/a"),
        ({"a": {"S": "2026-11-21T09:00:00+00:00"}}, {"a": {"S": "2026-11-21T09:00:00Z"}}, "ledger/a"),
        ({"status": {"S": "sent"}}, {"status": {"S": "gone"}}, "ledger/status"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 1}]}, "ledger/a"),
    ],
)
def test_what_is_lacking_new_or_of_another_form_is_a_difference(then: Any, now: Any, path: str) -> None:
    found = [*_differences(_shape(then), _shape(now), "ledger")]
    assert found
    assert all(each.startswith(path) for each in found)


def _read(release: str, kind: str) -> Any:
    return json.loads((HERE / release / f"{kind}.json").read_text())


def _unexplained(found: Iterable[str], release: str) -> list[str]:
    """The differences that nothing in DIFFERENT explains."""
    return [each for each in found if not any(fnmatch(each, known) for known in DIFFERENT[release])]


def _shape(value: Any) -> Any:
    """A value without what may differ: names, types, the form of numbers and times, and each status. JSON in
    a text has a shape as well."""
    match value:
        case dict():
            return {name: each if name == "status" else _shape(each) for name, each in value.items()}
        case list():
            return sorted({json.dumps(_shape(each), sort_keys=True) for each in value})
        case str() if value.startswith("{"):
            return {"JSON": _shape(json.loads(value))}
        case str() if TIME.fullmatch(value):
            return re.sub("[0-9]", "0", value)
    return type(value).__name__


def _differences(then: Any, now: Any, path: str) -> Iterator[str]:
    """The places where two shapes differ."""
    if isinstance(then, dict) and isinstance(now, dict) and path.count("/") < 3:
        for name in sorted({*then, *now}):
            yield from _differences(then.get(name), now.get(name), f"{path}/{name}")
    elif then != now:
        yield path
