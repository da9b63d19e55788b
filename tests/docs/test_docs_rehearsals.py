"""docs/reference/limits.md shows the rehearsal of each release on AWS, and says so if there is none."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import msgspec
import pytest

from mailroom_ops.deploying.rehearsal import Step
from mailroom_ops.deploying.rehearse import Report, report_of
from tests.support.docs_rehearsals import HEAD, NONE, PAGE, page, table

STEPS = (
    Step("a mail", "delivered", "delivered", {"claimed": 0.2, "accepted": 0.31, "delivered": 1.4}),
    Step("another mail", "delivered", "delivered", {"claimed": 0.2, "accepted": 0.9, "delivered": 2.1}),
)
VERSIONS = {"mailroom": "0.3.0", "cdk": "2.275.0", "boto3": "1.44.5", "python": "3.14.0"}


def reported(folder: Path, name: str = "0.3.0", steps: Sequence[Step] = STEPS) -> Path:
    report = report_of(steps, "eu-west-1", date(2026, 12, 1))
    file = folder / f"{name}.json"
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(report, versions=VERSIONS)))
    return file


def test_the_page_has_the_table_of_the_reports_in_the_folder() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "run: make schema"


def test_the_page_without_a_report_contains_the_sentence_that_no_release_was_rehearsed(
    tmp_path: Path,
) -> None:
    assert table(tmp_path) == NONE
    assert f"\n{NONE}\n" in page(PAGE.read_text(), tmp_path)


def test_a_report_becomes_a_row_with_its_outcome_and_its_latencies(tmp_path: Path) -> None:
    reported(tmp_path)
    row = "| 0.3.0 | 2026-12-01 | eu-west-1 | 2 of 2 | 0.31 to 0.9 s | 1.4 to 2.1 s | {} |"
    assert table(tmp_path) == HEAD + row.format("cdk 2.275.0, boto3 1.44.5, python 3.14.0")


def test_a_failed_step_is_named_in_the_row(tmp_path: Path) -> None:
    reported(tmp_path, steps=[STEPS[0], Step("a dead letter", "delivered", "sent")])
    assert "| 1 of 2; not: a dead letter (sent) |" in table(tmp_path)


def test_the_newest_release_comes_first(tmp_path: Path) -> None:
    reported(tmp_path)
    report = msgspec.json.decode(reported(tmp_path, "0.10.0").read_bytes(), type=Report)
    newer = msgspec.structs.replace(report, versions={**VERSIONS, "mailroom": "0.10.0"})
    (tmp_path / "0.10.0.json").write_bytes(msgspec.json.encode(newer))
    assert [row.split()[1] for row in table(tmp_path).splitlines()[2:]] == ["0.10.0", "0.3.0"]


def test_a_report_of_a_build_that_is_not_a_release_is_refused(tmp_path: Path) -> None:
    reported(tmp_path, "0.3.0.dev1554+ga0666ab3")
    with pytest.raises(ValueError, match="is not of a release"):
        table(tmp_path)


@pytest.mark.parametrize(
    ("name", "step", "problem"),
    [
        ("0.2.0", STEPS[0], "the report is of 0.3.0; name the file 0.3.0.json"),
        ("0.3.0", Step("ada@example.com", "sent", "sent"), "is an address or an account"),
        ("0.3.0", Step("a mail", "sent", "sent", {}, "123456789012"), "123456789012 is an address"),
    ],
)
def test_a_report_of_another_release_or_with_an_address_or_an_account_is_refused(
    tmp_path: Path, name: str, step: Step, problem: str
) -> None:
    reported(tmp_path, name, [step])
    with pytest.raises(ValueError, match=problem):
        table(tmp_path)
