"""Mails a second on the emulator, from the first put to the last mail accepted.

The same pipeline runs with our sender and with the Powertools one in its place, in turn and several times:
the machine's speed drifts, so the ratio is taken pair by pair. Producer, emulator, pump, functions and
provider share the machine; the absolute figures are the machine's more than ours.
"""

import io
import json
import statistics
import time
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench import REPOSITORY, bundles
from bench.events import item
from local.aws import LocalSession, patient
from local.stage import lifecycle
from local.stage.workspace import DOT_LOCAL, MAILBOX, State, Workspace

PAIRS = 3
WARM_UP = 200
LONGEST = 300.0
TABLE = "bench-idempotency"
FUNCTION = "mailroom-local-send-mail"
HANDLERS = {"mailroom": "send_mail.handler", "powertools": "powertools_sender.handler"}
PUT_BATCH = 25
"""BatchWriteItem's own bound."""


def measure(announce: Callable[[str], None]) -> dict[str, Any]:
    """Rates of 1,000 and 10,000 mails, the baseline's of 1,000, and the median ratio of the pairs."""
    workspace = Workspace(DOT_LOCAL / "bench")
    lifecycle.stop(workspace)
    try:
        running = lifecycle.start(workspace, announce)
        # The providers' events have a figure of their own; here they would take the senders' cores.
        _post(f"{running.endpoints.providers}/events/pause")
        pipeline = Pipeline(running, workspace.assembly)
        rates: dict[str, list[float]] = {sender: [] for sender in HANDLERS}
        for pair in range(PAIRS):
            for sender, seen in rates.items():
                pipeline.use(sender)
                seen.append(pipeline.rate(1000))
                announce(f"1,000 mails, {sender}, run {pair + 1} of {PAIRS}: {seen[-1]:.0f} a second")
        pipeline.use("mailroom")
        long = pipeline.rate(10_000)
        announce(f"10,000 mails, mailroom: {long:.0f} a second")
    finally:
        lifecycle.stop(workspace)
    ratios = [ours / theirs for ours, theirs in zip(*rates.values(), strict=True)]
    return {
        "rate_1000": round(statistics.median(rates["mailroom"]), 1),
        "rate_1000_powertools": round(statistics.median(rates["powertools"]), 1),
        "rate_1000_runs": {sender: [round(each, 1) for each in seen] for sender, seen in rates.items()},
        "rate_ratio_powertools": round(statistics.median(ratios), 2),
        "rate_10000": round(long, 1),
        "seconds_10000": round(10_000 / long, 1),
        "rate_duplicates": pipeline.duplicates,
        "rate_lost": pipeline.lost,
    }


class Pipeline:
    """A running stage whose mail sender can be exchanged."""

    def __init__(self, running: State, assembly: Path) -> None:
        self._inbox = running.endpoints.inbox
        session, config = LocalSession(), patient()
        self._dynamodb = session.client("dynamodb", endpoint_url=running.endpoints.aws, config=config)
        self._lambda = session.client("lambda", endpoint_url=running.endpoints.aws, config=config)
        self._environment = self._configuration()["Environment"]["Variables"]
        self._put = 0
        self.duplicates = 0
        self.lost = 0
        self._dynamodb.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            # As the ledger has one: callbacks and retries hang on it, whoever writes the table.
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        self._lambda.update_function_code(FunctionName=FUNCTION, ZipFile=_both_senders(assembly))

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
        self._request("DELETE", self._inbox)
        numbers = range(self._put, self._put + count)
        self._put += count
        started = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            batches = [numbers[at : at + PUT_BATCH] for at in range(0, count, PUT_BATCH)]
            for _ in pool.map(self._put_batch, batches):
                pass  # raises what a put raised
        self._await(count, started + LONGEST)
        seconds = time.monotonic() - started
        sends = Counter(mail["to"] for mail in json.loads(self._request("GET", self._inbox)))
        self.duplicates += sum(times - 1 for times in sends.values())
        self.lost += count - len(sends)
        return count / seconds

    def _put_batch(self, numbers: range) -> None:
        requests: Any = [
            {"PutRequest": {"Item": {name: {"S": value} for name, value in item(number).items()}}}
            for number in numbers
        ]
        reply = self._dynamodb.batch_write_item(RequestItems={MAILBOX: requests})
        if reply["UnprocessedItems"]:
            raise RuntimeError("the emulator left items unprocessed")

    def _await(self, count: int, deadline: float) -> None:
        while json.loads(self._request("GET", f"{self._inbox}/count"))["count"] < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{count} mails were not sent in {LONGEST} s")
            time.sleep(0.1)

    def _configuration(self) -> Any:
        return self._lambda.get_function_configuration(FunctionName=FUNCTION)

    @staticmethod
    def _request(method: str, url: str) -> bytes:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as reply:
            return bytes(reply.read())


def _both_senders(assembly: Path) -> bytes:
    """The deployed bundle of send_mail, with the baseline's handler beside ours, zipped."""
    bundle = bundles.found(assembly)["send_mail"]
    files = {path.relative_to(bundle): path for path in bundle.rglob("*") if path.is_file()}
    files[Path("powertools_sender.py")] = REPOSITORY / "bench" / "powertools_sender.py"
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        for name, path in files.items():
            archive.write(path, name)
    return zipped.getvalue()


def _post(url: str) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10):
        pass
