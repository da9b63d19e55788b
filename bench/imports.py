"""Cold import of each handler, from its own bundle, against boto3 and the clients that it uses."""

import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import REPOSITORY
from bench.environment import clean

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


def measure(bundles: dict[str, Path]) -> dict[str, Any]:
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
    """In a new process, the bundle first on its path, as in Lambda; boto3 is this environment's."""
    command = [sys.executable, "-c", _TIMED.format(statement)]
    # A function's folder is read-only: what came without bytecode is compiled again each time.
    environment = clean() | {"PYTHONPATH": str(bundle), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=REPOSITORY / ".local", env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout) * 1000
