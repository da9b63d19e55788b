"""Mails per second on the emulator.

Producer, emulator, pump, functions and providers share the machine, so the figures depend more on the machine
than on Mailroom. The mails go through the same pipeline with Mailroom's sender and with those of the
baselines, alternately and several times. The machine's speed varies, so the ratios are computed for each
round.
"""

import io
import json
import statistics
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count as counting
from itertools import islice
from pathlib import Path
from typing import Any

import aws_lambda_powertools

from lab import REPOSITORY, SHORT, size
from lab.bench.functions import create_table, item
from lab.harness.expected import Expected
from lab.harness.function_code import bundle_of
from lab.harness.judge import Observation, judge
from mailroom.clock import epoch
from mailroom_local.aws import LocalSession, patient
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import MAILBOX, State, Workspace, load_state
from mailroom_stacks.paths import DOT_LOCAL

Announce = Callable[[str], None]
WORKSPACE = Workspace(DOT_LOCAL / "measured")
RUNS = size(5, 1)
LONGEST = 300.0
"""Maximum duration of one run, in seconds."""
WARM_UP = size(200, 10)
LONE = size(200, 3)
MAILS, MANY = size(1000, 50), size(10_000, 100)
TABLE = "bench-idempotency"
FUNCTION = "mailroom-local-send-mail"
HANDLERS = {
    "mailroom": "send_mail.handler",
    "powertools": "lab.bench.powertools_sender.handler",
    "pattern": "lab.bench.handwritten_sender.handler",
}
BASELINES = ("adapter", "handwritten_sender", "powertools_sender")
PUT_BATCH = 25
"""Maximum number of items in a BatchWriteItem request."""
_numbers = counting()
"""Numbers of mails, so that each id is used only once in a stage."""


@contextmanager
def running_stage(announce: Announce, *, console: bool = False) -> Iterator[State]:
    """Start a new local stage. In the short form, all sections share one stage, which the bench stops at its
    end."""
    if SHORT and (shared := load_state(WORKSPACE)):
        yield shared
        return
    lifecycle.stop(WORKSPACE)
    try:
        yield lifecycle.start(WORKSPACE, announce, console=console or SHORT)
    finally:
        if not SHORT:
            lifecycle.stop(WORKSPACE)


def mails(announce: Announce) -> dict[str, Any]:
    """Return the rates of 1,000 and 10,000 mails, the rates of 1,000 mails by the baselines, and the median
    ratios to them."""
    with running_stage(announce) as running:
        # The providers' events are paused: they are measured separately, and would use the senders' CPU time
        # here.
        _request("POST", f"{running.endpoints.providers}/events/pause")
        pipeline = Pipeline(running, WORKSPACE.assembly)
        rates: dict[str, list[float]] = {sender: [] for sender in HANDLERS}
        for turn in range(RUNS):
            for sender, measured in rates.items():
                pipeline.use(sender)
                measured.append(pipeline.rate(MAILS))
                announce(f"{MAILS:,} mails, {sender}, run {turn + 1} of {RUNS}: {measured[-1]:.0f} a second")
        pipeline.use("mailroom")
        long = pipeline.rate(MANY)
        announce(f"{MANY:,} mails, mailroom: {long:.0f} a second")
    medians = {sender: statistics.median(measured) for sender, measured in rates.items()}
    ratios = {
        sender: statistics.median(
            ours / theirs for ours, theirs in zip(rates["mailroom"], measured, strict=True)
        )
        for sender, measured in rates.items()
    }
    return {
        "rate_1000": round(medians["mailroom"], 1),
        "rate_1000_powertools": round(medians["powertools"], 1),
        "rate_1000_pattern": round(medians["pattern"], 1),
        "rate_1000_runs": {
            sender: [round(rate, 1) for rate in measured] for sender, measured in rates.items()
        },
        "rate_ratio_powertools": round(ratios["powertools"], 2),
        "rate_ratio_pattern": round(ratios["pattern"], 2),
        "rate_10000": round(long, 1),
        "seconds_10000": round(MANY / long, 1),
        "rate_duplicates": pipeline.duplicates,
        "rate_lost": pipeline.lost,
    }


def lone_mails(announce: Announce) -> dict[str, Any]:
    """Return the time of single mails from the put until SES accepts them, in milliseconds: the median and
    the 99th percentile of LONE mails, with Mailroom's sender and with Powertools'."""
    results = {}
    with running_stage(announce) as running:
        pipeline = Pipeline(running, WORKSPACE.assembly)
        for sender in ("mailroom", "powertools"):
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
        self.duplicates = 0
        self.lost = 0
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
        self.rate(WARM_UP)

    def rate(self, count: int) -> float:
        """Send `count` mails, and return the rate in mails per second. Lost mails and mails sent twice are
        added to the counts."""
        _request("DELETE", self._inbox)
        numbers = list(islice(_numbers, count))
        started = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            batches = [numbers[start : start + PUT_BATCH] for start in range(0, count, PUT_BATCH)]
            for _ in pool.map(self._put_batch, batches):
                pass  # iterating raises the error of a failed put
        _await(lambda: int(json.loads(_request("GET", f"{self._inbox}/count"))["count"]) >= count, "mails")
        seconds = time.monotonic() - started
        observation = Observation(
            inbox=json.loads(_request("GET", self._inbox)), faxes=[], requests=[], ledger={}
        )
        load = [Expected(item(number)) for number in numbers]
        figures = judge(load, observation, strict=False).figures(message.key for message in load)
        self.duplicates += figures.sent_twice
        self.lost += figures.lost
        return count / seconds

    def waits(self, count: int) -> Iterator[float]:
        """Send `count` mails one after another, and yield the time in milliseconds from each put to the
        acceptance."""
        for number in islice(_numbers, count):
            _request("DELETE", self._inbox)
            started = time.time()
            self._put_batch([number])
            _await(lambda: int(json.loads(_request("GET", f"{self._inbox}/count"))["count"]) >= 1, "mail")
            (accepted,) = json.loads(_request("GET", self._inbox))
            yield (epoch(accepted["received_at"]) - started) * 1000

    def _put_batch(self, numbers: Sequence[int]) -> None:
        requests: Any = [
            {"PutRequest": {"Item": {name: {"S": value} for name, value in item(number).items()}}}
            for number in numbers
        ]
        reply = self._dynamodb.batch_write_item(RequestItems={MAILBOX: requests})
        if reply["UnprocessedItems"]:
            raise RuntimeError("the emulator left items unprocessed")


def _all_senders(assembly: Path) -> bytes:
    """Return the deployed bundle of send_mail as a zip file, with the handlers of the baselines added."""
    bundle = bundle_of(assembly, "send_mail.py").source
    # The whole package Powertools is added, because the bundle has only the modules that Mailroom's sender
    # imports.
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
