"""Stages differ in settings alone, and findings of cdk-nag stop synth."""

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

from mailroom_stacks.app import main as app
from mailroom_stacks.app.application import NagError, build, checked
from mailroom_stacks.app.cache import NO_BUNDLES
from mailroom_stacks.settings.load import load
from tests.support import ROOT
from tests.support.stacks.refusals import with_settings
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import LEAN

STACKS = [
    *("api", "channels", "dead-letters", "fax", "feedback", "mailbox", "monitoring", "routing", "webhook"),
]


def test_the_local_stage_has_resources_of_the_same_types_as_other_stages(
    templates_of_stage: Callable[[str], Templates], every_function: Templates
) -> None:
    stages = (templates_of_stage("local"), every_function)
    for name in (*STACKS, "campaigns"):
        kinds = [sorted(each["Type"] for each in of[name].body["Resources"].values()) for of in stages]
        assert kinds[0] == kinds[1]


def test_the_local_stage_runs_on_this_python_and_its_stream_mappings_are_disabled(
    templates_of_stage: Callable[[str], Templates],
) -> None:
    routing = templates_of_stage("local")["routing"]
    assert routing.mapping("mailroom-local-dispatch")["Enabled"] is False
    assert routing.mapping("mailroom-local-outcomes")["Enabled"] is False
    assert {each["Runtime"] for each in routing.all("Lambda::Function")} == {
        f"python3.{sys.version_info.minor}"
    }


def test_a_finding_of_cdk_nag_makes_synth_fail(tmp_path: Path) -> None:
    app = App(context=NO_BUNDLES, outdir=str(tmp_path))
    build(app, load(with_settings(LEAN), "dev"))
    Bucket(Stack(app, "careless"), "Open")
    with pytest.raises(NagError, match="AwsSolutions-S10"):
        checked(app)


def test_the_pinned_account_and_region_of_a_stage_are_those_of_its_stacks(otherwise: Templates) -> None:
    artifacts = json.loads((otherwise.folder / "manifest.json").read_text())["artifacts"].values()
    stacks = [each for each in artifacts if each["type"] == "aws:cloudformation:stack"]
    assert len(stacks) == len(otherwise.stacks)
    assert {each["environment"] for each in stacks} == {"aws://111122223333/eu-central-1"}


def test_the_cdk_clis_choice_of_stage_precedes_that_of_cdk_json() -> None:
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


def test_app_py_without_options_prints_the_stacks_and_sends_warnings_to_standard_error(
    templates_of_stage: Callable[[str], Templates],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = templates_of_stage("prod")
    # Not a CloudAssembly: the package aws-cdk.cloud-assembly-schema lies in a folder of aws-cdk-lib, and
    # which of the two was installed last decides whether Python can create one.
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
    assert [line.partition(":")[0] for line in said.out.splitlines()] == [
        each.stack_name for each in written.stacks
    ]
    assert "warning: mailroom.prod.deployment: is protected but has no account or region;" in said.err


def test_a_metric_has_the_same_period_as_the_expression_that_uses_it(
    templates_of_stage: Callable[[str], Templates],
    whole: Templates,
    everything: Templates,
    two_providers: Templates,
) -> None:
    # The CDK would override the metric's period, and print a warning at each synth.
    for templates in (
        templates_of_stage("dev"),
        templates_of_stage("prod"),
        whole,
        everything,
        two_providers,
    ):
        notes = [file.read_text() for file in templates.folder.glob("*.metadata.json")]
        assert len(notes) > len(STACKS) / 2
        assert not [note for note in notes if "MetricsPeriodsOverridden" in note]
