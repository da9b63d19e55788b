"""The workflow that deploys a new folder: its script chooses the stages that the variable names."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support import ROOT

WORKFLOW = ROOT / "mailroom_ops/setup/project/.github/workflows/deploy.yml"
STAGES: Mapping[str, Any] = {"dev": {}, "prod": {"profile": "deployed"}, "local": {"profile": "local"}}
NAMES = (
    "dev",
    "prod",
    "local",
    "laptop",
    "devel",
    "de",
    "d",
    "Dev",
    "dev,prod",
    "$(touch x)",
    "'",
    '"; exit 0',
    "[]",
)

pytestmark = pytest.mark.process


class Result(NamedTuple):
    """Outcome of the workflow's script."""

    code: int
    output: str
    """Text in the file GITHUB_OUTPUT."""
    errors: str


def run_script(stages: Mapping[str, Any], variable: str) -> Result:
    """Run the script as a runner does, in a folder with the settings of these stages."""
    (script,) = (
        step for step in yaml.safe_load(WORKFLOW.read_text())["jobs"]["stages"]["steps"] if "run" in step
    )
    assert script["env"] == {"DEPLOY_STAGES": "${{ vars.DEPLOY_STAGES }}"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cdk.json").write_text(json.dumps({"context": {"mailroom": stages}}))
        output = folder / "output"
        output.touch()
        done = subprocess.run(
            ["bash", "-e", "-c", script["run"]],
            cwd=folder,
            env={"PATH": path, "GITHUB_OUTPUT": str(output), "DEPLOY_STAGES": variable},
            capture_output=True,
            text=True,
            check=False,
        )
        assert sorted(file.name for file in folder.iterdir()) == ["cdk.json", "output"]
        return Result(done.returncode, output.read_text(), done.stderr)


def matrix(output: str) -> list[str]:
    """Return the stages of the job's matrix, which GitHub reads from the output."""
    name, _, value = output.removesuffix("\n").partition("=")
    assert (name, "\n" in value) == ("stages", False)
    stages: list[str] = json.loads(value)
    return stages


@pytest.mark.parametrize(
    ("variable", "stages"),
    [
        ("dev", ["dev"]),
        ("dev prod", ["dev", "prod"]),
        ("prod", ["prod"]),
        ("prod dev", ["prod", "dev"]),
        ("  dev   prod\t", ["dev", "prod"]),
        ("dev prod dev", ["dev", "prod"]),
    ],
)
def test_the_workflow_deploys_exactly_the_stages_that_the_variable_names_in_its_order(
    variable: str, stages: list[str]
) -> None:
    assert matrix(run_script(STAGES, variable).output) == stages


@pytest.mark.parametrize("variable", ["", "   "])
def test_the_workflow_succeeds_and_does_not_deploy_a_stage_if_the_variable_is_empty(variable: str) -> None:
    # The condition of the job that deploys compares with this text.
    assert run_script(STAGES, variable) == Result(0, "stages=[]\n", "")


@pytest.mark.parametrize("name", ["devel", "local", "dev,prod"])
def test_the_workflow_fails_and_lists_the_stages_if_the_variable_names_one_that_is_not_on_aws(
    name: str,
) -> None:
    assert run_script(STAGES, f"prod {name}") == Result(
        1,
        "",
        f"The variable DEPLOY_STAGES names {name}, which is not a stage of cdk.json for AWS. "
        "Write names of these stages, separated by spaces: dev, prod.\n",
    )


@settings(max_examples=60)
@given(
    names=st.lists(st.sampled_from(NAMES), max_size=4),
    spaces=st.sampled_from([" ", "  ", "\t", "\n"]),
    profiles=st.dictionaries(
        st.sampled_from(["dev", "prod", "local", "laptop"]), st.sampled_from([None, "deployed", "local"])
    ),
)
@example(names=["laptop"], spaces=" ", profiles={"laptop": "local"})
@example(names=["local"], spaces=" ", profiles={"local": "deployed"})
def test_the_workflow_deploys_the_stages_of_a_random_variable_or_ends_with_an_error(
    names: list[str], spaces: str, profiles: dict[str, str | None]
) -> None:
    stages = {name: {"profile": profile} if profile else {} for name, profile in profiles.items()}
    variable = spaces.join(names)
    on_aws = [name for name, profile in profiles.items() if name != "local" and profile != "local"]
    words = variable.split()
    result = run_script(stages, variable)
    if all(word in on_aws for word in words):
        assert (result.code, result.errors) == (0, "")
        assert matrix(result.output) == sorted(set(words), key=words.index)
    else:
        assert (result.code, result.output) == (1, "")
        unknown = next(word for word in words if word not in on_aws)
        assert f"names {unknown}, which is not a stage" in result.errors
