"""Starts an emulator for one test, with short functions and the pump."""

import io
import os
import sys
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mailroom_local import processes
from mailroom_local.aws import Endpoints, LocalSession, authorization, open_url, patient
from mailroom_local.stage import emulator
from mailroom_local.stage.workspace import Workspace
from tests.support import ROOT

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient

ROLE = "arn:aws:iam::000000000000:role/any"


@contextmanager
def emulated(folder: Path) -> Iterator[str]:
    """Start a fresh emulator and return its URL."""
    (port,) = processes.free_ports(1)
    url = f"http://127.0.0.1:{port}"
    process = emulator.start(Workspace(folder), port, Endpoints(url, providers="http://127.0.0.1:1"))
    try:
        yield url
    finally:
        process.stop()


def emptied(url: str) -> str:
    """Delete all resources of an emulator and return its URL."""
    headers = {"Authorization": authorization("s3")}
    open_url(urllib.request.Request(f"{url}/_ministack/reset", b"", headers), 30).close()
    return url


@contextmanager
def pumping(url: str, folder: Path) -> Iterator[None]:
    """Run the pump on that emulator. It uses the event source mappings that exist at its start."""
    command = [sys.executable, "-m", "mailroom_local.pump.driver", "--emulator", url]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    pump = processes.start(command, "mailroom_local.pump.driver", folder / "pump.log", environment)
    try:
        yield
    finally:
        pump.stop()


def lambda_client(url: str) -> "LambdaClient":
    return LocalSession().client("lambda", endpoint_url=url, config=patient())


def create_function(url: str, name: str, code: str, variables: Mapping[str, str]) -> None:
    """Create a function whose handler is `handler` in `code`."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as bundle:
        # Without a timestamp, so that the same code gives the same archive.
        bundle.writestr(zipfile.ZipInfo("index.py"), code)
    lambda_client(url).create_function(
        FunctionName=name,
        Runtime="python3.11",
        Handler="index.handler",
        Role=ROLE,
        Timeout=10,
        Code={"ZipFile": archive.getvalue()},
        Environment={"Variables": dict(variables)},
    )
