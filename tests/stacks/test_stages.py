"""The stages differ in settings alone, pass the linters, and a channel is a row."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from aws_cdk import App, Stack
from aws_cdk.aws_s3 import Bucket

from mailroom_local.stage.deploy import PROVIDERS
from mailroom_stacks.app import main as app
from mailroom_stacks.app.application import NagError, build, checked, synthesize
from mailroom_stacks.app.cache import NO_BUNDLES, assembly
from mailroom_stacks.settings.load import load
from tests.support import ROOT
from tests.support.stacks.campaign_folders import EVERYTHING, of_each_kind
from tests.support.stacks.refusals import REMOVED, STAGES, with_settings
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import JWT, PUSH_ROW, SIMULATED, read, variant

STACKS = [
    *("api", "channels", "dead-letters", "fax", "feedback", "mailbox", "monitoring", "routing", "webhook"),
]


def test_templates_are_clean_to_cfn_lint(everything: Templates) -> None:
    """Those of dev and prod are `make audit`'s, with checkov."""
    lint = Path(sys.executable).with_name("cfn-lint")
    templates = [str(file) for file in everything.folder.glob("*.template.json")]
    assert len(templates) == len(STACKS) + 1  # campaigns
    # W3005: CDK writes a function's dependency on its role a second time, in words.
    found = subprocess.run(
        [lint, "--ignore-checks", "W3005", "--", *templates], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (0, "")


PLAIN_LOCAL = {
    "push": None,
    "channels.push": REMOVED,
    "campaigns.enabled": [],
    "campaigns.overrides": {},
}
"""What stage local has alone."""


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "changes",
    [
        EVERYTHING,
        {"sms": None, "channels.sms": REMOVED},
        {
            "api.jwt": JWT,
            "deployment.point_in_time_recovery": False,
            "fax": None,
        },
    ],
    ids=["everything", "without-sms", "tokens-and-no-recovery"],
)
def test_whatever_is_chosen_passes_cdk_nag(tmp_path: Path, stage: str, changes: dict[str, object]) -> None:
    own, url = (PLAIN_LOCAL, SIMULATED) if stage == "local" else ({}, None)
    chosen = {**own, **changes}
    if stage == "local" and chosen["channels.push"] == PUSH_ROW:  # its times are too short for one a second
        chosen["channels.push"] = {**PUSH_ROW, "messages_per_second": 1_000}
    made = variant(chosen, stage, providers=url, campaigns=of_each_kind(tmp_path))
    assert "dead-letters" in made.stacks


def test_the_local_stage_differs_in_settings_not_in_shape(
    stage: Callable[[str], Templates], every_function: Templates
) -> None:
    stages = (stage("local"), every_function)
    for name in (*STACKS, "campaigns"):
        kinds = [sorted(each["Type"] for each in of[name].body["Resources"].values()) for of in stages]
        assert kinds[0] == kinds[1]


def test_the_local_stages_schedule_is_there_and_never_fires(stage: Callable[[str], Templates]) -> None:
    """The emulator would not say the time that it fires at."""
    schedule = stage("local")["campaigns"].one("Scheduler::Schedule")
    assert schedule["ScheduleExpression"] == "cron(0 13 ? 1 WED 2199)"


def test_the_local_stages_templates_name_the_simulators_as_its_deployment_expects() -> None:
    """It puts their URL, which is another at each start, in the place of that one."""
    context = {"stage": "local", "providers": PROVIDERS, **NO_BUNDLES}
    templates = [*assembly(context).glob("*.template.json")]
    texts = [file.read_text().replace(PROVIDERS, "http://127.0.0.1:4711") for file in templates]
    assert sum(text.count("127.0.0.1:4711") for text in texts) > 4
    assert not any(".invalid" in text for text in texts)


def test_the_local_stage_runs_on_this_python_and_leaves_the_streams_to_the_pump(
    stage: Callable[[str], Templates],
) -> None:
    routing = stage("local")["routing"]
    assert routing.mapping("mailroom-local-dispatch")["Enabled"] is False
    assert routing.mapping("mailroom-local-outcomes")["Enabled"] is False
    assert {each["Runtime"] for each in routing.all("Lambda::Function")} == {
        f"python3.{sys.version_info.minor}"
    }


def test_another_channel_is_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    handlers = ("send_mail", "send_sms", "send_pigeon")
    for name in (each for handler in handlers for each in (f"{handler}.py", f"requirements/{handler}.txt")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr("mailroom_stacks.settings.channels.LAMBDAS", tmp_path)
    row = {"handler": "send_pigeon", "lanes": {"normal": {"share": 1}}}
    context = {"stage": "dev", "mailroom": with_settings({"channels.pigeon": row}), **NO_BUNDLES}
    synthesize(context, str(tmp_path / "out"))  # nothing to keep: these are not the repository's handlers
    stacks = read(tmp_path / "out", "dev")
    channels = stacks["channels"]
    assert channels.one("SQS::Queue", QueueName="mailroom-dev-pigeon")
    assert channels.one("SQS::Queue", QueueName="mailroom-dev-pigeon-dlq")
    assert channels.one("CloudWatch::Alarm", AlarmName="mailroom-dev-pigeon-dlq-not-empty")
    assert channels.environment("mailroom-dev-send-pigeon")["CHANNEL"] == "pigeon"
    may = channels.policy("mailroom-dev-send-pigeon")
    assert {action for action in may if not action.startswith(("sqs:", "logs:"))} == {
        *("dynamodb:BatchGetItem", "dynamodb:BatchWriteItem", "dynamodb:PartiQLInsert"),
        "dynamodb:UpdateItem",
        *("s3:GetObject", "s3:ListBucket"),
    }
    routes = json.loads(stacks["routing"].environment("mailroom-dev-dispatch")["ROUTES"])
    assert routes.keys() == {"mail", "sms", "pigeon", "fax", "webhook"}
    looked = json.loads(stacks["dead-letters"].environment("mailroom-dev-dead-letters")["DEAD_LETTER_QUEUES"])
    assert "pigeon-dlq" in looked


def test_what_cdk_nag_finds_stops_synth(tmp_path: Path) -> None:
    app = App(context=NO_BUNDLES, outdir=str(tmp_path))
    build(app, load(STAGES, "dev"))
    Bucket(Stack(app, "careless"), "Open")
    with pytest.raises(NagError, match="AwsSolutions-S10"):
        checked(app)


def test_a_pinned_account_and_region_are_the_stacks_own() -> None:
    stages = copy.deepcopy(STAGES)
    stages["dev"]["deployment"] |= {"account": "111122223333", "region": "eu-central-1"}
    made = assembly({"stage": "dev", "mailroom": stages, **NO_BUNDLES})
    artifacts = json.loads((made / "manifest.json").read_text())["artifacts"].values()
    stacks = [each for each in artifacts if each["type"] == "aws:cloudformation:stack"]
    assert len(stacks) == len(STACKS)
    assert {each["environment"] for each in stacks} == {"aws://111122223333/eu-central-1"}


def test_the_cdk_clis_choice_of_stage_goes_before_cdk_jsons() -> None:
    ended = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={**os.environ, "CDK_CONTEXT_JSON": '{"stage": "qa"}'},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr == "stage: 'qa' is unknown; use one of dev, prod, local, as in -c stage=dev.\n"


def test_a_plain_run_says_what_the_cdk_cli_would_say_beside_the_stacks(
    stage: Callable[[str], Templates],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = stage("prod")
    # Not a CloudAssembly: the package aws-cdk.cloud-assembly-schema lies in a folder of aws-cdk-lib's,
    # and which of the two was installed last decides whether one can be made from Python.
    written = SimpleNamespace(
        directory=str(made.folder),
        stacks=[
            SimpleNamespace(stack_name=stack, template=template.body)
            for stack, template in made.stacks.items()
        ],
    )
    monkeypatch.setattr(app, "synthesize", lambda _context, _output: written)
    monkeypatch.setattr(sys, "argv", ["app.py"])
    app.main()
    said = capsys.readouterr()
    # `make deploy` takes the stacks' names from the standard output.
    assert [line.partition(":")[0] for line in said.out.splitlines()] == [
        each.stack_name for each in written.stacks
    ]
    assert "warning: mailroom.prod.deployment: is protected and not pinned;" in said.err
