"""A file of messages, imported by the command itself, killed and started again: into the inbox."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.harness.acceptances import id_of_mail
from mailroom_local.stage.workspace import MAILBOX
from tests.support import ROOT
from tests.support.pipeline.campaign import operator
from tests.support.pipeline.shared import Pipeline, until

ROWS = 400
BAD = (7, 300)
"""Rows without an address."""
PREFIX = "imported"
SOME = 50
"""Rows that a process puts before it is killed."""
SECONDS = 240.0
WORDS = (
    *("--channel", "mail", "--id-prefix", PREFIX),
    *("--workers", "4", "--stage", "local", "--json"),
)


def put_so_far(pipeline: Pipeline) -> int:
    """How many of the file are in the mailbox."""
    pages = pipeline.dynamodb.get_paginator("scan").paginate(
        TableName=MAILBOX,
        Select="COUNT",
        FilterExpression="begins_with(id, :prefix)",
        ExpressionAttributeValues={":prefix": {"S": f"{PREFIX}-"}},
    )
    return sum(page["Count"] for page in pages)


def killed(pipeline: Pipeline, file: Path) -> int:
    """Start the command, and kill it as soon as it has put some; how many are in the mailbox then."""
    child = subprocess.Popen(
        [sys.executable, "-m", "mailroom_ops", "import", str(file), *WORDS],
        cwd=ROOT,
        env=os.environ | pipeline.running.variables() | {"NO_PROXY": "*"},
        stdout=subprocess.DEVNULL,
    )
    try:
        until(lambda: put_so_far(pipeline) > SOME, SECONDS, lambda: f"{put_so_far(pipeline)} put", 0.2)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == -signal.SIGKILL
    return put_so_far(pipeline)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("import") / "people.csv"
    with path.open("w") as lines:
        lines.write("id,to,subject,text,first_name\n")
        for row in range(ROWS):
            address = "nowhere" if row in BAD else f"person-{row}@example.com"
            lines.write(f"{row},{address},Hello,Hi,Person {row}\n")
    return path


@pytest.fixture(scope="module")
def answer(pipeline: Pipeline, file: Path) -> dict[str, Any]:
    """The answer of a process that goes on where one was killed. tests/ops/test_ops_import_resume.py kills
    it among many rows."""
    assert 0 < killed(pipeline, file) < ROWS - len(BAD)
    done = operator(pipeline, "import", str(file), *WORDS)
    assert done.exit_code == 1, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_the_last_process_finishes_and_counts_every_row(answer: dict[str, Any]) -> None:
    assert (answer["state"], answer["lines"]) == ("done", ROWS)
    assert answer["put"] + answer["existed"] == ROWS - len(BAD)
    assert (answer["refused"], answer["conflict"], answer["failed"]) == (len(BAD), 0, 0)
    assert [fault["line"] for fault in answer["faults"]] == [row + 2 for row in BAD]


def test_each_recipient_has_exactly_one_mail(pipeline: Pipeline, answer: dict[str, Any]) -> None:
    expected = {f"{PREFIX}-{row}" for row in range(ROWS)} - {f"{PREFIX}-{row}" for row in BAD}

    pipeline.until_ended(*expected, seconds=SECONDS)
    taken = [id_of_mail(each) for each in pipeline.inbox()]
    assert sorted(id_ for id_ in taken if id_.startswith(f"{PREFIX}-")) == sorted(expected)


def test_a_second_import_of_the_same_file_puts_no_message(
    pipeline: Pipeline, answer: dict[str, Any], file: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.csv"
    copy.write_text("".join(file.read_text().splitlines(keepends=True)[:101]))
    again = operator(pipeline, "import", str(copy), *WORDS)
    said = json.loads(again.stdout)
    assert (said["put"], said["existed"], said["refused"]) == (0, 99, 1)
