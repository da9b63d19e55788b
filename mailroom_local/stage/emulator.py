"""Starts MiniStack, an emulator of DynamoDB, SQS, Lambda, SES, S3, Scheduler and CloudFormation in one
process."""

import os
from pathlib import Path

from mailroom_local import processes
from mailroom_local.aws import ACCOUNT, REGION, Endpoints, answers, key
from mailroom_local.processes import LOOPBACK, Process, StartError, wait_until
from mailroom_local.stage.installation import PACKAGE, install_locked
from mailroom_local.stage.workspace import EMULATOR_BIN, Workspace

NAME = "ministack"
START_SECONDS = 30.0
HEALTH = "/_ministack/health"
UVICORN = EMULATOR_BIN / "uvicorn"
APPLICATION = "mailroom_local.stage.emulated.application:app"
KEPT = ("PATH", "HOME", "LANG", "LC_ALL")


def start(workspace: Workspace, port: int, endpoints: Endpoints) -> Process:
    """Start the emulator and wait until it responds.

    MiniStack passes its environment on to the functions. Because of `AWS_ENDPOINT_URL_SESV2` and
    `AWS_ENDPOINT_URL_SNS`, the functions send mails and push messages to the simulators, so the stacks need
    no change.
    """
    install()
    workspace.scratch.mkdir(parents=True, exist_ok=True)
    environment = _environment(workspace, port)
    environment |= {"AWS_ENDPOINT_URL_SESV2": endpoints.providers, "AWS_ENDPOINT_URL_SNS": endpoints.sns}
    process = processes.start(_command(workspace, port), NAME, workspace.log(NAME), environment)
    url = f"{endpoints.aws}{HEALTH}"
    if not wait_until(lambda: answers(url) or not process.alive(), START_SECONDS) or not answers(url):
        process.stop()
        raise StartError(
            f"The emulator did not start. The end of {workspace.log(NAME)}:\n{workspace.tail(NAME)}\n"
            "If another program uses its port, try again: each start chooses a free port."
        )
    return process


def install() -> None:
    """Create the emulator's virtual environment if it is missing. It is separate because the emulator pins
    another version of botocore than Mailroom. Raises Refused."""
    install_locked(EMULATOR_BIN.parent, PACKAGE / "requirements.txt")


def _command(workspace: Workspace, port: int) -> list[str]:
    """Return the command that serves MiniStack, an ASGI application, with uvicorn. MiniStack's own server
    takes 0.8 ms of CPU time for each call, uvicorn 0.3 ms. The emulator uses only one core, which limits the
    rate of the whole pipeline."""
    serve = [str(UVICORN), APPLICATION, "--app-dir", str(_linked(workspace)), "--host", LOOPBACK]
    # MiniStack writes a Date header itself. If uvicorn added a second one, the AWS SDK in the CDK's CLI could
    # not read the date.
    options = "--no-access-log --no-date-header --timeout-keep-alive 75 --timeout-graceful-shutdown 0"
    return [*serve, "--port", str(port), *options.split()]


def _linked(workspace: Workspace) -> Path:
    """Return a folder that contains only a link to this package. The emulator's Python must not import other
    packages of Mailroom or of this environment."""
    folder = workspace.scratch / "packages"
    folder.mkdir(exist_ok=True)
    link = folder / PACKAGE.name
    link.unlink(missing_ok=True)
    link.symlink_to(PACKAGE)
    return folder


def _environment(workspace: Workspace, port: int) -> dict[str, str]:
    """Return only the environment variables that the emulator and the functions need, so that they do not use
    the user's AWS profile or proxy."""
    return {key: os.environ[key] for key in KEPT if key in os.environ} | {
        "BIND_HOST": LOOPBACK,
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": LOOPBACK,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        "LAMBDA_EXECUTOR": "local",
        "SFTP_ENABLED": "0",
        "TMPDIR": str(workspace.scratch),
        "AWS_ACCESS_KEY_ID": key(),
        "AWS_SECRET_ACCESS_KEY": key(),
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONUNBUFFERED": "1",
    }
