"""What is deployed for each function: its bundle's size, its memory, and how long its cold import takes."""

import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.functions import (
    answer_at_once,
    clean,
    context,
    in_a_process,
    queue_batch,
    report,
    stream_batch,
)
from bench.memory import most_megabytes
from local.stage.deploy import read_assembly
from local.stage.workspace import DOT_LOCAL, Workspace

BATCHES = 100
RUN = ("dispatch", "dispatch_scheduled", "send_mail")
"""The functions whose memory is measured: those that take mails in numbers."""
ROUNDS = 15
CLIENTS = {
    "collect": ("dynamodb", "secretsmanager", "sqs"),
    "compose": ("dynamodb", "secretsmanager", "sqs"),
    "dead_letters": ("dynamodb", "sqs"),
    "dispatch": ("dynamodb", "s3", "scheduler", "sqs"),
    "dispatch_scheduled": ("dynamodb", "s3", "scheduler", "sqs"),
    "feedback": ("dynamodb", "sqs"),
    "messages_api": ("dynamodb", "s3"),
    "outcomes": ("sqs",),
    "retry_fax": ("sqs",),
    "send_fax": ("dynamodb", "s3", "secretsmanager", "sqs"),
    "send_mail": ("dynamodb", "s3", "sesv2", "sqs"),
    "send_push": ("dynamodb", "s3", "sns", "sqs"),
    "send_sms": ("dynamodb", "s3", "secretsmanager", "sqs"),
    "send_webhook": ("dynamodb", "s3", "secretsmanager", "sqs"),
    "twilio_callbacks": ("secretsmanager", "sqs"),
    "unsubscribe": ("dynamodb", "secretsmanager"),
}
_TIMED = "import time; started = time.perf_counter(); {}; print(time.perf_counter() - started)"


def measure() -> dict[str, Any]:
    """Megabytes unzipped beside the runtime's boto3, peak memory after a hundred batches, cold imports."""
    from local.stage import (
        lifecycle,  # not above: what this process has imported counts as the functions' memory
    )

    workspace = Workspace(DOT_LOCAL / "measured")
    lifecycle.synthesize(workspace)
    bundles = found(workspace.assembly)
    memory = {
        name: round(float(in_a_process("bench.deployed", name, PYTHONPATH=str(bundles[name]))), 1)
        for name in RUN
    }
    sizes = {name: _megabytes(folder) for name, folder in bundles.items()}
    return {"bundle_mb": sizes, "memory_mb": memory, **_imports(bundles)}


def found(assembly: Path) -> dict[str, Path]:
    """The bundle of each handler, in a new cloud assembly of the local stage."""
    folders = {asset.source for stack in read_assembly(assembly) for asset in stack.assets if asset.zipped}
    return {each: folder for each in CLIENTS for folder in folders if (folder / f"{each}.py").exists()}


def _megabytes(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 2)


def _memory(handler: str) -> float:
    """Run one handler's batches in this process: its peak memory."""
    from mailroom.aws import clients

    third = clients.sesv2(10.0) if handler == "send_mail" else clients.scheduler()
    answer_at_once(clients.dynamodb(), clients.sqs(), clients.s3(), third)
    run = __import__(handler).handler
    batch = stream_batch if handler == "dispatch" else queue_batch
    for number in range(BATCHES):
        run(batch(number * 100), context())
    return most_megabytes()


def _imports(bundles: dict[str, Path]) -> dict[str, Any]:
    """Milliseconds of each, and the ratio handler / baseline, medians of runs in turn."""
    figures: dict[str, Any] = {"import_ms": {}, "import_baseline_ms": {}, "import_ratio": {}}
    for handler, bundle in bundles.items():
        made = "; ".join(f"boto3.client({name!r})" for name in CLIENTS[handler])
        baseline, ours = [], []
        for _ in range(ROUNDS):
            baseline.append(_milliseconds(f"import boto3; {made}", bundle))
            ours.append(_milliseconds(f"import {handler}", bundle))
        figures["import_ms"][handler] = round(statistics.median(ours))
        figures["import_baseline_ms"][handler] = round(statistics.median(baseline))
        ratio = statistics.median(ours) / statistics.median(baseline)
        figures["import_ratio"][handler] = round(ratio, 2)
    return figures


def _milliseconds(statement: str, bundle: Path) -> float:
    """Time a statement in a new process, in the bundle's folder, as in Lambda; boto3 is this
    environment's."""
    command = [sys.executable, "-c", _TIMED.format(statement)]
    # A function's folder is read-only: what came without bytecode is compiled again each time.
    environment = clean(PYTHONPATH=str(bundle), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(command, cwd=bundle, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout) * 1000


if __name__ == "__main__":
    report(_memory(sys.argv[1]))
