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

from mailroom_stacks.paths import ASSEMBLIES
from tests.support import ROOT
from tests.support.stacks.templates import Template
from tests.support.stacks.variants import read

PAGE = ROOT / "docs" / "adding-a-channel.md"
COPIED = (
    "lambdas",
    "stacks",
    "mailroom_ops",
    "mailroom_local",
    "bench",
    "docs",
    "templates",
    "campaigns",
    "tests",
)
BLOCK = re.compile(r"^\*\*`(?P<path>[^`]+)`\*\*[^\n]*\n\n```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
ROWS = re.compile(r"in \*\*`cdk\.json`\*\*, by stage:\n\n```json\n(?P<text>.*?)^```$", re.M | re.S)
MOST_FILES = 8
TYPES = ROOT / ".local" / "types-of-a-channel"
"""What mypy keeps: without it each run would read all libraries anew."""
KNOWN = """
import json
from mailroom_local.providers.server import CREDENTIALS, simulators
from mailroom_local.providers.upstream import Upstream
from mailroom_ops.cost.answer import WantedMessages, cost
from mailroom_ops.cost.fixed import of_settings
from mailroom_ops.doctor.checks import CHECKS
from mailroom_ops.erase.person import Person
from mailroom_ops.estimates.lanes import Stages
from mailroom_ops.people.suppressions import CHANNELS

stages = Stages.of()
local = stages.settings("local")
wanted = [WantedMessages("telegram", 1000, "normal")]
costs = cost(stages, "dev", wanted, of_settings(stages.settings("dev")), callbacks=False, requests=0)
from mailroom.channels.contracts import CHANNELS as ALL
from mailroom_ops.console.pages.inbox import TABS

print(json.dumps({
    "tab": TABS["telegram"],
    "example": ALL["telegram"].example,
    "checks": [check.name for check in CHECKS if check.subject == "telegram"],
    "not included": costs.channels[0].not_included,
    "erased": Person("987654", channel="telegram").kind,
    "suppressible": "telegram" in CHANNELS,
    "base_url": local.channels["telegram"].base_url,
    "prefixes": [each.prefix for each in simulators(Upstream("http://127.0.0.1:9"), "").values()],
    "credentials": sorted(CREDENTIALS),
}))
"""
LAYERS = """
import sys
sys.path[:0] = [".", "lambdas", "stacks"]
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports
sys.exit(lint_imports(no_cache=True) != EXIT_STATUS_SUCCESS)
"""
SYNTH = """
import sys
from pathlib import Path
from mailroom_stacks import assemblies
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
    for name in ("app.py", "pyproject.toml"):
        shutil.copyfile(ROOT / name, tree / name)
    for path, kind, text in _blocks():
        if kind == "diff":
            _patch(tree / path, text)
        else:
            assert not (tree / path).exists(), f"{path} is there already"
            (tree / path).parent.mkdir(exist_ok=True)
            (tree / path).write_text(text)
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
    rows = ROWS.search(PAGE.read_text())
    assert rows is not None
    settings: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())
    for stage, channels in json.loads(rows["text"]).items():
        settings["context"]["mailroom"][stage]["channels"] |= channels
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
    environment["PYTHONPATH"] = os.pathsep.join((".", "lambdas", "stacks"))  # before what is installed
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


def test_few_files_are_touched_and_of_those_that_are_there_only_tables() -> None:
    edited = [path for path, kind, _ in _blocks() if kind == "diff"]
    assert edited == ["lambdas/mailroom/channels/contracts.py"]
    files = {"cdk.json", *(path for path, _, _ in _blocks())}
    assert len(files) <= MOST_FILES
    assert {path for path in files if (ROOT / path).exists()} == {"cdk.json", *edited}


def test_the_channels_own_test_passes(tree: Path) -> None:
    told = _run(tree, "-m", "pytest", "tests/unit/channels/test_telegram.py")
    assert re.search(r"\d+ passed", told)


def test_its_code_is_as_this_trees_is(tree: Path) -> None:
    files = [path for path, kind, _ in _blocks() if kind == "python"]
    _run(tree, "-m", "ruff", "check", "--no-cache", *files)
    _run(tree, "-m", "ruff", "format", "--no-cache", "--check", *files)
    _run(tree, "-m", "mypy", "--cache-dir", str(TYPES), *files)
    _run(tree, "-c", LAYERS)


def test_it_has_a_queue_a_dead_letter_queue_and_a_function(templates: dict[str, Template]) -> None:
    channels = templates["channels"]
    queue = channels.one("SQS::Queue", QueueName=f"{STAGE}-telegram")
    assert queue["RedrivePolicy"]["maxReceiveCount"] > 5
    channels.one("SQS::Queue", QueueName=f"{STAGE}-telegram-dlq")
    environment = channels.environment(f"{STAGE}-send-telegram")
    assert environment["CHANNEL"] == "telegram"
    assert environment["PROVIDER_URL"] == "https://api.telegram.org"
    assert channels.mapping(f"{STAGE}-send-telegram")["ScalingConfig"] == {"MaximumConcurrency": 2}


def test_it_may_read_its_secret_and_no_other(templates: dict[str, Template]) -> None:
    channels = templates["channels"]
    channels.one("SecretsManager::Secret", Name=f"{STAGE}-telegram")
    assert channels.environment(f"{STAGE}-send-telegram")["PROVIDER_SECRET_ARN"] == channels.output(
        "TelegramSecretArn"
    )
    (readable,) = channels.policy(f"{STAGE}-send-telegram")["secretsmanager:GetSecretValue"]
    assert readable == channels.output("TelegramSecretArn")


def test_it_may_ask_who_gets_nothing_and_mark_who_is_gone(templates: dict[str, Template]) -> None:
    policy = templates["channels"].policy(f"{STAGE}-send-telegram")
    asked = policy["dynamodb:BatchGetItem"]
    assert len(asked) == 2
    assert any("Suppressions" in each for each in asked & policy["dynamodb:UpdateItem"])
    assert any("Preferences" in each for each in asked)


def test_its_alarms_are_there_and_its_dead_letters_are_looked_at(templates: dict[str, Template]) -> None:
    rings = {each["AlarmName"] for each in templates["channels"].all("CloudWatch::Alarm")}
    of_queue = ("dlq-not-empty", "waiting-long", "backlog-old", "in-flight-many")
    of_function = ("errors", "throttles", "slow")
    assert {f"{STAGE}-telegram-{kind}" for kind in of_queue} <= rings
    assert {f"{STAGE}-send-telegram-{kind}" for kind in of_function} <= rings
    looked_at = templates["dead-letters"].environment(f"{STAGE}-dead-letters")["DEAD_LETTER_QUEUES"]
    assert '"telegram-dlq"' in looked_at


def test_the_dashboard_shows_it(templates: dict[str, Template]) -> None:
    shown = json.dumps(templates["monitoring"].all("CloudWatch::Dashboard"))
    for name in ("telegram", "telegram-dlq", "send-telegram"):
        assert re.search(rf"{STAGE}-{name}\W", shown), name


@pytest.mark.parametrize("function", ["dispatch", "dispatch-scheduled"])
def test_dispatch_knows_where_it_goes_and_may_send_there(
    templates: dict[str, Template], function: str
) -> None:
    routing = templates["routing"]
    assert '"telegram":{"normal":' in routing.environment(f"{STAGE}-{function}")["ROUTES"]
    queues = routing.policy(f"{STAGE}-{function}")["sqs:SendMessage"]
    assert any("Telegram" in each and "Dlq" not in each for each in queues)


def test_producers_have_its_schema(tree: Path, templates: dict[str, Template]) -> None:
    schema = json.loads(_run(tree, "-m", "mailroom_ops", "schema", "telegram"))
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["event_type"] == {"const": "telegram"}
    assert set(schema["required"]) == {"id", "event_type", "to"}


def test_every_command_and_page_knows_it_by_its_descriptor(tree: Path) -> None:
    known = json.loads(_run(tree, "-c", KNOWN))
    assert (known["tab"], known["example"]["to"]) == ("Telegrams", "123456789")
    assert known["checks"] == ["secrets"]
    assert known["not included"] == ""
    assert known["erased"] == "id"
    assert known["suppressible"]


def test_the_local_stage_reaches_a_simulator_with_the_secret_that_it_takes(
    tree: Path, templates: dict[str, Template]
) -> None:
    known = json.loads(_run(tree, "-c", KNOWN))
    assert known["base_url"] == "providers"  # then below the simulators, under the name of the channel
    assert "/telegram" in known["prefixes"]
    assert "TelegramSecretName" in known["credentials"]
    assert templates["channels"].output("TelegramSecretName") == f"{STAGE}-telegram"
