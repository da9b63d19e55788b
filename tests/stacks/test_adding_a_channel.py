"""docs/how-to/add-a-channel.md, done: its blocks, in a folder of `mailroom new`, are a channel that works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed

from mailroom_ops.setup.project_folder import make
from mailroom_stacks.paths import ASSEMBLIES
from tests.support import ROOT
from tests.support.release.installed import build
from tests.support.stacks.page_blocks import blocks, rows
from tests.support.stacks.templates import Template
from tests.support.stacks.variants import read

MOST_FILES = 6
TYPES = ROOT / ".local" / "types-of-a-channel"
"""What mypy keeps: without it each run would read all libraries anew."""
OF_TEAM = 'lint.per-file-ignores = {"tests/**" = ["S"]}'
KNOWN = """
import json
import mailroom_ops
from mailroom_local.providers.server import CREDENTIALS, simulators
from mailroom_local.providers.upstream import Upstream
from mailroom_ops.costs.lanes import lane_of, read_settings
from mailroom_ops.doctor.checks import CHECKS
from mailroom_ops.people.person import Person
from mailroom_ops.people.suppressions import CHANNELS

local = read_settings("local")
lane = lane_of(read_settings("dev"), "telegram")
from mailroom.channels.contracts import CHANNELS as ALL
from mailroom_ops.console.pages.inbox import TABS

print(json.dumps({
    "tab": TABS["telegram"],
    "example": ALL["telegram"].example,
    "checks": [check.name for check in CHECKS if check.subject == "telegram"],
    "not included": lane.estimate.unpriced,
    "erased": Person("987654", channel="telegram").kind,
    "suppressible": "telegram" in CHANNELS,
    "base_url": local.channels["telegram"].base_url,
    "prefixes": [each.prefix for each in simulators(Upstream("http://127.0.0.1:9")).values()],
    "credentials": sorted(CREDENTIALS),
}))
"""
SYNTH = """
import sys
from pathlib import Path
from mailroom_stacks.app import cache as assemblies
assemblies.ASSEMBLIES = Path(sys.argv[1])
print(assemblies.assembly({"stage": "dev", **assemblies.NO_BUNDLES}))
"""
STAGE = "mailroom-dev"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A team's folder, with everything in it that the page says."""
    folder = tmp_path_factory.mktemp("team")
    tree = folder / "mail"
    make(tree, build(ROOT, folder / "dist"))
    for path, text in blocks():
        assert not (tree / path).exists(), f"{path} is there already"
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).write_text(text)
    settings = json.loads((tree / "cdk.json").read_text())
    for stage, channels in rows().items():
        settings["context"]["mailroom"][stage]["channels"] |= channels
    (tree / "cdk.json").write_text(json.dumps(settings))
    return tree


@pytest.fixture(scope="module")
def templates(tree: Path) -> dict[str, Template]:
    """The stage's stacks, by short name."""
    folder = _run(tree, "-c", SYNTH, str(ASSEMBLIES)).strip()
    return read(Path(folder), "dev").stacks


def _run(tree: Path, *arguments: str) -> str:
    # A pytest of its own, not a part of this one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = "."
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


def test_few_files_are_written_and_of_those_that_are_there_only_the_settings() -> None:
    files = {path for path, _ in blocks()}
    assert len(files) + len(["cdk.json"]) <= MOST_FILES
    assert {path.partition("/")[0] for path in files} == {"channels", "tests"}


def test_the_channels_own_tests_pass_and_those_of_every_channel(tree: Path) -> None:
    assert re.search(r"\d+ passed", _run(tree, "-m", "pytest", "-q", "tests/test_telegram.py"))
    told = _run(tree, "-m", "pytest", "-v", "--pyargs", "mailroom_ops.testing")
    assert len(re.findall(r"\[telegram\] PASSED", told)) == 4


def test_its_code_is_as_ours_is(tree: Path) -> None:
    files = [path for path, _ in blocks()]
    ours = ("--config", str(ROOT / "pyproject.toml"))
    _run(tree, "-m", "ruff", "check", "--no-cache", *ours, "--config", OF_TEAM, *files)
    _run(tree, "-m", "ruff", "format", "--no-cache", "--check", *ours, *files)
    packages = ("--explicit-package-bases", "--ignore-missing-imports", "--follow-untyped-imports")
    _run(tree, "-m", "mypy", "--strict", *packages, "--cache-dir", str(TYPES), *files)


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
    assert len(asked) == 3
    assert any("Suppressions" in each for each in asked & policy["dynamodb:UpdateItem"])
    assert any("Preferences" in each for each in asked)
    assert any("Ledger" in each for each in asked)


def test_its_alarms_are_there_and_its_dead_letters_are_looked_at(templates: dict[str, Template]) -> None:
    rings = {each["AlarmName"] for each in templates["channels"].all("CloudWatch::Alarm")}
    of_queue = ("dlq-not-empty", "waiting-long", "backlog-old", "in-flight-many")
    of_function = ("errors",)
    assert {f"{STAGE}-telegram-{kind}" for kind in of_queue} <= rings
    assert {f"{STAGE}-send-telegram-{kind}" for kind in of_function} <= rings
    looked_at = templates["dead-letters"].environment(f"{STAGE}-dead-letters")["DEAD_LETTER_QUEUES"]
    assert '"telegram-dlq"' in looked_at


def test_the_dashboard_shows_it(templates: dict[str, Template]) -> None:
    shown = json.dumps(templates["monitoring"].all("CloudWatch::Dashboard"))
    for name in ("telegram", "telegram-dlq", "send-telegram"):
        assert re.search(rf"{STAGE}-{name}\W", shown), name


@pytest.mark.parametrize("function", ["dispatch", "release"])
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
