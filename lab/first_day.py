"""`python -m lab.first_day`: play a deployer's first day at the emulator of AWS at AWS_ENDPOINT_URL, with the
commands of a deployer: bootstrap, deploy, compare, deploy again, send messages while functions are killed,
examine, destroy. Exits with 1 at the first step with another result than on AWS."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from botocore.config import Config

from lab.harness.evidence import announced, dead
from lab.harness.expected import Expected
from lab.harness.run import Bars, Run
from lab.harness.stage_client import StageClient
from lab.harness.totals import Totals
from lab.load import draw
from mailroom_local.aws import STAGE, Endpoints, LocalSession, patient
from mailroom_local.processes import wait_until
from mailroom_local.providers.server import CREDENTIALS
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import State, Workspace
from mailroom_ops.deploying.commands import NO_LOSS
from mailroom_ops.shared.terminal import Terminal
from mailroom_stacks.paths import CDK_JSON, DOT_LOCAL, PROJECT

WORKSPACE = Workspace(DOT_LOCAL / "first-day")
SEED, MESSAGES, RATE = 1, 300, 5.0
KILL_SECONDS, PATIENCE_SECONDS, GONE_SECONDS = 3.0, 300.0, 60.0
CHANNELS = ("mail", "sms", "webhook", "fax")
"""Channels whose providers have a base URL, and so can be simulated beside any emulator."""
PREFIX = f"mailroom-{STAGE}"
LISTS = (
    ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    ("dynamodb", "list_tables", "TableNames", ""),
    ("events", "list_rules", "Rules", "Name"),
    ("iam", "list_roles", "Roles", "RoleName"),
    ("lambda", "list_functions", "Functions", "FunctionName"),
    ("lambda", "list_event_source_mappings", "EventSourceMappings", "FunctionArn"),
    ("logs", "describe_log_groups", "logGroups", "logGroupName"),
    ("s3", "list_buckets", "Buckets", "Name"),
    ("secretsmanager", "list_secrets", "SecretList", "Name"),
    ("sns", "list_topics", "Topics", "TopicArn"),
    ("sqs", "list_queues", "QueueUrls", ""),
    ("ssm", "describe_parameters", "Parameters", "Name"),
)
"""Lists that show what a stage has left: service, operation, key of the list, and key of the name.
Stacks are not among them, because `destroy` fails if one is left."""
TOLERATED = f"{PREFIX}-release-late rings."
"""Finding of `doctor` at an emulator: it makes no metrics from functions' logs, and this alarm rings without
its metric."""
CONFIG = patient().merge(Config(retries={"mode": "standard"}))
"""Configuration of clients with the retries of a user's client: an emulator may close a connection."""
console = Terminal(highlight=False)


def settings(providers: str) -> dict[str, Any]:
    """Return the CDK's context for the local stage with CHANNELS alone, whose providers are simulated at the
    URL `providers`."""
    stage = json.loads(CDK_JSON.read_text())["context"]["mailroom"][STAGE]
    channels = {name: row for name, row in stage["channels"].items() if name in CHANNELS}
    channels["mail"]["base_url"] = "providers"
    stage |= {"channels": channels, "push": None}
    stage["mail"]["provider"] = "resend"
    stage["webhook"]["allowed_networks"] += [f"{urlsplit(providers).hostname}/32"]
    return {"providers": providers, "mailroom": {STAGE: stage}}


class FirstDay:
    """A first day at the emulator at the URL `aws`, whose functions reach the simulators at `providers`."""

    def __init__(self, aws: str, providers: str) -> None:
        self._context = json.dumps(settings(providers))
        self._aws = aws
        self.running = State(Endpoints(aws, providers))

    def client(self, service: Any) -> Any:
        return LocalSession().client(service, endpoint_url=self._aws, config=CONFIG)

    def mailroom(self, *words: str, allowed: int = 0) -> str:
        """Run a command of `mailroom` on the stage, and return its output. Exits with 1 if its exit code is
        above `allowed`."""
        console.rule(f"mailroom {' '.join(words)}", align="left")
        began = time.monotonic()
        process = subprocess.run(
            [sys.executable, "-m", "mailroom_ops", *words, "--stage", STAGE],
            cwd=PROJECT,
            env=os.environ | self.running.variables() | {"CI": "1", "CDK_CONTEXT_JSON": self._context},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        sys.stdout.write(process.stdout)
        console.print(f"exit code {process.returncode} after {time.monotonic() - began:.0f} s")
        require(0 <= process.returncode <= allowed, f"mailroom {words[0]} failed")
        return process.stdout

    def deploy(self) -> dict[str, Any]:
        """Deploy the stage. Return the times of the last changes of its stacks."""
        self.mailroom("deploy", "--bootstrap", "--approval", "never")
        # Emulators list deleted stacks too, which an earlier day may have left.
        listed = self.client("cloudformation").describe_stacks()["Stacks"]
        stacks = [stack for stack in listed if stack["StackStatus"] != "DELETE_COMPLETE"]
        self.running.outputs = {
            output["OutputKey"]: output["OutputValue"]
            for stack in stacks
            for output in stack.get("Outputs", [])
        }
        return {stack["StackName"]: stack.get("LastUpdatedTime", stack["CreationTime"]) for stack in stacks}

    def set_up(self) -> None:
        """Store the credentials of the providers, and enable the streams, which the settings of a local stage
        disable because its usual emulator cannot deliver them."""
        secrets, functions = self.client("secretsmanager"), self.client("lambda")
        for output in CREDENTIALS.keys() & self.running.outputs.keys():
            name, value = self.running.outputs[output], json.dumps(CREDENTIALS[output])
            secrets.put_secret_value(SecretId=name, SecretString=value)
        mappings = functions.list_event_source_mappings()["EventSourceMappings"]
        for mapping in (mapping for mapping in mappings if mapping["State"] == "Disabled"):
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)

    def send(self, load: list[Expected], kill: Callable[[Event], None]) -> None:
        """Send messages while functions are killed. Exits with 1 if one was lost, or sent twice."""
        stage = StageClient(self.running)
        stage.dynamodb = self.client("dynamodb")
        with Bars(console) as bars:
            run = Run(stage, bars, PATIENCE_SECONDS)
            run.send("messages", load, rate=RATE, disturb=kill)
        judgement = run.judge(strict=False, announced=announced(stage), dead=dead(stage))
        totals = Totals.of(judgement)
        console.print(totals.table("Messages"))
        console.print(*run.troubles, sep="\n", markup=False)
        require(totals.sum("accepted") == len(load), "not every message was accepted")
        require(totals.sum("lost") + totals.sum("sent_twice") == 0, "messages were lost or sent twice")

    def left(self) -> list[str]:
        """Return the names of the stage's resources."""
        return [
            f"{service}: {name}"
            for service, operation, key, field in LISTS
            for page in self.client(service).get_paginator(operation).paginate()
            for row in page.get(key, [])
            if PREFIX in (name := row[field] if field else row)
        ]


def killing(command: str, kills: list[bytes]) -> Callable[[Event], None]:
    """Return a function that repeatedly runs the shell's `command` while messages are put. The command kills
    a process of a function, and prints its name, which is added to `kills`."""

    def kill(stop: Event) -> None:
        deadline = time.monotonic() + MESSAGES / RATE
        while command and time.monotonic() < deadline and not stop.wait(KILL_SECONDS):
            if name := subprocess.run(command, shell=True, stdout=subprocess.PIPE, check=False).stdout:
                kills.append(name)

    return kill


def require(fulfilled: bool, fault: str) -> None:
    if not fulfilled:
        sys.exit(f"first day: {fault}.")


def play(day: FirstDay, kill: str) -> None:
    """Play the day. `kill` is a shell command that kills a function."""
    deployed = day.deploy()
    require(day.mailroom("diff").strip() == NO_LOSS, "diff shows a difference")
    require(day.deploy() == deployed, "the second deployment changed a stack")
    day.set_up()
    kills: list[bytes] = []
    load = draw(SEED, MESSAGES * 2, day.running.endpoints.providers)
    day.send([message for message in load if message.channel in CHANNELS][:MESSAGES], killing(kill, kills))
    require(bool(kills) or not kill, "no function was killed")
    checks = json.loads(day.mailroom("doctor", "--json", allowed=1))["checks"]
    failed = [check for check in checks if check["state"] == "failed" and check["sentence"] != TOLERATED]
    require(not failed, f"doctor has found {failed}")
    resources = day.left()
    day.mailroom("destroy", "--yes")
    wait_until(lambda: not day.left(), GONE_SECONDS, 1)
    require(not day.left(), f"the stage has left {day.left()}")
    console.print(
        f"{len(kills)} functions were killed; {len(resources)} resources were deleted, and none is left."
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.first_day", description=__doc__)
    parser.add_argument("--kill", default="", help="shell command that kills a function and prints its name")
    parser.add_argument(
        "--providers", default="http://127.0.0.1:4580", help="URL of the simulators for functions"
    )
    options = parser.parse_args()
    day = FirstDay(os.environ["AWS_ENDPOINT_URL"], options.providers)
    ports = "--emulator", day.running.endpoints.aws, "--port", str(urlsplit(options.providers).port)
    try:
        lifecycle.start_module(WORKSPACE, day.running, "providers", *ports, "--memory", str(WORKSPACE.memory))
        play(day, options.kill)
    finally:
        lifecycle.stop(WORKSPACE)


if __name__ == "__main__":
    main()
