"""Rates on the emulator: mails, webhooks, a campaign's recipients, and rows that are imported.

Producer, emulator, pump, functions, database and providers share the machine: the figures are the machine's
more than ours. Mails go through the same pipeline with our sender, and with the baselines' in its place, in
turn and several times. The machine's speed drifts, so a ratio is taken round by round.
"""

import io
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aws_lambda_powertools

from bench import REPOSITORY
from bench.counted import CAMPAIGN, PEOPLE
from bench.functions import create_table, item
from bench.memory import most_megabytes, most_megabytes_until_its_end
from local.aws import STAGE, LocalSession, patient
from local.harness.expected import Expected
from local.harness.judge import Observation, judge
from local.stage import lifecycle
from local.stage.deploy import bundle_of
from local.stage.workspace import DOT_LOCAL, MAILBOX, State, Workspace
from mailroom.campaigns.runs import Runs
from ops.campaigns.deployed import RunStart

Announce = Callable[[str], None]
WORKSPACE = Workspace(DOT_LOCAL / "measured")
RUNS = 5
LONGEST = 300.0
"""Seconds that one run may take."""
WARM_UP = 200
TABLE = "bench-idempotency"
FUNCTION = "mailroom-local-send-mail"
HANDLERS = {
    "mailroom": "send_mail.handler",
    "powertools": "bench.powertools_sender.handler",
    "pattern": "bench.handwritten_sender.handler",
}
BASELINES = ("adapter", "handwritten_sender", "powertools_sender")
PUT_BATCH = 25
"""BatchWriteItem's own bound."""
WEBHOOKS = 500
ROWS, FEW = 100_000, 1_000
IMPORT = ("--channel", "mail", "--id-column", "user", "--set", "subject=Hello", "--set", "text=Hello")


@contextmanager
def running_stage(
    announce: Announce, people: int = lifecycle.PEOPLE, *, console: bool = False
) -> Iterator[State]:
    """The local stage, started anew; `people` of the example campaign are in its database."""
    lifecycle.stop(WORKSPACE)
    try:
        yield lifecycle.start(WORKSPACE, announce, people, console=console)
    finally:
        lifecycle.stop(WORKSPACE)


def mails(announce: Announce) -> dict[str, Any]:
    """Rates of 1,000 and 10,000 mails, the baselines' of 1,000, and the median ratio to each of them."""
    with running_stage(announce) as running:
        # The providers' events have a figure of their own; here they would take the senders' cores.
        _request("POST", f"{running.endpoints.providers}/events/pause")
        pipeline = Pipeline(running, WORKSPACE.assembly)
        rates: dict[str, list[float]] = {sender: [] for sender in HANDLERS}
        for turn in range(RUNS):
            for sender, seen in rates.items():
                pipeline.use(sender)
                seen.append(pipeline.rate(1000))
                announce(f"1,000 mails, {sender}, run {turn + 1} of {RUNS}: {seen[-1]:.0f} a second")
        pipeline.use("mailroom")
        long = pipeline.rate(10_000)
        announce(f"10,000 mails, mailroom: {long:.0f} a second")
    medians = {sender: statistics.median(seen) for sender, seen in rates.items()}
    ratios = {
        sender: statistics.median(ours / theirs for ours, theirs in zip(rates["mailroom"], seen, strict=True))
        for sender, seen in rates.items()
    }
    return {
        "rate_1000": round(medians["mailroom"], 1),
        "rate_1000_powertools": round(medians["powertools"], 1),
        "rate_1000_pattern": round(medians["pattern"], 1),
        "rate_1000_runs": {sender: [round(each, 1) for each in seen] for sender, seen in rates.items()},
        "rate_ratio_powertools": round(ratios["powertools"], 2),
        "rate_ratio_pattern": round(ratios["pattern"], 2),
        "rate_10000": round(long, 1),
        "seconds_10000": round(10_000 / long, 1),
        "rate_duplicates": pipeline.duplicates,
        "rate_lost": pipeline.lost,
    }


class Pipeline:
    """A running stage whose mail sender can be exchanged."""

    def __init__(self, running: State, assembly: Path) -> None:
        self._inbox = running.endpoints.inbox
        self._dynamodb = client("dynamodb", running)
        self._lambda = client("lambda", running)
        configuration = self._lambda.get_function_configuration(FunctionName=FUNCTION)
        self._environment = configuration["Environment"]["Variables"]
        self._put = 0
        self.duplicates = 0
        self.lost = 0
        # As the ledger has one: callbacks and retries hang on it, whoever writes the table.
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        create_table(self._dynamodb, TABLE, "id", StreamSpecification=stream)
        self._lambda.update_function_code(FunctionName=FUNCTION, ZipFile=_all_senders(assembly))

    def use(self, sender: str) -> None:
        """Let this sender read the mail queue, and warm it up."""
        self._lambda.update_function_configuration(
            FunctionName=FUNCTION,
            Handler=HANDLERS[sender],
            Environment={"Variables": self._environment | {"IDEMPOTENCY_TABLE": TABLE}},
        )
        self.rate(WARM_UP)

    def rate(self, count: int) -> float:
        """Mails a second; what was lost or sent twice is added up."""
        _request("DELETE", self._inbox)
        numbers = range(self._put, self._put + count)
        self._put += count
        started = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            batches = [numbers[at : at + PUT_BATCH] for at in range(0, count, PUT_BATCH)]
            for _ in pool.map(self._put_batch, batches):
                pass  # raises what a put raised
        _await(lambda: int(json.loads(_request("GET", f"{self._inbox}/count"))["count"]) >= count, "mails")
        seconds = time.monotonic() - started
        seen = Observation(inbox=json.loads(_request("GET", self._inbox)), faxes=[], requests=[], ledger={})
        load = [Expected(item(number)) for number in numbers]
        found = judge(load, seen, strict=False).figures(each.key for each in load)
        self.duplicates += found.sent_twice
        self.lost += found.lost
        return count / seconds

    def _put_batch(self, numbers: range) -> None:
        requests: Any = [
            {"PutRequest": {"Item": {name: {"S": value} for name, value in item(number).items()}}}
            for number in numbers
        ]
        reply = self._dynamodb.batch_write_item(RequestItems={MAILBOX: requests})
        if reply["UnprocessedItems"]:
            raise RuntimeError("the emulator left items unprocessed")


def _all_senders(assembly: Path) -> bytes:
    """The deployed bundle of send_mail, with the baselines' handlers beside ours, zipped."""
    bundle = bundle_of(assembly, "send_mail.py").source
    # The bundle has only what our sender imports of Powertools.
    powertools = Path(aws_lambda_powertools.__file__).parent
    files = {path.relative_to(powertools.parent): path for path in powertools.rglob("*.py")}
    files |= {path.relative_to(bundle): path for path in bundle.rglob("*") if path.is_file()}
    for name in BASELINES:
        files[Path("bench", f"{name}.py")] = REPOSITORY / "bench" / f"{name}.py"
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        for at, path in files.items():
            archive.write(path, at)
    return zipped.getvalue()


def webhooks(announce: Announce) -> dict[str, Any]:
    """Callbacks delivered a second, from the first one queued to the last one received."""
    with running_stage(announce) as running:
        _webhooks(running, 100)  # warm
        rates = [_webhooks(running, WEBHOOKS) for _ in range(RUNS)]
    announce(f"{WEBHOOKS} webhooks: {statistics.median(rates):.0f} a second")
    return {
        "webhooks_per_second": round(statistics.median(rates), 1),
        "webhooks_per_second_runs": [round(each, 1) for each in rates],
    }


def _webhooks(running: State, count: int) -> float:
    received = running.endpoints.received
    _request("DELETE", received)
    sqs = client("sqs", running)
    target = f"{running.endpoints.providers}/receiver/ok/bench"
    started = time.monotonic()
    for first in range(0, count, 10):
        entries: Any = [
            {"Id": str(at), "MessageBody": _callback(target, first + at), "MessageGroupId": "127.0.0.1"}
            for at in range(10)
        ]
        sqs.send_message_batch(QueueUrl=running.outputs["WebhookQueueUrl"], Entries=entries)
    _await(lambda: len(json.loads(_request("GET", received))) >= count, "webhooks")
    return count / (time.monotonic() - started)


def _callback(url: str, number: int) -> str:
    key = {"id": f"m-{number}", "event_type": "mail"}
    payload = {**key, "status": "sent", "timestamp": 1_800_000_000}
    return json.dumps(
        {**key, "webhook_id": f"msg_{number}", "url": url, "name": "sent.1", "payload": payload}
    )


def campaign(announce: Announce) -> dict[str, Any]:
    """Recipients a second of PostgreSQL, and the functions' memory; nothing is sent meanwhile."""
    with running_stage(announce, PEOPLE) as running:
        running.processes["pump"].stop()
        _campaign(running, "warm-up")
        seen = [_campaign(running, f"run-{n}") for n in range(RUNS)]
        memory = {name: _memory(f"mailroom-local-{name}") for name in ("collect", "compose")}
    rates = {name: [round(PEOPLE / each[name], 1) for each in seen] for name in ("collected", "composed")}
    announce(f"{PEOPLE:,} people of a campaign: {statistics.median(rates['composed']):.0f} a second")
    return {
        "campaign_recipients_per_second": {name: statistics.median(each) for name, each in rates.items()},
        "campaign_recipients_per_second_runs": rates,
        "campaign_memory_mb": memory,
    }


def _campaign(running: State, name: str) -> dict[str, float]:
    """Seconds until everybody is collected, and until everybody is in the mailbox."""
    runs = Runs(client("dynamodb", running), running.outputs["RunsTableName"])
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    started = time.monotonic()
    seconds: dict[str, float] = {}
    body = RunStart(CAMPAIGN, name, now).body()
    client("sqs", running).send_message(QueueUrl=running.outputs["CollectQueueUrl"], MessageBody=body)

    def ended() -> bool:
        run = runs.read(CAMPAIGN, name)
        if run is not None and run.state == "collected":
            seconds.setdefault("collected", time.monotonic() - started)
            if run.recipients != PEOPLE:
                raise RuntimeError(f"{run.recipients} of {PEOPLE} people were collected")
        return run is not None and run.composed >= PEOPLE

    _await(ended, "messages of a campaign")
    return seconds | {"composed": time.monotonic() - started}


def _memory(function: str) -> float:
    """The most that a process of this function ever had, in MB; 0 where the system does not tell."""
    mark = f"AWS_LAMBDA_FUNCTION_NAME={function}".encode()
    most = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                most = max(most, most_megabytes(folder.name))
        except OSError:
            continue
    return round(most, 1)


def imports(announce: Announce) -> dict[str, Any]:
    """Rows a second by `mailroom import`, and the most memory that the command had, in MB: of few rows as
    well, for what it has at any size. Nothing is sent meanwhile."""
    with running_stage(announce) as running:
        running.processes["pump"].stop()
        few, _ = _imported(running, "few", FEW)
        memory, answer = _imported(running, "many", ROWS)
    announce(f"{ROWS:,} rows imported: {answer['lines_per_second']:.0f} a second, {memory} MB")
    return {
        "import_rows_per_second": answer["lines_per_second"],
        "import_memory_mb": {f"{FEW:,} rows": few, f"{ROWS:,} rows": memory},
    }


def _imported(running: State, name: str, rows: int) -> tuple[float, dict[str, Any]]:
    """Import so many rows of a CSV file; the peak of the process's memory in MB, and its answer."""
    file, output = (WORKSPACE.folder / f"{name}.{kind}" for kind in ("csv", "json"))
    with file.open("w") as lines:
        lines.write("user,email,first_name,last_name\n")
        for n in range(rows):
            lines.write(f"{name}-{n},person-{n}@example.com,Person {n},Surname\n")
    command = [sys.executable, "-m", "ops", "import", str(file), *IMPORT, "--stage", STAGE, "--json"]
    environment = os.environ | running.variables() | {"NO_PROXY": "*"}
    with output.open("wb") as out:
        started = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=out)
        memory = round(most_megabytes_until_its_end(started), 1)
    answer: dict[str, Any] = json.loads(output.read_text())
    if (answer["put"], answer["state"]) != (rows, "done"):
        raise RuntimeError(f"{answer['put']} of {rows} rows were put; the figures would be wrong")
    return memory, answer


def client(service: Any, running: State) -> Any:
    """A client of the stage's AWS."""
    return LocalSession().client(service, endpoint_url=running.endpoints.aws, config=patient())


def _await(ended: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONGEST
    while not ended():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the {what} did not come to an end in {LONGEST:.0f} s")
        time.sleep(0.1)


def _request(method: str, url: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as reply:
        return bytes(reply.read())
