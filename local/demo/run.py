"""`make demo`: start a stage, send, wait, judge, and stop it again whatever happens."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from local import stage
from local.demo import cast, fax_cast, mails, report, webhook_cast
from local.demo.bars import Bars
from local.demo.callback_verdict import judge_callbacks
from local.demo.callbacks import different, read
from local.demo.facts import Facts
from local.demo.fax_verdict import judge_faxes
from local.demo.faxes import FaxRun
from local.demo.mails import Sent
from local.demo.postbox import Postbox
from local.demo.result import Result
from local.demo.verdict import judge
from local.demo.watch import Unsettled, Watch
from local.state import State
from local.workspace import DEMO, DOT_LOCAL

RESULT = DOT_LOCAL / "demo.json"
QUIET_SECONDS = 60.0


def run(console: Console) -> int:
    """The exit code: 0 only if all came out as it should."""
    stage.stop(DEMO)  # what an earlier demo left, if it was killed
    RESULT.unlink(missing_ok=True)
    try:
        running = stage.start(DEMO, lambda line: console.print(f"- {line}"))
        result = _send_and_judge(console, running)
    finally:
        stage.stop(DEMO)
    RESULT.write_text(json.dumps(result.as_json(), indent=2) + "\n")
    if result.failures:
        console.print(f"Logs: {DEMO.folder}/*.log")
    return 1 if result.failures else 0


def _send_and_judge(console: Console, running: State) -> Result:
    facts, endpoints = Facts.of(running), running.endpoints
    messages = webhook_cast.curious([*cast.good(), *cast.awkward()], endpoints.providers)
    webhooks = webhook_cast.webhooks(endpoints.providers)
    faxes = fax_cast.faxes(facts.max_attempts)
    expected = webhook_cast.expected(messages, faxes, facts.max_attempts)
    postbox, watch = Postbox(endpoints.aws), Watch(endpoints)
    troubles: list[str] = []
    sent, seconds = Sent(0, 0.0), 0.0
    with Bars(console) as bars:
        bars.plan(mails=len(messages), faxes=len(faxes), callbacks=sum(map(len, expected.values())))
        with _noting(troubles):
            sent = mails.send(messages, postbox, watch, bars.mail_put, bars.mails_ended)
        duplicates = sent.duplicates + mails.repeat(postbox, messages)  # nothing more may be sent for it
        # After the mails, which are timed: each function that starts takes a core for a second.
        fax_run = FaxRun(running, postbox)
        fax_run.put(faxes, bars.fax_put)
        fax_run.put_webhooks(webhooks)
        with _noting(troubles):
            ended = len(faxes) + len(webhooks)
            seconds = fax_run.wait(ended, watch, lambda n: bars.faxes_ended(n, len(watch.received())))
            watch.until_quiet(QUIET_SECONDS)
        callbacks = read(watch.received(), facts.signing_secret)
        bars.all_received(len(different(callbacks)) - len(webhooks))
    ledger, inbox = watch.ledger(), watch.mails()
    result = Result(
        judge(messages, inbox, ledger, duplicates, sent.seconds),
        judge_faxes(faxes, watch.faxes(), ledger, facts.max_attempts, seconds),
        judge_callbacks(callbacks, expected, webhook_cast.PAYLOADS),
        troubles + _left_over(watch),
    )
    report.show(console, result, facts, inbox[0] if inbox else None)
    return result


def _left_over(watch: Watch) -> list[str]:
    dead = {name: depth for name, depth in watch.depths(dead=True).items() if depth}
    troubles = [f"{depth} dead letters in {name}." for name, depth in dead.items()]
    if given_up := watch.given_up():
        troubles.append(f"A stream gave up on records: {given_up} objects in the bucket for them.")
    return troubles


@contextmanager
def _noting(troubles: list[str]) -> Iterator[None]:
    """A pipeline that does not settle is a failed expectation; the figures are printed all the same."""
    try:
        yield
    except Unsettled as trouble:
        troubles.append(str(trouble))
