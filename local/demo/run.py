"""`make demo`: start a stage, send, wait, judge, and stop it again whatever happens."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from local import stage
from local.demo import cast, report
from local.demo.cast import Message
from local.demo.postbox import Postbox
from local.demo.verdict import Verdict, judge
from local.demo.watch import Unsettled, Watch
from local.state import State
from local.workspace import DEMO, DOT_LOCAL

RESULT = DOT_LOCAL / "demo.json"
SETTLE_SECONDS = 90.0
QUIET_SECONDS = 60.0


def run(console: Console) -> int:
    """The exit code: 0 only if all came out as it should."""
    stage.stop(DEMO)  # what an earlier demo left, if it was killed
    RESULT.unlink(missing_ok=True)
    try:
        running = stage.start(DEMO, lambda line: console.print(f"- {line}"))
        verdict = _send_and_judge(console, running)
    finally:
        stage.stop(DEMO)
    RESULT.write_text(json.dumps(verdict.as_json(), indent=2) + "\n")
    if verdict.failures:
        console.print(f"Logs: {DEMO.folder}/*.log")
    return 1 if verdict.failures else 0


def _send_and_judge(console: Console, running: State) -> Verdict:
    messages = [*cast.good(), *cast.awkward()]
    postbox, watch = Postbox(running.endpoints.aws), Watch(running.endpoints)
    troubles: list[str] = []
    started = time.monotonic()
    with _progress(console) as bars:
        put = bars.add_task("put into the mailbox", total=len(messages))
        ended = bars.add_task("sent, or rejected", total=len(messages))
        new = postbox.put_all(messages, lambda: bars.advance(put))
        with _noting(troubles):
            watch.until_completed(len(messages), SETTLE_SECONDS, lambda n: bars.update(ended, completed=n))
    seconds = time.monotonic() - started
    duplicates = len(messages) - new
    if not troubles:
        console.print("- putting some of them again: nothing more may be sent")
        duplicates += _repeat(postbox, messages)
        with _noting(troubles):
            watch.until_quiet(QUIET_SECONDS)
    inbox = watch.inbox()
    verdict = judge(messages, inbox, watch.ledger(), duplicates, seconds, troubles + _left_over(watch))
    report.show(console, verdict, inbox[0] if inbox else None)
    return verdict


def _repeat(postbox: Postbox, messages: list[Message]) -> int:
    """Three ways to ask for the same message again; how many repetitions were asked for and absorbed."""
    twice, changed, reinserted = (message.item for message in messages[:3])
    refused = not postbox.put_new(twice)  # the mailbox itself refuses
    postbox.put_again({**changed, "last_name": "Renamed"})  # a MODIFY, which the mapping filters out
    postbox.delete(reinserted)
    postbox.put_again(reinserted)  # a new INSERT, which the ledger refuses
    return refused + 2


def _left_over(watch: Watch) -> list[str]:
    dead = {name: depth for name, depth in watch.depths(dead=True).items() if depth}
    troubles = [f"{depth} dead letters in {name}." for name, depth in dead.items()]
    if given_up := watch.given_up():
        troubles.append(f"The stream gave up on records: {given_up} objects in the bucket for them.")
    return troubles


@contextmanager
def _noting(troubles: list[str]) -> Iterator[None]:
    """A pipeline that does not settle is a failed expectation; the figures are printed all the same."""
    try:
        yield
    except Unsettled as trouble:
        troubles.append(str(trouble))


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("- {task.description:<22}"), BarColumn(), MofNCompleteColumn(), console=console
    )
