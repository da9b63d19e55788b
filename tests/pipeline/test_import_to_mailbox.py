"""A file of messages, imported by the operator's command into the mailbox, and from there to the inbox."""

import json
from pathlib import Path
from typing import Any

import pytest

from lab.harness.acceptances import id_of_mail
from tests.support.pipeline.campaign import operator
from tests.support.pipeline.shared import Pipeline

ROWS = 60
BAD = (7, 30)
"""Rows without an address."""
PREFIX = "imported"
WORDS = (
    *("--channel", "mail", "--id-prefix", PREFIX),
    *("--workers", "4", "--stage", "local", "--json"),
)


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
def report(pipeline: Pipeline, file: Path) -> dict[str, Any]:
    """Report of the first import. tests/ops/test_ops_import_resume.py shows an import that is killed."""
    done = operator(pipeline, "messages", "import", str(file), *WORDS)
    assert done.exit_code == 1, done.stderr
    return dict(json.loads(done.stdout))


def test_an_import_counts_the_put_and_the_refused_rows_of_a_file_and_names_the_bad_lines(
    report: dict[str, Any],
) -> None:
    assert (report["state"], report["lines"]) == ("done", ROWS)
    assert (report["put"], report["refused"]) == (ROWS - len(BAD), len(BAD))
    assert (report["existed"], report["conflict"], report["failed"]) == (0, 0, 0)
    assert [fault["line"] for fault in report["faults"]] == [row + 2 for row in BAD]


@pytest.mark.usefixtures("report")
def test_each_valid_row_of_an_imported_file_is_sent_as_exactly_one_mail(pipeline: Pipeline) -> None:
    expected = {f"{PREFIX}-{row}" for row in range(ROWS)} - {f"{PREFIX}-{row}" for row in BAD}

    pipeline.until_ended(*expected)
    taken = [id_of_mail(each) for each in pipeline.inbox()]
    assert sorted(id_ for id_ in taken if id_.startswith(f"{PREFIX}-")) == sorted(expected)


@pytest.mark.usefixtures("report")
def test_a_second_import_of_the_same_file_puts_no_message(pipeline: Pipeline, file: Path) -> None:
    second = json.loads(operator(pipeline, "messages", "import", str(file), *WORDS).stdout)
    assert (second["put"], second["existed"], second["refused"]) == (0, ROWS - len(BAD), len(BAD))
