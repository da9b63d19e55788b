"""The documented real deploy, run as it is documented, against an emulator of its own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mailroom_local import processes
from mailroom_local.aws import ACCOUNT, REGION, Endpoints, LocalSession, patient
from mailroom_local.stage import emulator
from mailroom_local.stage.deploy import BOOTSTRAP_VERSION
from mailroom_local.stage.workspace import Workspace
from mailroom_stacks.paths import DOT_LOCAL
from tests.support import ROOT
from tests.support.stacks.refusals import OURS

COMMAND = "cdk deploy --all -c stage=dev --require-approval never"
SECONDS = 240
NAMES = (
    *("mailbox", "feedback", "api", "channels", "fax", "webhook", "routing", "dead-letters"),
    "monitoring",
)
STACKS = {f"mailroom-dev-{name}" for name in NAMES}

RINGS = ("dlq-not-empty", "waiting-long", "backlog-old", "in-flight-many")
"""Why a queue's alarms ring."""
FAILS = ("errors",)
"""Why a function's do."""
LATE = ("gave-up", "dropped", "iterator-age")
"""Why a stream's do."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An empty account that `cdk bootstrap` has prepared."""
    (port,) = processes.free_ports(1)
    url = f"http://127.0.0.1:{port}"
    folder = tmp_path_factory.mktemp("account")
    process = emulator.start(Workspace(folder), port, Endpoints(url, providers=url))
    ssm = LocalSession().client("ssm", endpoint_url=url, config=patient())
    ssm.put_parameter(Name=BOOTSTRAP_VERSION, Value="30", Type="String")
    s3 = LocalSession().client("s3", endpoint_url=url, config=patient())
    s3.create_bucket(Bucket=f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}")
    yield url
    process.stop()


def environment(url: str, home: Path) -> dict[str, str]:
    """A shell whose AWS is the emulator, whatever profiles the user has."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return (
        own
        | Endpoints(url, url).variables()
        | {
            "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{own.get('PATH', '')}",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "CDK_HOME": str(home),  # it keeps the account's number, and this account is nobody's
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "true",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's folder, with stages of the tests' own: the repository's are the deployer's."""
    folder = tmp_path_factory.mktemp("cdk")
    shutil.copyfile(ROOT / "app.py", folder / "app.py")
    (folder / ".local").mkdir()
    for made in ("cdk", "bundles"):
        (folder / ".local" / made).symlink_to(DOT_LOCAL / made)
    (folder / "templates").symlink_to(ROOT / "templates")
    write_stages(folder, json.loads(OURS.read_text()))
    return folder


def write_stages(folder: Path, own: dict[str, Any]) -> None:
    own["app"] = f"{sys.executable} app.py"
    (folder / "cdk.json").write_text(json.dumps(own))


@pytest.fixture(scope="module")
def deployed(url: str, folder: Path) -> str:
    """The emulator's URL, after the deploy. `make cdk` has to have been run."""
    try:
        answer = run(url, folder)
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"`{COMMAND}` took over {SECONDS} s. {late.output!r}")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return url


def run(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND.split(), "--output", str(folder / "cdk.out")],
        cwd=folder,
        env=environment(url, folder / "home"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_the_documented_deploy_makes_every_stack(deployed: str) -> None:
    formation = LocalSession().client("cloudformation", endpoint_url=deployed, config=patient())
    made = {each["StackName"]: each["StackStatus"] for each in formation.describe_stacks()["Stacks"]}
    assert made == dict.fromkeys(STACKS, "CREATE_COMPLETE")


def test_the_documented_deploy_leaves_the_physical_names_that_the_readme_promises(deployed: str) -> None:
    dynamodb = LocalSession().client("dynamodb", endpoint_url=deployed, config=patient())
    tables = ("mailbox", "ledger", "suppressions", "preferences", "budgets", "contents")
    assert set(dynamodb.list_tables()["TableNames"]) == {
        f"mailroom-dev-{name}" for name in (*tables, "search")
    }
    sqs = LocalSession().client("sqs", endpoint_url=deployed, config=patient())
    queues = {each.rpartition("/")[2] for each in sqs.list_queues()["QueueUrls"]}
    names = ("mail", "mail-bulk", "sms", "fax-retry", "webhook", "feedback")
    fifo = {f"mailroom-dev-fax{end}.fifo" for end in ("", "-dlq")}
    assert queues == fifo | {f"mailroom-dev-{name}{end}" for name in names for end in ("", "-dlq")}
    cloudwatch = LocalSession().client("cloudwatch", endpoint_url=deployed, config=patient())
    pages = cloudwatch.get_paginator("describe_alarms").paginate()
    found = {each["AlarmName"] for page in pages for each in page["MetricAlarms"]}
    rings = {f"mailroom-dev-{name}-{why}" for name in (*names, "fax") for why in RINGS}
    functions = (
        *("send-mail", "send-mail-bulk", "send-sms", "send-fax", "retry-fax", "send-webhook", "feedback"),
        *("dispatch", "outcomes", "index-messages", "release", "dead-letters"),
        *("messages-api", "unsubscribe", "twilio-callbacks"),
    )
    fails = {f"mailroom-dev-{name}-{why}" for name in functions for why in FAILS}
    readers = ("dispatch", "outcomes", "index-messages")
    late = {f"mailroom-dev-{name}-{why}" for name in readers for why in LATE}
    rates = (f"ses-{of}-rate{end}" for of in ("bounce", "complaint") for end in ("", "-warning"))
    days = ("mail-day-used-up", "mail-day-used-up-warning")
    single = ("api-5xx", "webhooks-failing", "concurrency", "release-late", "aws-drops", *rates, *days)
    others = {f"mailroom-dev-{name}" for name in single}
    assert found == rings | fails | late | others
    boards = cloudwatch.list_dashboards()["DashboardEntries"]
    assert {each["DashboardName"] for each in boards} == {"mailroom-dev", "mailroom-dev-parts"}
