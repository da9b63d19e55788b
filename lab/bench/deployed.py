"""What is deployed for each function: its bundle's size, its memory, and how long its cold import takes."""

import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab import SHORT, size
from lab.bench.functions import clean, in_a_process
from mailroom_local.stage import lifecycle
from mailroom_local.stage.deploy import bundle_of
from mailroom_local.stage.workspace import Workspace
from mailroom_stacks.paths import DOT_LOCAL

ROUNDS = size(15, 1)
CLIENTS = {
    "collect": ("dynamodb", "secretsmanager", "sqs"),
    "compose": ("dynamodb", "secretsmanager", "sqs"),
    "dead_letters": ("dynamodb", "sqs"),
    "dispatch": ("dynamodb", "s3", "sqs"),
    "feedback": ("dynamodb", "sqs"),
    "index_messages": ("dynamodb", "secretsmanager"),
    "messages_api": ("dynamodb", "s3"),
    "outcomes": ("sqs",),
    "release": ("dynamodb", "s3", "sqs"),
    "retry_fax": ("sqs",),
    "send_fax": ("dynamodb", "s3", "secretsmanager", "sqs"),
    "send_mail": ("dynamodb", "s3", "sesv2", "sqs"),
    "send_push": ("dynamodb", "s3", "sns", "sqs"),
    "send_sms": ("dynamodb", "s3", "secretsmanager", "sqs"),
    "send_webhook": ("dynamodb", "s3", "secretsmanager", "sqs"),
    "twilio_callbacks": ("secretsmanager", "sqs"),
    "unsubscribe": ("dynamodb", "secretsmanager"),
}
MEASURED = ("collect", "compose", "send_mail") if SHORT else tuple(CLIENTS)
_TIMED = "import time; started = time.perf_counter(); {}; print(time.perf_counter() - started)"


def measure() -> dict[str, Any]:
    """Megabytes unzipped beside the runtime's boto3, the mail sender's peak memory, cold imports."""
    workspace = Workspace(DOT_LOCAL / "measured")
    lifecycle.synthesize(workspace)
    bundles = {name: bundle_of(workspace.assembly, f"{name}.py").source for name in MEASURED}
    return {
        "bundle_mb": {name: _megabytes(folder) for name, folder in bundles.items()},
        "memory_mb": {"send_mail": in_a_process("lab.bench.peak", PYTHONPATH=str(bundles["send_mail"]))},
        "import_ratio": {name: _import_ratio(name, folder) for name, folder in bundles.items()},
    }


def _megabytes(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 2)


def _import_ratio(handler: str, bundle: Path) -> float:
    """What the handler takes beside boto3 and its clients: medians of runs in turn."""
    made = "; ".join(f"boto3.client({name!r})" for name in CLIENTS[handler])
    baseline, ours = [], []
    for _ in range(ROUNDS):
        baseline.append(_seconds(f"import boto3; {made}", bundle))
        ours.append(_seconds(f"import {handler}", bundle))
    return round(statistics.median(ours) / statistics.median(baseline), 2)


def _seconds(statement: str, bundle: Path) -> float:
    """Time a statement in a new process, in the bundle's folder, as in Lambda; boto3 is this
    environment's."""
    command = [sys.executable, "-c", _TIMED.format(statement)]
    # A function's folder is read-only: what came without bytecode is compiled again each time.
    environment = clean(PYTHONPATH=str(bundle), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(command, cwd=bundle, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)
