"""Two versions side by side: this one reads what the last release wrote, and the release what this writes.

During a deployment functions of both run, and a rollback puts the old ones before what the new ones left.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from mailroom.message.status import Status
from stacks.paths import ROOT

pytestmark = pytest.mark.process

RELEASE = Path(__file__).parent / "0.2.0"
WRITTEN = sorted(path.stem for path in RELEASE.glob("*.json") if path.stem != "outcomes")
OUTCOMES = json.loads((RELEASE / "outcomes.json").read_text())
DIFFERENT: dict[str, str] = {}
"""What this version writes otherwise, as `file/…/attribute`, and why the release can live with it."""


def _run(module: str, *arguments: Path) -> None:
    """In a process of its own, whose time and tokens are fixed before the library is imported."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'lambdas'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", f"tests.unit.release.{module}", *map(str, arguments)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What this version writes, recorded as the release was."""
    folder = tmp_path_factory.mktemp("recorded")
    _run("record", folder)
    return folder


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What this version does with what the release wrote."""
    answer = tmp_path_factory.mktemp("replayed") / "outcomes.json"
    _run("replay", RELEASE, answer)
    return json.loads(answer.read_text())


@pytest.mark.parametrize("way", OUTCOMES)
def test_this_version_does_with_each_thing_what_the_release_did(replayed: Any, way: str) -> None:
    assert replayed[way] == OUTCOMES[way]


@pytest.mark.parametrize("kind", WRITTEN)
def test_this_version_writes_what_the_release_can_read(recorded: Path, kind: str) -> None:
    then = json.loads((RELEASE / f"{kind}.json").read_text())
    now = json.loads((recorded / f"{kind}.json").read_text())
    found = {*_differences(_shape(then), _shape(now), kind)}
    assert found - DIFFERENT.keys() == set()


def test_what_was_over_is_submitted_by_neither() -> None:
    ledger = json.loads((RELEASE / "ledger.json").read_text())
    over = [name for name, item in ledger.items() if "completedAt" in item and name in OUTCOMES["met"]]
    assert len(over) > 20
    assert [name for name in over if "submitted" in OUTCOMES["met"][name]] == []


def test_what_was_open_and_names_no_account_is_held_and_not_submitted_again() -> None:
    assert {*OUTCOMES["met, of a version before"].values()} == {"failed"}


def test_every_status_and_every_queue_is_recorded() -> None:
    items = json.loads((RELEASE / "ledger.json").read_text()).values()
    assert {each["status"]["S"] for each in items} == {*get_args(Status)}
    assert {"erased_at", "trouble", "dead_lettered_at", "generation", "unsettled_tries", "recipients"} <= {
        name for each in items for name in each
    }
    queues = json.loads((RELEASE / "queues.json").read_text())
    assert queues.keys() == {
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
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 1}]}, "ledger/a"),
    ],
)
def test_what_is_lacking_new_or_of_another_type_is_a_difference(then: Any, now: Any, path: str) -> None:
    found = [*_differences(_shape(then), _shape(now), "ledger")]
    assert found
    assert all(each.startswith(path) for each in found)


def _shape(value: Any) -> Any:
    """A value without what may differ: names and types. JSON in a text has a shape as well."""
    match value:
        case dict():
            return {name: _shape(each) for name, each in value.items()}
        case list():
            return sorted({json.dumps(_shape(each), sort_keys=True) for each in value})
        case str() if value.startswith("{"):
            return {"JSON": _shape(json.loads(value))}
    return type(value).__name__


def _differences(then: Any, now: Any, path: str) -> Iterator[str]:
    """The places where two shapes differ."""
    if isinstance(then, dict) and isinstance(now, dict) and path.count("/") < 3:
        for name in sorted({*then, *now}):
            yield from _differences(then.get(name), now.get(name), f"{path}/{name}")
    elif then != now:
        yield path
