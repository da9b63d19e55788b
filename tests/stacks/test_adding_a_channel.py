"""docs/adding-a-channel.md, done: its blocks laid over a copy of the tree make a channel that works."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed

from stacks.paths import ASSEMBLIES, ROOT
from tests.support.stacks.templates import Template
from tests.support.stacks.variants import read

PAGE = ROOT / "docs" / "adding-a-channel.md"
COPIED = ("lambdas", "stacks", "ops", "templates", "campaigns", "tests")
BLOCK = re.compile(r"^\*\*`(?P<path>[^`]+)`\*\*[^\n]*\n\n```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
ENTRY = re.compile(r"in \*\*`cdk\.json`\*\*:\n\n```json\n(?P<text>.*?)^```$", re.M | re.S)
SYNTH = """
import sys
from pathlib import Path
from stacks import assemblies
assemblies.ASSEMBLIES = Path(sys.argv[1])
print(assemblies.assembly({"stage": "dev", **assemblies.NO_BUNDLES}))
"""
STAGE = "mailroom-dev"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what matters of the tree, with everything on it that the page says."""
    tree = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("app.py", "pyproject.toml", "requirements-dev.in"):
        shutil.copyfile(ROOT / name, tree / name)
    for path, kind, text in _blocks():
        if kind == "diff":
            _patch(tree / path, text)
        else:
            assert not (tree / path).exists(), f"{path} is there already"
            (tree / path).parent.mkdir(exist_ok=True)
            (tree / path).write_text(text)
    # What `make lock` would write, for nothing is bundled here.
    packages = tree / "lambdas" / "requirements" / "send_chat.in"
    packages.with_suffix(".txt").write_text(packages.read_text())
    (tree / "cdk.json").write_text(json.dumps(_settings()))
    return tree


@pytest.fixture(scope="module")
def templates(tree: Path) -> dict[str, Template]:
    """The stage's stacks, by short name."""
    folder = _run(tree, "-c", SYNTH, str(ASSEMBLIES)).strip()
    return read(Path(folder), "dev").stacks


def _blocks() -> Iterator[tuple[str, str, str]]:
    for found in BLOCK.finditer(PAGE.read_text()):
        yield found["path"], found["kind"], found["text"]


def _settings() -> dict[str, Any]:
    entry = ENTRY.search(PAGE.read_text())
    assert entry is not None
    settings: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())
    settings["context"]["mailroom"]["dev"]["channels"] |= json.loads(entry["text"])
    return settings


def _patch(file: Path, diff: str) -> None:
    """Put in the lines of `diff`; each part of it has to be found, and once."""
    text = file.read_text()
    for part in diff.split("@@\n")[1:]:
        lines = part.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        assert text.count(before) == 1, f"{file.name}: {before!r}"
        text = text.replace(before, after)
    file.write_text(text)


def _run(tree: Path, *arguments: str) -> str:
    # A pytest of its own, not a part of this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_only_the_contracts_the_settings_and_the_packages_of_tests_are_edited_all_else_is_new() -> None:
    edited = [path for path, _, _ in _blocks() if (ROOT / path).exists()]
    assert edited == ["lambdas/mailroom/channels/contracts.py", "requirements-dev.in"]


def test_the_packages_of_tests_name_those_of_every_function(tree: Path) -> None:
    files = {f"lambdas/requirements/{file.name}" for file in (tree / "lambdas/requirements").glob("*.in")}
    named = re.findall(r"^-r (lambdas/\S+)$", (tree / "requirements-dev.in").read_text(), re.M)
    assert named == sorted(files)


def test_the_channels_own_test_passes(tree: Path) -> None:
    told = _run(tree, "-m", "pytest", "tests/unit/test_chat.py")
    assert re.search(r"\d+ passed", told)


def test_its_code_is_as_this_trees_is(tree: Path) -> None:
    files = [path for path, kind, _ in _blocks() if kind == "python"]
    _run(tree, "-m", "ruff", "check", "--no-cache", *files)
    _run(tree, "-m", "ruff", "format", "--no-cache", "--check", *files)


def test_it_has_a_queue_a_dead_letter_queue_and_a_function(templates: dict[str, Template]) -> None:
    channels = templates["channels"]
    queue = channels.one("SQS::Queue", QueueName=f"{STAGE}-chat")
    assert queue["RedrivePolicy"]["maxReceiveCount"] > 5
    channels.one("SQS::Queue", QueueName=f"{STAGE}-chat-dlq")
    environment = channels.environment(f"{STAGE}-send-chat")
    assert environment["CHANNEL"] == "chat"
    assert environment["PROVIDER_URL"] == "https://slack.com/api"
    assert channels.mapping(f"{STAGE}-send-chat")["ScalingConfig"] == {"MaximumConcurrency": 2}


def test_it_may_read_its_secret_and_no_other(templates: dict[str, Template]) -> None:
    channels = templates["channels"]
    channels.one("SecretsManager::Secret", Name=f"{STAGE}-chat")
    assert channels.environment(f"{STAGE}-send-chat")["PROVIDER_SECRET_ARN"] == channels.output(
        "ChatSecretArn"
    )
    (readable,) = channels.policy(f"{STAGE}-send-chat")["secretsmanager:GetSecretValue"]
    assert readable == channels.output("ChatSecretArn")


def test_its_alarms_are_there_and_its_dead_letters_are_looked_at(templates: dict[str, Template]) -> None:
    rings = {each["AlarmName"] for each in templates["channels"].all("CloudWatch::Alarm")}
    of_queue = ("dlq-not-empty", "waiting-long", "backlog-old", "in-flight-many")
    of_function = ("errors", "throttles", "slow")
    assert {f"{STAGE}-chat-{kind}" for kind in of_queue} <= rings
    assert {f"{STAGE}-send-chat-{kind}" for kind in of_function} <= rings
    looked_at = templates["dead-letters"].environment(f"{STAGE}-dead-letters")["DEAD_LETTER_QUEUES"]
    assert '"chat-dlq"' in looked_at


def test_the_dashboard_shows_it(templates: dict[str, Template]) -> None:
    shown = json.dumps(templates["monitoring"].all("CloudWatch::Dashboard"))
    for name in ("chat", "chat-dlq", "send-chat"):
        assert re.search(rf"{STAGE}-{name}\W", shown), name


@pytest.mark.parametrize("function", ["dispatch", "dispatch-scheduled"])
def test_dispatch_knows_where_it_goes_and_may_send_there(
    templates: dict[str, Template], function: str
) -> None:
    routing = templates["routing"]
    assert '"chat":{"normal":' in routing.environment(f"{STAGE}-{function}")["ROUTES"]
    queues = routing.policy(f"{STAGE}-{function}")["sqs:SendMessage"]
    assert any("Chat" in each and "Dlq" not in each for each in queues)


def test_producers_have_its_schema(tree: Path, templates: dict[str, Template]) -> None:
    schema = json.loads(_run(tree, "-m", "ops", "schema", "chat"))
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["event_type"] == {"const": "chat"}
    assert set(schema["required"]) == {"id", "event_type", "to"}
