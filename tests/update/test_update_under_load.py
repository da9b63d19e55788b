"""An update of a stage that sends: the earlier build of the commit `base` is deployed, messages of all
channels are put, and this code is deployed over it while they are on their way."""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest

from lab.demo.__main__ import left_over
from lab.harness.expected import Expected
from lab.harness.judge import Judgement
from lab.harness.run import Bars, Run
from lab.harness.stage_client import StageClient
from lab.load import draw
from mailroom_local.stage import lifecycle
from mailroom_local.stage.deploy import PROVIDERS, EmulatorDeployment
from mailroom_local.stage.workspace import State, Workspace
from mailroom_ops.shared.terminal import Terminal
from mailroom_stacks.paths import BUNDLES
from tests.support import ROOT

BASE = (Path(__file__).parent / "base").read_text().strip()
"""Commit of the earlier build: that of the last release or, before the first one, of a build on main."""
SEED, MESSAGES, RATE = 1, 250, 40.0
"""Messages, and number of messages that are put in a second: for longer than the deployment takes."""
PATIENCE_SECONDS = 60.0
MISSING = f"the commit {BASE[:8]} of tests/update/base is not in this clone; `git fetch origin {BASE}`"


def archive() -> bytes:
    """Return the files of BASE, packed."""
    packed = subprocess.run(["git", "archive", BASE], cwd=ROOT, capture_output=True, check=False)
    assert packed.returncode == 0, MISSING
    return packed.stdout


def assembly_of_base(folder: Path) -> Path:
    """The cloud assembly of the local stage, as BASE's own code makes it."""
    tree, assembly = folder / "tree", folder / "assembly"
    with tarfile.open(fileobj=io.BytesIO(archive())) as packed:
        packed.extractall(tree, filter="data")
    (tree / ".local").mkdir()
    BUNDLES.mkdir(parents=True, exist_ok=True)
    (tree / ".local" / "bundles").symlink_to(BUNDLES)  # packages by the hash of their lock
    subprocess.run(
        [
            *(sys.executable, "app.py", "-c", "stage=local", "-c", f"providers={PROVIDERS}"),
            *("--output", str(assembly)),
        ],
        cwd=tree,
        # Before what is installed here: this code.
        env={**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'lambdas'}"},
        check=True,
        capture_output=True,
    )
    return assembly


@contextmanager
def stage_of_base(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[State]:
    """A running stage of BASE."""
    assembly, workspace = assembly_of_base(folder), Workspace(folder / "stage")

    with patch.context() as deploying_base:
        deploying_base.setattr(lifecycle, "synthesize", lambda: assembly)
        running = lifecycle.start(workspace, lambda _: None)
    try:
        yield running
    finally:
        lifecycle.stop(workspace)


@dataclass(frozen=True)
class Updated:
    """Result of an update: the judgement, the remaining messages, the hashes of the functions' code before
    and after, how many messages were put before the deployment began and when it ended, and how many in all.
    """

    judgement: Judgement
    left_over: list[str]
    code: tuple[dict[str, str], dict[str, str]]
    put: tuple[int, int]
    load: list[Expected]


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Updated]:
    with (
        pytest.MonkeyPatch.context() as patch,
        stage_of_base(tmp_path_factory.mktemp("update"), patch) as running,
    ):
        stage = StageClient(running)
        load = draw(SEED, MESSAGES, running.endpoints.providers)
        stacks = lifecycle.synthesize()
        with Bars(Terminal(quiet=True)) as bars:
            run, code, put = Run(stage, bars, PATIENCE_SECONDS), [hashes(stage)], []

            def update(_: Event) -> None:
                put.append(len(run.put_at))
                deployment = EmulatorDeployment(running.endpoints.aws)
                deployment.deploy(stacks, running.endpoints.providers)
                put.append(len(run.put_at))

            run.send("all", load, rate=RATE, disturb=update)
            run.settle()
            judgement = run.judge(strict=True)
        code.append(hashes(stage))
        yield Updated(judgement, left_over(stage), (code[0], code[1]), (put[0], put[1]), run.load)


def hashes(stage: StageClient) -> dict[str, str]:
    """The hash of each function's code and variables, by the function's name."""
    pages = stage.functions.get_paginator("list_functions").paginate()
    return {
        each["FunctionName"]: f"{each['CodeSha256']} {json.dumps(each.get('Environment'), sort_keys=True)}"
        for page in pages
        for each in page["Functions"]
    }


def test_every_function_gets_its_new_code_while_messages_are_being_sent(updated: Updated) -> None:
    before, after = updated.code
    assert before.keys() <= after.keys()
    assert not {name for name in before if before[name] == after[name]}
    assert updated.put[1] < len(updated.load)  # the deployment was over before the last message was put
    assert {event_type for _, event_type in (each.key for each in updated.load)} == {
        "mail",
        "sms",
        "push",
        "fax",
        "webhook",
    }


def test_each_message_put_during_an_update_is_sent_once_and_every_callback_has_a_valid_signature(
    updated: Updated,
) -> None:
    assert updated.judgement.wrong == []
    assert updated.left_over == []
