"""`make chaos`: put messages while everything around them breaks, and judge at the simulators what became of
each. Writes bench/chaos.json and draws docs/pictures. Exits 1 if a message was lost or sent twice."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Event

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import REPOSITORY, TOOLS
from chaos.faults import Chaos, plan
from chaos.judge import Observation, judge
from chaos.load import Load, draw, put_steadily
from chaos.report import Report
from local.aws import STAGE, LocalSession, patient
from local.demo.checks.callbacks import read
from local.demo.client import Item, Key, StageClient
from local.demo.scenarios.plan import DemoFacts
from local.demo.waiter import NotSettled, Waiter
from local.processes import StartError
from local.stage import lifecycle
from local.stage.deploy import DeployError
from local.stage.workspace import DOT_LOCAL, State, Workspace
from ops.terminal import Terminal

WORKSPACE = Workspace(DOT_LOCAL / "chaos")
SEEN = WORKSPACE.folder / "seen.json"
"""All that was judged, for whoever wonders about a message; the logs of the run lie beside it."""
SEED, MESSAGES, KILLS, RATE = 1, 4000, 100, 14.0
"""Ten minutes on two cores."""
END_SECONDS = 900.0
"""After so many seconds in which no message ended, no other is waited for. What was on a killed process's
hands comes back after its queue's visibility time-out."""
LOOK_SECONDS = 1.0
SENDERS = ("mail", "mail-bulk", "sms", "push", "fax", "webhook")
console = Terminal(highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help=f"of load and faults; default {SEED}")
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"default {MESSAGES:,}")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"of functions' processes; default {KILLS}")
    parser.add_argument("--rate", type=float, default=RATE, help=f"messages put a second; default {RATE:g}")
    options = parser.parse_args()
    if not TOOLS.exists():
        sys.exit("What draws the picture is not installed: run `make chaos`, or `make .local/bench/.ready`.")
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):  # a profile of the user's must not be needed here
        os.environ.pop(name, None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` runs, as on Ctrl-C
    lifecycle.stop(WORKSPACE)  # what an earlier run left, if it was killed
    try:
        running = lifecycle.start(WORKSPACE, lambda line: console.print(f"- {line}"))
        run = Run(running, options.seed, options.messages, options.kills, options.rate)
        report = run.report()
    except (StartError, DeployError) as trouble:
        sys.exit(str(trouble))
    finally:
        lifecycle.stop(WORKSPACE)
    report.write()
    subprocess.run([TOOLS / "python", "-m", "chaos.plot"], cwd=REPOSITORY, check=True)
    report.show(console)
    console.print(f"Each message and its ledger item: {SEEN.relative_to(REPOSITORY)}; logs: beside it")
    sys.exit(1 if report.judgement.wrong else 0)


class Run:
    """One run on a stage that has just started."""

    def __init__(self, running: State, seed: int, messages: int, kills: int, rate: float) -> None:
        self._stage = StageClient(running)
        self._facts = DemoFacts.of(self._stage)
        self._seed, self._rate = seed, rate
        self._load: Load = draw(seed, messages, running.endpoints.providers)
        self._put_at: dict[Key, float] = {}
        faults = plan(seed, messages, kills)
        self._chaos = Chaos(self._stage, WORKSPACE, faults, lambda: len(self._put_at))
        self._troubles: list[str] = []

    def report(self) -> Report:
        """Put everything while the faults happen, wait until all has come to rest, and judge."""
        began = time.time()
        columns = TextColumn("- {task.description:<8}"), BarColumn(), MofNCompleteColumn()
        with Progress(*columns, TimeElapsedColumn(), console=console) as bars:
            self._send(bars)
        ended = time.time()
        console.print("- judging")
        judgement = judge(self._load, self._observed(), self._facts.max_attempts)
        judgement.wrong.extend(self._troubles)
        put_at, had = list(self._put_at.values()), self._stage.troubles()
        return Report(judgement, self._seed, self._rate, began, ended, put_at, self._chaos.done, had)

    def _send(self, bars: Progress) -> None:
        keys, ended = self._load.keys, Event()
        names = {"put": len(keys), "ended": len(keys), "faults": self._chaos.planned}
        tasks = {name: bars.add_task(name, total=total) for name, total in names.items()}

        def put(item: Item) -> None:
            if ended.is_set():
                raise InterruptedError
            self._put_at[item["id"], item["event_type"]] = time.time()
            self._stage.put(item)

        def show(count: int) -> None:
            for each in working:
                if each.done():
                    each.result()  # raises what went wrong
            shown = {"put": len(self._put_at), "ended": count, "faults": len(self._chaos.done)}
            for name, task in tasks.items():
                bars.update(task, completed=shown[name])

        waiter = Waiter(self._stage, sleep=lambda _: time.sleep(LOOK_SECONDS))
        with ThreadPoolExecutor(2) as threads:
            working = [
                threads.submit(put_steadily, self._load.items, self._rate, put),
                threads.submit(self._chaos.run, ended),
            ]
            try:
                waiter.until_ended(keys, END_SECONDS, show)
                waiter.until(self._reports_to_come, END_SECONDS)
                waiter.until_quiet(END_SECONDS)
            except NotSettled as trouble:
                self._troubles.append(str(trouble))
            finally:
                ended.set()

    def _reports_to_come(self) -> str:
        waiting = {name: count for name, count in self._stage.events()["waiting"].items() if count}
        return f"reports are still to come: {waiting}" if waiting else ""

    def _observed(self) -> Observation:
        stage, requests = self._stage, self._stage.requests()
        at = [datetime.fromisoformat(each["received_at"]).timestamp() for each in requests]
        seen = Observation(
            put_at=self._put_at,
            inbox=stage.accepted(),
            fax_log=stage.faxes(),
            webhooks=list(zip(read(requests, self._facts.webhook_key), at, strict=True)),
            ledger=stage.ledger_items(),
            announced=announced(stage),
            dead=dead(stage),
        )
        rows = list(seen.ledger.values())
        kept = {"inbox": seen.inbox, "faxes": seen.fax_log, "requests": requests, "ledger": rows}
        said = [[*key, times] for key, times in seen.announced.items()]
        SEEN.write_text(json.dumps({**kept, "announced": said, "dead": seen.dead}, default=str))
        return seen


def announced(stage: StageClient) -> dict[Key, list[float]]:
    """When each message was announced to be sent again in doubt (epoch seconds), from the senders' logs."""
    logs = LocalSession().client("logs", endpoint_url=stage.running.endpoints.aws, config=patient())
    said: dict[Key, list[float]] = defaultdict(list)
    for sender in SENDERS:
        group = f"/aws/lambda/mailroom-{STAGE}-send-{sender}"
        for event in logs.filter_log_events(logGroupName=group, filterPattern='"resending"')["events"]:
            for text in event["message"].splitlines():
                if '"resending' in text:
                    line = json.loads(text[text.index("{") :])
                    moment = datetime.strptime(line["timestamp"], "%Y-%m-%d %H:%M:%S,%f%z")
                    said[line["id"], line["event_type"]].append(moment.timestamp())
    return dict(said)


def dead(stage: StageClient) -> str:
    """The text of all dead letters, and of all that the streams gave up on."""
    texts = [
        each["Body"]
        for name, depth in stage.depths(dead=True).items()
        for _ in range(depth)
        for each in stage.sqs.receive_message(
            QueueUrl=stage.sqs.get_queue_url(QueueName=name)["QueueUrl"],
            MaxNumberOfMessages=10,
            VisibilityTimeout=600,
        ).get("Messages", [])
    ]
    bucket = stage.output("UnprocessedBucketName")
    objects = stage.s3.list_objects_v2(Bucket=bucket).get("Contents", [])
    bodies = [stage.s3.get_object(Bucket=bucket, Key=each["Key"])["Body"].read() for each in objects]
    return "\n".join([*texts, *(body.decode() for body in bodies)])


if __name__ == "__main__":
    main()
