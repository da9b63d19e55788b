"""Time of single mails on the emulator.

Producer, emulator, pump, functions and providers share the machine, so the figures depend more on the machine
than on Mailroom. The mails go through the same pipeline with Mailroom's sender and with Powertools'.
"""

import io
import json
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count as counting
from itertools import islice
from pathlib import Path
from typing import Any

import aws_lambda_powertools

from lab import REPOSITORY, size
from lab.bench.functions import create_table, item
from lab.harness.function_code import bundle_of
from mailroom.clock import epoch
from mailroom_local.aws import LocalSession, patient
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import MAILBOX, State, Workspace
from mailroom_stacks.paths import DOT_LOCAL

Announce = Callable[[str], None]
WORKSPACE = Workspace(DOT_LOCAL / "measured")
LONGEST = 300.0
"""Seconds after which a mail that is not accepted makes the run fail."""
WARM_UP = size(20, 3)
LONE = size(200, 3)
TABLE = "bench-idempotency"
FUNCTION = "mailroom-local-send-mail"
HANDLERS = {
    "mailroom": "send_mail.handler",
    "powertools": "lab.bench.powertools_sender.handler",
}
BASELINES = ("adapter", "powertools_sender")
_numbers = counting()
"""Numbers of mails, so that each id is used only once in a stage."""


@contextmanager
def running_stage(announce: Announce) -> Iterator[State]:
    """Start a new local stage, and stop it at the end."""
    lifecycle.stop(WORKSPACE)  # an earlier run that was killed may have left a stage
    try:
        yield lifecycle.start(WORKSPACE, announce, console=False)
    finally:
        lifecycle.stop(WORKSPACE)


def lone_mails(announce: Announce) -> dict[str, Any]:
    """Return the time of single mails from the put until SES accepts them, in milliseconds: the median and
    the 99th percentile of LONE mails, with Mailroom's sender and with Powertools'."""
    results = {}
    with running_stage(announce) as running:
        pipeline = Pipeline(running, WORKSPACE.assembly)
        for sender in HANDLERS:
            pipeline.use(sender)
            waits = sorted(pipeline.waits(LONE))
            median, worst = round(waits[LONE // 2]), round(waits[LONE * 99 // 100])
            results[sender] = {"p50": median, "p99": worst}
            announce(f"{LONE} mails one by one, {sender}: {median} ms, p99 {worst}")
    return {"lone_mail_ms": results}


class Pipeline:
    """A running stage whose mail sender can be replaced."""

    def __init__(self, running: State, assembly: Path) -> None:
        self._inbox = running.endpoints.inbox
        self._dynamodb = client("dynamodb", running)
        self._lambda = client("lambda", running)
        configuration = self._lambda.get_function_configuration(FunctionName=FUNCTION)
        self._environment = configuration["Environment"]["Variables"]
        # The table has a stream, like the ledger: with any sender, callbacks and retries need such a stream.
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        if TABLE not in self._dynamodb.list_tables()["TableNames"]:
            create_table(self._dynamodb, TABLE, "id", StreamSpecification=stream)
        self._lambda.update_function_code(FunctionName=FUNCTION, ZipFile=_all_senders(assembly))

    def use(self, sender: str) -> None:
        """Replace the mail sender, and warm it up."""
        self._lambda.update_function_configuration(
            FunctionName=FUNCTION,
            Handler=HANDLERS[sender],
            Environment={"Variables": self._environment | {"IDEMPOTENCY_TABLE": TABLE}},
        )
        for _ in self.waits(WARM_UP):
            pass  # iterating sends the mails

    def waits(self, count: int) -> Iterator[float]:
        """Send `count` mails one after another, and yield the time in milliseconds from each put to the
        acceptance."""
        for number in islice(_numbers, count):
            _request("DELETE", self._inbox)
            started = time.time()
            sent = {name: {"S": value} for name, value in item(number).items()}
            self._dynamodb.put_item(TableName=MAILBOX, Item=sent)
            _await(lambda: int(json.loads(_request("GET", f"{self._inbox}/count"))["count"]) >= 1, "mail")
            (accepted,) = json.loads(_request("GET", self._inbox))
            yield (epoch(accepted["received_at"]) - started) * 1000


def _all_senders(assembly: Path) -> bytes:
    """Return the deployed bundle of send_mail as a zip file, with the handlers of the baselines added."""
    bundle = bundle_of(assembly, "send_mail.py").source
    # All of Powertools is added, because the bundle has only the modules that Mailroom's sender imports.
    powertools = Path(aws_lambda_powertools.__file__).parent
    files = {path.relative_to(powertools.parent): path for path in powertools.rglob("*.py")}
    files |= {path.relative_to(bundle): path for path in bundle.rglob("*") if path.is_file()}
    for name in BASELINES:
        files[Path("lab", "bench", f"{name}.py")] = REPOSITORY / "lab" / "bench" / f"{name}.py"
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        for place, path in files.items():
            archive.write(path, place)
    return zipped.getvalue()


def client(service: Any, running: State) -> Any:
    """Return a client of an AWS service of the stage."""
    return LocalSession().client(service, endpoint_url=running.endpoints.aws, config=patient())


def _await(condition: Callable[[], bool], subject: str) -> None:
    deadline = time.monotonic() + LONGEST
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the simulator did not accept the {subject} within {LONGEST:.0f} s")
        time.sleep(0.1)


def _request(method: str, url: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as reply:
        return bytes(reply.read())
