"""The wheel as a team installs it: its files, the folder that it makes, and in there, by
docs/how-to/add-a-channel.md, a channel of the team's own."""

import json
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed
from version_of_the_wheel import version

from mailroom_ops.setup.docs import pages
from mailroom_ops.setup.project_folder import make
from tests.support import ROOT
from tests.support.release.installed import Environment, build, copy_sources, install, link_caches
from tests.support.stacks.page_blocks import blocks, channel_rows
from tests.support.stacks.templates import Template, read_assembly

PACKAGES = {"mailroom", "mailroom_stacks", "mailroom_ops", "mailroom_local"}
SOURCES = (
    ("mailroom", "lambdas/mailroom", ("**/*",)),
    ("mailroom_stacks", "stacks/mailroom_stacks", ("**/*",)),
    ("mailroom_stacks/lambdas", "lambdas", ("*.py", "requirements/*.txt")),
    *((package, package, ("**/*",)) for package in ("mailroom_ops", "mailroom_local")),
)
"""Places in the wheel, each with its folder in the repository and the files of that."""
RUN = re.compile(r"^ +(?:- run: )?((?:mailroom|python) .*?)(?: 2>&1.*)?$", re.MULTILINE)
"""A command of a workflow, without the pipe behind it."""
NEEDING_A_STAGE = {"up", "down", "diff", "deploy", "doctor", "update"}

MOST_FILES = 6
TYPES = ROOT / ".local" / "types-of-a-channel"
"""Cache of mypy: without it each run would read all libraries anew."""
OF_TEAM = 'lint.per-file-ignores = {"tests/**" = ["S"]}'
FACTS = """
import json
import mailroom_ops
from mailroom_local.providers.server import CREDENTIALS, simulators
from mailroom_local.providers.upstream import Upstream
from mailroom_ops.costs.configured_lanes import lane_of, read_settings
from mailroom_ops.doctor.checks import CHECKS
from mailroom_ops.people.person import Person
from mailroom_ops.people.suppression_lists import CHANNELS

local = read_settings("local")
lane = lane_of(read_settings("dev"), "telegram")
from mailroom.channels.contracts import CHANNELS as ALL
from mailroom_ops.console.pages.inbox import TABS

print(json.dumps({
    "tab": TABS["telegram"],
    "example": ALL["telegram"].example,
    "checks": [check.name for check in CHECKS if check.subject == "telegram"],
    "not included": lane.descriptor.unpriced,
    "erased": Person("987654", channel="telegram").kind,
    "suppressible": "telegram" in CHANNELS,
    "base_url": local.channels["telegram"].base_url,
    "prefixes": [each.prefix for each in simulators(Upstream("http://127.0.0.1:9")).values()],
    "credentials": sorted(CREDENTIALS),
}))
"""
STAGE = "mailroom-dev"
CONFLICT = "six==1.16.0 --hash=sha256:8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254\n"
"""A package of a team in another version than that of the lock."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = install(tmp_path_factory.mktemp("installed"))
    link_caches(environment.team)
    return environment


@pytest.fixture(scope="module")
def later_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a later version with the same code."""
    sources = tmp_path_factory.mktemp("later")
    copy_sources(sources, "9.9.9")
    return build(sources, sources / "dist")


@pytest.fixture(scope="module")
def new_files(installed: Environment) -> dict[Path, bytes]:
    """The files of the new folder, before the page's channel is added."""
    return _files(installed.team)


def _files(folder: Path) -> dict[Path, bytes]:
    """Return the files of a new folder, without those of installed packages and caches."""
    made = [path for path in folder.iterdir() if path.name not in (".venv", ".local")]
    files = (file for path in made for file in (path, *path.rglob("*")) if file.is_file())
    return {file.relative_to(folder): file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def team(installed: Environment, new_files: dict[Path, bytes]) -> Path:
    """The new folder with everything in it that the page tells to write, after `new_files` has read it."""
    team = installed.team
    for path, text in blocks():
        assert not (team / path).exists(), f"{path} is there already"
        (team / path).parent.mkdir(exist_ok=True)
        (team / path).write_text(text)
    settings = json.loads((team / "cdk.json").read_text())
    for stage, channels in channel_rows().items():
        settings["context"]["mailroom"][stage]["channels"] |= channels
    (team / "cdk.json").write_text(json.dumps(settings))
    return team


@pytest.fixture(scope="module")
def facts(installed: Environment, team: Path) -> dict[str, Any]:
    """Facts that commands and pages know of the channel."""
    facts: dict[str, Any] = json.loads(installed.answer("python", "-c", FACTS))
    return facts


@pytest.fixture(scope="module")
def synthesized_stacks(installed: Environment, team: Path) -> dict[str, Template]:
    """The stage's stacks, by short name."""
    installed.answer("mailroom", "synth", "--stage", "dev")
    return read_assembly(team / "cdk.out", "dev").stacks


def test_the_wheel_contains_the_files_of_our_four_packages_and_none_of_tests_or_lab(
    installed: Environment,
) -> None:
    names = {*zipfile.ZipFile(installed.wheel).namelist()}
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == PACKAGES
    for place, folder, patterns in SOURCES:
        for file in (file for pattern in patterns for file in (ROOT / folder).glob(pattern)):
            if file.is_file() and "__pycache__" not in file.parts:
                assert f"{place}/{file.relative_to(ROOT / folder)}" in names


def test_the_wheel_contains_the_pages_of_the_repository(installed: Environment, tmp_path: Path) -> None:
    path = Path(installed.answer("mailroom", "docs", "keep-codes-fast", "--path", cwd=tmp_path).strip())
    assert installed.team in path.parents
    assert path.read_text() == (ROOT / "docs" / "how-to" / "keep-codes-fast.md").read_text()
    script = "from mailroom_ops.setup.docs import pages; print(*pages())"
    assert installed.answer("python", "-c", script, cwd=tmp_path).split() == [*pages()]


def test_the_setup_command_prints_how_to_run_it_if_it_does_not_run_from_a_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mailroom_ops.setup", str(tmp_path / "mail")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "is not a wheel of Mailroom" in ended.stderr
    assert "PYTHONPATH=<wheel> python3 -P -m mailroom_ops.setup FOLDER" in ended.stderr


def test_the_name_of_the_wheel_has_the_version_of_its_commit(installed: Environment) -> None:
    assert installed.wheel.name == f"mailroom_cdk-{version(ROOT)}-py3-none-any.whl"
    assert installed.answer("mailroom", "--version") == f"mailroom {version(ROOT)}\n"


def test_a_second_build_of_a_commit_has_the_same_bytes(installed: Environment, tmp_path: Path) -> None:
    copy_sources(tmp_path, installed.version)
    assert build(tmp_path, tmp_path / "dist").read_bytes() == installed.wheel.read_bytes()


def test_make_new_makes_the_same_files_as_the_wheel_even_if_the_path_has_special_characters(
    new_files: dict[Path, bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "a folder's; name"
    command = ["make", "--silent", "new", f"FOLDER={folder}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert _files(folder) == new_files


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text, ""),
        (lambda text: text + CONFLICT, "your requirements are unsatisfiable"),
        (lambda text: text + "tomli==2.0.1\n", "must have a hash, but none were provided for: tomli==2.0.1"),
        (lambda text: text.replace("-r vendor/requirements.txt\n", ""), "no trusted hash was provided for"),
    ],
    ids=["of a new folder", "another version", "no hash", "no lock"],
)
def test_mailroom_update_changes_a_teams_folder_only_if_its_requirements_can_be_installed(
    installed: Environment, later_wheel: Path, tmp_path: Path, change: Callable[[str], str], problem: str
) -> None:
    """Packages that are installed already do not hide a problem that a new environment would have."""
    team = tmp_path / "team"
    make(team, installed.wheel)
    requirements = team / "requirements.txt"
    requirements.write_text(change(requirements.read_text()))
    before = _files(team)
    updated = installed.run("mailroom", "update", str(later_wheel), cwd=team)
    if problem:
        assert updated.returncode == 2
        assert problem in updated.stderr
        assert "Nothing was changed. Correct requirements.txt" in updated.stderr
        assert _files(team) == before
    else:
        assert (updated.returncode, updated.stderr) == (0, "")
        assert Path("vendor", later_wheel.name) in _files(team)


def test_the_commands_in_a_new_teams_readme_and_workflows_succeed_unless_they_need_a_stage(
    installed: Environment, synthesized_stacks: dict[str, Template]
) -> None:
    """Yield the commands of README and workflows. tests/update runs `up` and `down`; tests/pipeline
    deploys."""
    team = installed.team
    lines = [
        *re.findall(r"^(?:mailroom|python) .*", (team / "README.md").read_text(), re.MULTILINE),
        *(line for file in team.glob(".github/workflows/*.yml") for line in RUN.findall(file.read_text())),
    ]
    commands = {tuple(shlex.split(line.replace("$STAGE", "dev"), comments=True)) for line in lines}
    alone = {command for command in commands if command[1] not in NEEDING_A_STAGE}
    assert {command[1] for command in alone} == {"-m", "template", "synth", "cdk"}
    assert synthesized_stacks  # `synth` has succeeded
    for command in sorted(alone - {("mailroom", "synth", "--stage", "dev")}):
        installed.answer(*command)


def test_a_team_adds_a_channel_by_a_few_new_files_and_a_change_of_cdk_json() -> None:
    files = {path for path, _ in blocks()}
    assert len(files) + len(["cdk.json"]) <= MOST_FILES
    assert {path.partition("/")[0] for path in files} == {"channels", "tests"}


def test_the_code_of_an_added_channel_passes_the_checks_of_the_repository(team: Path) -> None:
    files = [path for path, _ in blocks()]
    ours = ("--config", str(ROOT / "pyproject.toml"))
    packages = ("--explicit-package-bases", "--ignore-missing-imports", "--follow-untyped-imports")
    for command in (
        ("ruff", "check", "--no-cache", *ours, "--config", OF_TEAM),
        ("ruff", "format", "--no-cache", "--check", *ours),
        ("mypy", "--strict", *packages, "--cache-dir", str(TYPES)),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command, *files], cwd=team, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_an_added_channel_has_a_queue_a_dead_letter_queue_and_a_function(
    synthesized_stacks: dict[str, Template],
) -> None:
    channels = synthesized_stacks["channels"]
    queue = channels.one("SQS::Queue", QueueName=f"{STAGE}-telegram")
    assert queue["RedrivePolicy"]["maxReceiveCount"] > 5
    channels.one("SQS::Queue", QueueName=f"{STAGE}-telegram-dlq")
    environment = channels.environment(f"{STAGE}-send-telegram")
    assert environment["CHANNEL"] == "telegram"
    assert environment["PROVIDER_URL"] == "https://api.telegram.org"
    assert channels.mapping(f"{STAGE}-send-telegram")["ScalingConfig"] == {"MaximumConcurrency": 2}


def test_the_function_of_an_added_channel_may_read_only_its_own_secret(
    synthesized_stacks: dict[str, Template],
) -> None:
    channels = synthesized_stacks["channels"]
    channels.one("SecretsManager::Secret", Name=f"{STAGE}-telegram")
    assert channels.environment(f"{STAGE}-send-telegram")["PROVIDER_SECRET_ARN"] == channels.output(
        "TelegramSecretArn"
    )
    (readable,) = channels.policy(f"{STAGE}-send-telegram")["secretsmanager:GetSecretValue"]
    assert readable == channels.output("TelegramSecretArn")


@pytest.mark.parametrize("function", ["dispatch", "release"])
def test_dispatch_and_release_get_the_queue_of_an_added_channel_and_may_send_to_it(
    synthesized_stacks: dict[str, Template], function: str
) -> None:
    routing = synthesized_stacks["routing"]
    assert '"telegram":{"normal":' in routing.environment(f"{STAGE}-{function}")["ROUTES"]
    queues = routing.policy(f"{STAGE}-{function}")["sqs:SendMessage"]
    assert any("Telegram" in each and "Dlq" not in each for each in queues)


def test_the_function_dead_letters_examines_the_dead_letter_queue_of_an_added_channel(
    synthesized_stacks: dict[str, Template],
) -> None:
    dead_letters = synthesized_stacks["dead-letters"].environment(f"{STAGE}-dead-letters")
    assert '"telegram-dlq"' in dead_letters["DEAD_LETTER_QUEUES"]


def test_the_schema_of_an_added_channel_is_available_to_producers(installed: Environment, team: Path) -> None:
    schema = json.loads(installed.answer("mailroom", "schema", "telegram"))
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["event_type"] == {"const": "telegram"}
    assert set(schema["required"]) == {"id", "event_type", "to"}


def test_commands_and_pages_know_an_added_channel_and_its_properties_from_its_descriptor(
    facts: dict[str, Any],
) -> None:
    assert (facts["tab"], facts["example"]["to"]) == ("Telegrams", "123456789")
    assert facts["checks"] == ["secrets"]
    assert facts["not included"] == ""
    assert facts["erased"] == "id"
    assert facts["suppressible"]


def test_the_local_stage_simulates_the_provider_of_an_added_channel_and_has_its_secret(
    facts: dict[str, Any], synthesized_stacks: dict[str, Template]
) -> None:
    assert facts["base_url"] == "providers"  # then below the simulators, under the name of the channel
    assert "/telegram" in facts["prefixes"]
    assert "TelegramSecretName" in facts["credentials"]
    assert synthesized_stacks["channels"].output("TelegramSecretName") == f"{STAGE}-telegram"
