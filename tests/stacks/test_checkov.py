"""checkov finds in the templates what .checkov.yaml accepts, each for its reason, and nothing else."""

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from stacks.paths import ROOT
from tests.support.stacks.templates import Templates

CHECKOV = ROOT / ".local" / "checkov" / "bin" / "checkov"
CONFIGURATION = (ROOT / ".checkov.yaml").read_text()
OFFLINE = ("--framework", "cloudformation", "--skip-download", "--quiet", "--compact", "--output", "json")


@pytest.fixture(scope="module")
def found(
    dev: Templates, prod: Templates, whole: Templates, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """What checkov finds with nothing accepted: the resources of each check that failed."""
    assert CHECKOV.exists(), f"{CHECKOV} is missing. Run `make test`, which installs checkov."
    together = tmp_path_factory.mktemp("templates")
    seen: set[str] = set()
    for name, stage in (("dev", dev), ("prod", prod), ("whole", whole)):
        (together / name).mkdir()
        for file in stage.folder.glob("*.template.json"):
            text = file.read_text()
            if text not in seen:  # what two stages have alike is looked at once
                (together / name / file.name).write_text(text)
                seen.add(text)
    ended = subprocess.run(
        [str(CHECKOV), "--directory", str(together), *OFFLINE],
        cwd=together,  # away from .checkov.yaml, which it would read by itself
        capture_output=True,
        text=True,
        check=False,
    )
    report: dict[str, Any] = json.loads(ended.stdout)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["resource_count"] > 400
    failed: dict[str, list[str]] = {}
    for each in report["results"]["failed_checks"]:
        failed.setdefault(each["check_id"], []).append(each["resource"])
    return failed


@cache
def accepted() -> dict[str, str]:
    """The checks of .checkov.yaml's skip-check, each with the comment above it."""
    reasons: dict[str, str] = {}
    comment = ""
    for line in CONFIGURATION.partition("skip-check:\n")[2].splitlines():
        if check := re.fullmatch(r"  - (CKV\w+)", line):
            reasons[check[1]], comment = comment.strip(), ""
        else:
            comment += f" {line.strip().removeprefix('# ')}"
    return reasons


def test_nothing_is_found_but_what_is_accepted(found: dict[str, list[str]]) -> None:
    assert {check: where for check, where in found.items() if check not in accepted()} == {}


def test_what_is_accepted_is_still_found(found: dict[str, list[str]]) -> None:
    """A line that excuses nothing any more would one day excuse something new."""
    assert accepted().keys() <= found.keys()


@pytest.mark.parametrize("check", accepted())
def test_each_has_its_reason_in_a_sentence(check: str) -> None:
    assert len(accepted()[check]) > 40
    assert accepted()[check].endswith(".")


def every(stages: tuple[Templates, ...], kind: str) -> Iterator[dict[str, Any]]:
    """The properties of every resource of a type."""
    for stage in stages:
        for template in stage.stacks.values():
            yield from template.all(kind)


def test_the_queues_are_encrypted_as_the_reason_says(
    dev: Templates, prod: Templates, whole: Templates
) -> None:
    queues = list(every((dev, prod, whole), "SQS::Queue"))
    assert queues
    assert all(each["SqsManagedSseEnabled"] is True for each in queues)


def test_no_environment_holds_a_secret_as_the_reason_says(
    dev: Templates, prod: Templates, whole: Templates
) -> None:
    """Where one is needed, the name says that it is a secret's ARN."""
    variables = [
        name
        for each in every((dev, prod, whole), "Lambda::Function")
        for name in each["Environment"]["Variables"]
        if re.search("SECRET|TOKEN|PASSWORD|CREDENTIAL", name)
    ]
    assert variables
    assert all(name.endswith(("_SECRET_ARN", "_SECRET_ARNS")) for name in variables)
