"""A campaign, from its audience to the mailbox: AWS calls a recipient, recipients a second, memory.

The rate is the emulator's, over PostgreSQL, with nothing sent meanwhile: the stream's pump stands still.
Producer, emulator, database and functions share the machine.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import campaign_calls
from bench.campaign_calls import CAMPAIGN, PEOPLE
from local.aws import LocalSession, patient
from local.processes import most_megabytes
from local.stage import lifecycle
from local.stage.workspace import DOT_LOCAL, State, Workspace
from mailroom.campaigns.runs import Runs
from ops.campaigns.deployed import RunStart

RUNS = 3
LONGEST = 300.0
FUNCTIONS = ("collect", "compose")


def measure(announce: Callable[[str], None]) -> dict[str, Any]:
    """Calls by name and a recipient; recipients a second and the functions' memory on the emulator."""
    return campaign_calls.measure() | _on_the_emulator(announce)


def _on_the_emulator(announce: Callable[[str], None]) -> dict[str, Any]:
    workspace = Workspace(DOT_LOCAL / "bench")
    lifecycle.stop(workspace)
    try:
        running = lifecycle.start(workspace, announce, PEOPLE)
        running.processes["pump"].stop()
        _run(running, "warm-up")
        seen = [_run(running, f"run-{n}") for n in range(RUNS)]
        memory = {name: _memory(f"mailroom-local-{name}") for name in FUNCTIONS}
    finally:
        lifecycle.stop(workspace)
    rates = {name: [round(PEOPLE / each[name], 1) for each in seen] for name in ("collected", "composed")}
    announce(f"{PEOPLE:,} people of a campaign: {statistics.median(rates['composed']):.0f} a second")
    return {
        "campaign_recipients_per_second": {name: statistics.median(each) for name, each in rates.items()},
        "campaign_recipients_per_second_runs": rates,
        "campaign_memory_mb": memory,
    }


def _run(running: State, name: str) -> dict[str, float]:
    """Seconds until everybody is collected, and until everybody is in the mailbox."""
    session, url = LocalSession(), running.endpoints.aws
    runs = Runs(
        session.client("dynamodb", endpoint_url=url, config=patient()), running.outputs["RunsTableName"]
    )
    sqs = session.client("sqs", endpoint_url=url, config=patient())
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    started = time.monotonic()
    seconds: dict[str, float] = {}
    sqs.send_message(
        QueueUrl=running.outputs["CollectQueueUrl"], MessageBody=RunStart(CAMPAIGN, name, now).body()
    )
    while True:
        elapsed = time.monotonic() - started
        run = runs.read(CAMPAIGN, name)
        if run is not None and run.state == "collected":
            seconds.setdefault("collected", elapsed)
            if run.recipients != PEOPLE:
                raise RuntimeError(f"{run.recipients} of {PEOPLE} people were collected")
        if run is not None and run.composed >= PEOPLE:
            return seconds | {"composed": elapsed}
        if elapsed > LONGEST:
            raise TimeoutError(f"the campaign did not end in {LONGEST:.0f} s: {run}")
        time.sleep(0.1)


def _memory(function: str) -> float:
    """The most that a process of this function ever had, in MB; 0 where the system does not tell."""
    mark = f"AWS_LAMBDA_FUNCTION_NAME={function}".encode()
    most = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                most = max(most, most_megabytes(folder.name))
        except OSError:
            continue
    return round(most, 1)
