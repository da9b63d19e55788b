"""Workflows, hooks and dependency updates, which run by themselves. They call targets of make, and the
command."""

import json
import re
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from packaging.requirements import Requirement
from version_of_the_wheel import NUMBER

from mailroom_stacks.constructs.bundle import PYTHON
from tests.docs.test_docs_commands import require_command
from tests.support import ROOT
from tests.support.helpers import helpers_in, repeated

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEAMS = sorted((ROOT / "mailroom_ops/setup/project/.github/workflows").glob("*.yml"))
"""Workflows of a folder that `make new` makes."""
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
FUNCTIONS = sorted(ROOT.glob("lambdas/requirements/*.in"))
PINS = ROOT / "requirements.txt"
"""Lock of the CDK app and the commands, from which the other locks take their versions."""
REQUIREMENTS = sorted(
    [
        *ROOT.glob("*.in"),
        *ROOT.glob("mailroom_local/**/requirements.in"),
        *ROOT.glob("requirements/*.in"),
        *FUNCTIONS,
    ]
)
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""The SHA-256 of https://www.apache.org/licenses/LICENSE-2.0.txt."""
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*])?==([^\s;#]+)", re.MULTILINE)


def parsed(workflow: Path) -> dict[Any, Any]:
    """A workflow's content."""
    content: dict[Any, Any] = yaml.safe_load(workflow.read_text())
    return content


def steps(workflow: Path) -> list[dict[str, Any]]:
    """Return all steps of all jobs of a workflow."""
    return [step for job in parsed(workflow)["jobs"].values() for step in job.get("steps", [])]


def name(workflow: Path) -> str:
    """A workflow's name in reports of tests."""
    return f"{'' if workflow in WORKFLOWS else 'team-'}{workflow.stem}"


of_the_repository = pytest.mark.parametrize("workflow", WORKFLOWS, ids=name)
each_workflow = pytest.mark.parametrize("workflow", [*WORKFLOWS, *TEAMS], ids=name)


@of_the_repository
def test_a_workflow_calls_only_existing_make_targets_and_existing_mailroom_commands(workflow: Path) -> None:
    ran = [step["run"] for step in steps(workflow) if "run" in step]
    if workflow.stem == "release":
        assert ran.pop().startswith("gh release create ")
    assert ran
    for script in ran:
        targets = re.findall(r"\bmake ([a-z]+)", script)
        commands = re.findall(r"\.venv/bin/mailroom ([^|]+?)(?: 2>&1|$)", script, re.MULTILINE)
        assert targets or commands, script
        assert {*targets} <= TARGETS
        for command in commands:
            require_command(command, f"{workflow}")


def test_the_release_workflow_uploads_the_wheel_of_the_tags_version_with_its_sbom_and_checksums() -> None:
    (release,) = (each for each in WORKFLOWS if each.stem == "release")
    *_, step = steps(release)
    script = f'gh() {{ printf "%s\\n" "$@"; }}\n{step["run"]}'
    command = ["bash", "-e", "-c", script]
    ended = subprocess.run(
        command, env={"GITHUB_REF_NAME": "v9.9.9"}, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-3:] == [
        "dist/mailroom_cdk-9.9.9-py3-none-any.whl",
        "dist/mailroom.cdx.json",
        "dist/SHA256SUMS",
    ]


@each_workflow
def test_an_action_of_a_workflow_is_pinned_by_its_commit_with_its_version_beside_it(workflow: Path) -> None:
    used = re.findall(r"uses: (.*)", workflow.read_text())
    assert used
    for each in used:
        if each.startswith("./.github/workflows/"):
            assert (workflow.parent / Path(each).name).is_file()
        else:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)


@each_workflow
def test_a_workflows_token_may_only_read_the_repository_except_in_the_job_that_publishes_a_release(
    workflow: Path,
) -> None:
    content = parsed(workflow)
    publish = content["jobs"].pop("publish") if workflow.stem == "release" else None
    granted = [content["permissions"], *(job.get("permissions", {}) for job in content["jobs"].values())]
    for each in granted:
        assert each.items() <= {"contents": "read", "id-token": "write"}.items()
    checkouts = [step for step in steps(workflow) if "actions/checkout@" in step.get("uses", "")]
    assert checkouts or all("uses" in job for job in content["jobs"].values())
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    if publish:
        assert publish["permissions"] == {"attestations": "write", "contents": "write", "id-token": "write"}
        assert not [step for step in publish["steps"] if "actions/checkout@" in step.get("uses", "")]


@each_workflow
def test_a_workflow_has_a_concurrency_group_and_cancels_an_earlier_run_only_in_check_and_diff(
    workflow: Path,
) -> None:
    group = parsed(workflow)["concurrency"]
    assert "${{" in group["group"]
    assert group["cancel-in-progress"] is (workflow.stem in {"check", "diff"})


@each_workflow
def test_every_job_of_a_workflow_has_a_time_limit(workflow: Path) -> None:
    jobs = parsed(workflow)["jobs"].values()
    assert all(0 < job["timeout-minutes"] <= 60 for job in jobs if "uses" not in job)


def test_the_workflow_check_runs_tests_on_the_oldest_python_and_on_that_of_the_functions() -> None:
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    job = parsed(ROOT / ".github/workflows/check.yml")["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == [oldest.removeprefix(">="), PYTHON]
    (setup,) = (step for step in job["steps"] if "actions/setup-python@" in step.get("uses", ""))
    assert setup["with"]["python-version"] == "${{ matrix.python }}"


def test_a_deployment_waits_for_its_stages_environment_and_for_the_tests() -> None:
    jobs = parsed(ROOT / ".github/workflows/deploy.yml")["jobs"]
    assert jobs["deploy"]["environment"] == "${{ inputs.stage }}"
    assert jobs["deploy"]["needs"] == "test"
    assert "permissions" not in jobs["test"]  # the workflow's own: no token for AWS


def test_the_stages_of_a_team_are_deployed_one_after_the_other_until_one_fails() -> None:
    _, stage, every = map(parsed, TEAMS)
    deploy = every["jobs"]["deploy"]
    assert deploy["strategy"] == {
        "max-parallel": 1,
        "fail-fast": True,
        "matrix": {"stage": "${{ fromJSON(needs.stages.outputs.stages) }}"},
    }
    assert (deploy["needs"], deploy["if"]) == ("stages", "needs.stages.outputs.stages != '[]'")
    assert every["jobs"]["stages"]["outputs"] == {"stages": "${{ steps.stages.outputs.stages }}"}
    assert deploy["with"] == {"stage": "${{ matrix.stage }}"}
    assert stage["jobs"]["deploy"]["environment"] == "${{ inputs.stage }}"


@pytest.mark.parametrize("workflow", TEAMS, ids=name)
def test_a_workflow_of_a_team_installs_its_packages_before_it_gets_credentials_for_one_step(
    workflow: Path,
) -> None:
    for job in parsed(workflow)["jobs"].values():
        ran = [step.get("uses", step.get("run", "")) for step in job.get("steps", [])]
        for place, step in enumerate(ran):
            if step.startswith("aws-actions/"):
                assert "pip install --require-hashes -r requirements.txt" in ran[:place]
                assert "mailroom cdk -- --version" in ran[:place]
                assert len(ran) == place + 2


def test_the_jobs_of_the_workflow_check_together_run_every_test_file() -> None:
    (check,) = (each for each in WORKFLOWS if each.stem == "check")
    parts = parsed(check)["jobs"]["test"]["strategy"]["matrix"]["tests"]
    named = [file for part in parts for each in part.split() for file in ROOT.glob(each)]
    found = [file for each in named for file in ([each] if each.is_file() else each.rglob("test_*.py"))]
    alone = ("audit", "browser", "printed", "update")  # these folders have separate jobs
    of_jobs = [file for each in alone for file in (ROOT / "tests" / each).rglob("test_*.py")]
    assert sorted([*found, *of_jobs]) == sorted((ROOT / "tests").rglob("test_*.py"))
    for job in alone:
        commands = [each["run"] for each in parsed(check)["jobs"][job]["steps"] if "run" in each]
        assert commands == [f"make {job}"]


def test_a_script_of_a_workflow_does_not_insert_values_of_events_inputs_or_variables() -> None:
    """A branch's name or a title can be a command."""
    for workflow in (*WORKFLOWS, *TEAMS):
        for step in steps(workflow):
            assert not re.search(
                r"\$\{\{\s*(github\.event|github\.head_ref|inputs|needs|vars)", step.get("run", "")
            )


def test_pre_commit_accepts_its_configuration() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-config", str(ROOT / ".pre-commit-config.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")


def hooks() -> dict[str, dict[str, Any]]:
    """The hooks by their ids."""
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    return {hook["id"]: hook for hook in repository["hooks"]}


def test_git_hooks_run_only_installed_programs() -> None:
    for hook in hooks().values():
        program, *words = hook["entry"].split()
        if program == "make":
            assert words[0] in TARGETS
        elif program.startswith(".venv/"):
            assert (ROOT / program).exists()
        else:
            assert program == "sh" or hook["language"] == "pygrep"


def large_files(*files: Path) -> subprocess.CompletedProcess[str]:
    """The hook large-files on these."""
    script, name = re.fullmatch(r"sh -c '(.*)' (\S+)", hooks()["large-files"]["entry"]).groups()  # type: ignore[union-attr]
    command = ["sh", "-c", script, name, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_hook_for_large_files_refuses_a_large_file_and_names_it(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"x" * 1_000)
    large.write_bytes(b"x" * 600_000)
    assert large_files(small).returncode == 0
    refused = large_files(small, large)
    assert (refused.returncode, refused.stdout.strip()) == (1, str(large))


@pytest.mark.parametrize("text", ["AKIA" + "Z" * 16, "-----BEGIN RSA " + "PRIVATE KEY-----"])
def test_the_hook_for_secrets_finds_a_key(text: str) -> None:
    assert re.search(hooks()["secrets"]["entry"], text)
    assert not re.search(hooks()["secrets"]["entry"], "AKIA is how one begins")


@pytest.mark.parametrize("wanted", REQUIREMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_lock_file_has_the_versions_that_its_in_file_pins(wanted: Path) -> None:
    """An update of an *.in file without `make lock` would be without effect."""
    installed = dict(PINNED.findall(wanted.with_suffix(".txt").read_text()))
    pins = PINNED.findall(wanted.read_text())
    assert {name: installed.get(name) for name, _ in pins} == dict(pins)


@pytest.mark.parametrize(
    "wanted",
    [*(file.with_suffix(".txt") for file in REQUIREMENTS), PINS],
    ids=lambda file: str(file.relative_to(ROOT)),
)
def test_a_lock_file_has_a_hash_of_every_package_and_does_not_name_a_registry(wanted: Path) -> None:
    lock = wanted.read_text().removeprefix("-r requirements.txt\n")
    assert "://" not in lock
    assert "-url" not in lock
    packages = re.split(r"\n(?=\S)", lock.replace("\\\n", ""))
    unlocked = [each for each in packages if not each.startswith("#") and "--hash=sha256:" not in each]
    assert unlocked == []


@pytest.mark.parametrize(
    ("hashes", "said"),
    [("", "must have a hash"), (f" --hash=sha256:{'0' * 64}", "Hash mismatch")],
    ids=["missing", "wrong"],
)
@pytest.mark.process
def test_make_refuses_to_install_a_package_whose_hash_is_missing_or_wrong(
    tmp_path: Path, hashes: str, said: str
) -> None:
    for folder in ("requirements", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("requirements.txt", "requirements-dev.txt", "pyproject.toml", ".venv/.ready"):
        (tmp_path / name).touch()
    (tmp_path / ".venv" / "bin" / "uv").symlink_to(ROOT / ".venv" / "bin" / "uv")
    (tmp_path / "requirements" / "checkov.txt").write_text(f"six==1.17.0{hashes}\n")
    environment = tmp_path / ".local" / "checkov"
    subprocess.run([tmp_path / ".venv/bin/uv", "venv", "--quiet", environment], check=True)
    ended = subprocess.run(
        ["make", "--file", ROOT / "Makefile", ".local/checkov/.ready"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    assert said in ended.stderr
    assert "run `make lock`" in ended.stderr
    assert not (environment / ".ready").exists()


def test_the_makefile_installs_every_package_by_hash() -> None:
    installing = re.findall(r"^\t.*(?:pip install|pip sync|npm ci).*", MAKEFILE, re.MULTILINE)
    (ours,) = (line for line in installing if line.endswith("--editable ."))
    assert "--no-deps --no-build-isolation" in ours  # this command downloads no package
    installing.remove(ours)
    assert len(installing) == 6
    for line in installing:
        # `npm ci` compares each package with its hash in package-lock.json.
        assert "$(LOCKED)" in line or "npm ci " in line
        assert line.endswith("|| $(REFUSED)"), line


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda file: file.stem)
def test_a_functions_lock_file_has_the_versions_of_requirements_txt_and_its_in_file_pins_nothing(
    function: Path,
) -> None:
    locked = PINNED.findall(function.with_suffix(".txt").read_text())
    assert locked
    assert {*locked} <= {*PINNED.findall(PINS.read_text())}
    assert PINNED.findall(function.read_text()) == []


def test_requirements_dev_txt_includes_requirements_txt_and_adds_only_other_packages() -> None:
    first, *_ = (ROOT / "requirements-dev.txt").read_text().splitlines()
    assert first == "-r requirements.txt"
    tools = dict(PINNED.findall((ROOT / "requirements-dev.txt").read_text()))
    assert {"mypy", "ruff"} <= tools.keys()
    assert tools.keys() & dict(PINNED.findall(PINS.read_text())).keys() == set()


def test_renovate_finds_every_file_with_pins_and_ignores_lock_files() -> None:
    configuration = json.loads((ROOT / ".github" / "renovate.json").read_text())
    patterns = [
        re.compile(each.strip("/")) for each in configuration["pip_requirements"]["managerFilePatterns"]
    ]
    for file in REQUIREMENTS:
        assert any(pattern.search(str(file.relative_to(ROOT))) for pattern in patterns), file
    assert "pep621" in configuration["enabledManagers"]  # the ranges of pyproject.toml
    rules = configuration["packageRules"]
    (off,) = (each for each in rules if each.get("enabled") is False)
    assert (off["matchManagers"], off["matchFileNames"]) == (["pip_requirements"], ["**/*.txt"])
    assert "npm" in configuration["enabledManagers"]


def test_the_lock_file_of_the_cdk_command_line_has_hashes_and_does_not_name_a_registry() -> None:
    pins = json.loads((ROOT / "mailroom_ops" / "deploying" / "package.json").read_text())["dependencies"]
    text = (ROOT / "mailroom_ops" / "deploying" / "package-lock.json").read_text()
    itself, *packages = json.loads(text)["packages"].values()
    assert itself["dependencies"] == pins
    assert packages
    assert all(each["integrity"].startswith("sha512-") for each in packages)
    assert "://" not in text


def test_the_page_about_deploying_names_only_one_bootstrap() -> None:
    """Policies of one bootstrap let another read none of its code."""
    page = (ROOT / "docs" / "how-to" / "deploy-from-ci.md").read_text()
    patterns = (r"--qualifier ([\w-]+)", r'"qualifier": "([\w-]+)"', r"CDKToolkit-([\w-]+)")
    assert [{*re.findall(pattern, page)} for pattern in patterns] == [{"mailprod"}] * len(patterns)
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    (block,) = (each for each in blocks if "bootstrap aws://" in each)
    assert "mailroom policy --stage prod" in block
    assert block.count("aws iam create-policy ") == 1
    assert '--cloudformation-execution-policies "$policies"' in block


def test_make_new_without_a_folder_prints_how_to_name_it(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    for name in ("requirements.txt", "requirements-dev.txt", "pyproject.toml", ".venv/.ready"):
        (tmp_path / name).touch()
    command = ["make", "--file", str(ROOT / "Makefile"), "new", "FOLDER="]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, "make new FOLDER=../mail" in ended.stderr) == (2, True)


def test_every_make_target_is_phony_and_every_make_target_except_lock_has_a_description() -> None:
    phony = {name for line in re.findall(r"^\.PHONY: (.*)", MAKEFILE, re.MULTILINE) for name in line.split()}
    assert phony == TARGETS
    helped = set(re.findall(r"^([a-z]+):.*##", MAKEFILE, re.MULTILINE))
    assert TARGETS - helped <= {"lock"}


def test_the_wheels_extras_allow_the_locked_versions() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    installed = dict(PINNED.findall(PINS.read_text()))
    wanted = [Requirement(each) for extra in extras.values() for each in extra]
    assert len(wanted) > 20
    for each in wanted:
        assert each.name == "mailroom-cdk" or each.specifier.contains(installed[each.name]), each
        assert each.name == "mailroom-cdk" or "<" in str(each.specifier), each


def test_the_changelog_has_a_section_for_the_wheels_version_and_one_for_unreleased_changes() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[{re.escape(NUMBER)}\]", changes, re.MULTILINE)
    assert "## [Unreleased]" in changes


def test_the_newest_entry_of_the_changelog_has_at_most_1500_words() -> None:
    _, unreleased, newest, *_ = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert unreleased.startswith("[Unreleased]")
    assert len(newest.split()) <= 1_500


def test_the_license_file_is_the_complete_license_that_package_and_readme_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert "[Apache-2.0](LICENSE)" in (ROOT / "README.md").read_text()


def test_at_most_two_files_of_tests_define_a_helper_of_the_same_name() -> None:
    assert repeated(ROOT / "tests") == []


def test_a_helper_that_a_third_file_defines_is_reported_with_its_files(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text("def build():\n    pass\n")
    (tmp_path / "c.py").write_text("def build(): pass\ndef main(): pass\n")
    assert repeated(tmp_path) == ["build: a.py, b.py, c.py"]


def test_a_test_and_a_fixture_that_extends_another_are_not_helpers() -> None:
    code = "def test_a(): pass\ndef stage(stage): pass\ndef put(): pass\nclass Stage: pass\n"
    assert [*helpers_in(code)] == ["put", "Stage"]
