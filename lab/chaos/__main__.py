"""`make chaos`: put messages while faults occur in functions and providers, and check at the simulators the
outcome of each message. Writes lab/bench/chaos.json and draws docs/pictures; with --mail resend or both it
writes chaos_resend.json or chaos_both.json. Exits with 1 if a message was lost or sent twice, or if another
check failed."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from typing import Any

from lab import REPOSITORY, measured, size
from lab.chaos.faults import Chaos, plan
from lab.chaos.report import Report
from lab.harness.evidence import announced, dead
from lab.harness.judge import Observation
from lab.harness.run import Bars, Run
from lab.harness.stage_client import StageClient
from lab.load import draw
from mailroom_local.aws import STAGE
from mailroom_local.processes import StartError
from mailroom_local.stage import lifecycle
from mailroom_local.stage.deploy import DeployError
from mailroom_local.stage.workspace import State, Workspace
from mailroom_ops.shared.terminal import Terminal
from mailroom_stacks.merging import merged
from mailroom_stacks.paths import CDK_JSON, DOT_LOCAL

WORKSPACE = Workspace(DOT_LOCAL / "chaos-stage")
TOOLS = DOT_LOCAL / "chaos" / "bin"
"""Programs of the environment that draws the picture; `make chaos` installs it."""
SEEN = WORKSPACE.folder / "seen.json"
"""File with all observations, for looking up a message. The logs of the run are in the same folder."""
SEED, MESSAGES, KILLS, RATE = 1, size(4000, 60), size(100, 3), 14.0
"""Defaults, for a run of about seven minutes on two cores, or of some seconds with SHORT=1."""
END_SECONDS = 1_900.0
"""Seconds without the end of any message, after which the run no longer waits. They are longer than the half
hour for which a message waits after its outcome was unknown twice."""
_RESEND = {"base_url": "providers"}
_FALLBACK = {**_RESEND, "fallback": {"messages_per_second": 50}}
MAIL: dict[str, dict[str, Any]] = {
    "ses": {},
    "resend": {"mail": {"provider": "resend"}, "channels": {"mail": _RESEND}},
    "both": {"mail": {"fallback": "resend"}, "channels": {"mail": _FALLBACK}},
}
"""Settings of the stage by the provider of mails; `both` is SES with Resend as its fallback."""
console = Terminal(highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help=f"seed of load and faults; default {SEED}")
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"messages; default {MESSAGES:,}")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"killed processes; default {KILLS}")
    parser.add_argument("--rate", type=float, default=RATE, help=f"messages put per second; default {RATE:g}")
    parser.add_argument(
        "--mail",
        choices=tuple(MAIL),
        default="ses",
        help="provider of mails; default ses. both: SES refuses everything for two minutes, and Resend is "
        "its fallback",
    )
    options = parser.parse_args()
    if not TOOLS.exists():
        sys.exit("matplotlib for the picture is missing: run `make chaos`, or `make .local/chaos/.ready`.")
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        # The local stage must not depend on the user's AWS profile.
        os.environ.pop(name, None)
    # SIGTERM raises SystemExit, so that `finally` blocks run, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if settings := MAIL[options.mail]:
        stages = json.loads(CDK_JSON.read_text())["context"]["mailroom"]
        # The context in this variable overrides the context in cdk.json.
        os.environ["CDK_CONTEXT_JSON"] = json.dumps({"mailroom": merged(stages, {STAGE: settings})})
    lifecycle.stop(WORKSPACE)  # an earlier run that was killed may have left a stage
    try:
        running = lifecycle.start(WORKSPACE, lambda line: console.print(f"- {line}"))
        report = measure(running, options)
    except (StartError, DeployError) as trouble:
        sys.exit(str(trouble))
    finally:
        lifecycle.stop(WORKSPACE)
    report.write()
    if options.mail == "ses":
        subprocess.run([TOOLS / "python", "-m", "lab.chaos.plot"], cwd=REPOSITORY, check=True)
    report.show(console)
    console.print(f"Each message and its ledger item: {SEEN.relative_to(REPOSITORY)}; logs: beside it")
    sys.exit(1 if report.judgement.wrong else 0)


def measure(running: State, options: argparse.Namespace) -> Report:
    """Put all messages while the faults occur, wait until the pipeline is idle, and check the results."""
    stage, seed, rate = StageClient(running), options.seed, options.rate
    load = draw(seed, options.messages, running.endpoints.providers)
    faults = plan(seed, options.messages, options.kills, options.mail)
    conditions, began = measured(), time.time()
    with Bars(console) as bars:
        run = Run(stage, bars, END_SECONDS)
        chaos = Chaos(stage, WORKSPACE, faults, lambda: len(run.put_at), bars.bar)
        run.send("messages", load, rate=rate, disturb=chaos.run)
        run.settle()
    end = time.time()
    console.print("- judging")
    judgement = run.judge(strict=False, announced=announced(stage), dead=dead(stage))
    _keep(judgement.seen)
    return Report(judgement, seed, rate, began, end, chaos.done, stage.troubles(), options.mail, conditions)


def _keep(observation: Observation) -> None:
    announcements = [[*key, times] for key, times in observation.announced.items()]
    requests = [asdict(request) for request in observation.requests]
    document = {
        "inbox": observation.inbox,
        "faxes": observation.faxes,
        "requests": requests,
        "announced": announcements,
    }
    rows = list(observation.ledger.values())
    SEEN.write_text(json.dumps(document | {"ledger": rows, "dead": observation.dead}, default=str))


if __name__ == "__main__":
    main()
