"""What is deployed for each function: its bundle's size, and the memory that the function takes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import REPOSITORY
from bench.environment import clean
from bench.events import Context, queue_batch, stream_batch
from bench.imports import CLIENTS
from bench.stubs import answer_at_once
from local.processes import most_megabytes
from local.stage.deploy import read_assembly

BATCHES = 100
RUN = ("dispatch", "dispatch_scheduled", "send_mail")
"""The functions whose memory is measured: those that take mails in numbers."""


def found(assembly: Path) -> dict[str, Path]:
    """The bundle of each handler, in a new cloud assembly of the local stage."""
    folders = {asset.source for stack in read_assembly(assembly) for asset in stack.assets if asset.zipped}
    return {each: folder for each in CLIENTS for folder in folders if (folder / f"{each}.py").exists()}


def measure(bundles: dict[str, Path]) -> dict[str, Any]:
    """Megabytes: unzipped size beside the runtime's boto3, and peak memory after a hundred batches."""
    sizes = {name: _megabytes(folder) for name, folder in bundles.items()}
    memory = {name: _memory(name, bundles[name]) for name in RUN}
    return {"bundle_mb": sizes, "memory_mb": memory}


def _megabytes(folder: Path) -> float:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6, 2)


def _memory(handler: str, folder: Path) -> float:
    command = [sys.executable, "-m", "bench.bundles", handler]
    environment = clean() | {"PYTHONPATH": str(folder)}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    return round(float(json.loads(done.stderr.splitlines()[-1])["megabytes"]), 1)


def main(handler: str) -> None:
    """Run one handler's batches in this process; its peak memory goes to standard error."""
    from mailroom.aws import clients

    made = [clients.dynamodb(), clients.sqs(), clients.s3()]
    made.append(clients.sesv2(10.0) if handler == "send_mail" else clients.scheduler())
    for client in made:
        answer_at_once(client)
    run = __import__(handler).handler
    batch = stream_batch if handler == "dispatch" else queue_batch
    for number in range(BATCHES):
        run(batch(number * 100), Context())
    print(json.dumps({"megabytes": most_megabytes()}), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
