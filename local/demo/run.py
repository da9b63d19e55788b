"""`make demo`: start a stage, send, wait, judge, and stop it again whatever happens."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console

from local.demo import campaign, devices, feedback, mails, report
from local.demo.bars import Bars
from local.demo.campaign import CampaignRun
from local.demo.checks.accepted import by_message, of_mail
from local.demo.checks.callback_verdict import judge_callbacks
from local.demo.checks.callbacks import different, read
from local.demo.checks.campaign import judge_campaign, ours
from local.demo.checks.faxes import judge_faxes
from local.demo.checks.feedback import judge_feedback
from local.demo.checks.messages import judge_channel
from local.demo.checks.standing import standing
from local.demo.checks.verdict import judge
from local.demo.facts import Facts
from local.demo.faxes import FaxRun
from local.demo.mails import Sent
from local.demo.postbox import Postbox
from local.demo.result import Result
from local.demo.scenarios import pushes as push_cast
from local.demo.scenarios import webhook_cast
from local.demo.scenarios.plan import Plan
from local.demo.waiter import Patience, Unsettled
from local.demo.watch import Watch
from local.stage import lifecycle
from local.stage.workspace import DEMO, DOT_LOCAL, State

RESULT = DOT_LOCAL / "demo.json"
QUIET_SECONDS = FINAL_SECONDS = SUPPRESSED_SECONDS = 60.0


def run(console: Console) -> int:
    """The exit code: 0 only if all came out as it should."""
    lifecycle.stop(DEMO)  # what an earlier demo left, if it was killed
    RESULT.unlink(missing_ok=True)
    try:
        running = lifecycle.start(DEMO, lambda line: console.print(f"- {line}"), campaign.PEOPLE + 1)
        result = _send_and_judge(console, running)
    finally:
        lifecycle.stop(DEMO)
    RESULT.write_text(json.dumps(result.as_json(), indent=2) + "\n")
    if result.failures:
        console.print(f"Logs: {DEMO.folder}/*.log")
    return 1 if result.failures else 0


def _send_and_judge(console: Console, running: State) -> Result:
    facts, endpoints = Facts.of(running), running.endpoints
    registered = devices.register(endpoints, facts.applications, push_cast.registered())
    plan = Plan.of(facts, registered, endpoints.providers)
    with Bars(console) as bars:
        run = _Run(running, plan, bars)
        run.mails()
        run.others()
        run.settle()
        callbacks = read(run.watch.received(), facts.receivers_key)
        bars.all_received(len(different(callbacks)) - len(plan.webhooks))
        told = run.watch.events(), run.watch.callbacks(), run.watch.suppressed()
        run.campaign()
    watch, ledger, inbox = run.watch, run.watch.ledger(), run.watch.inbox()
    others = {key: row for key, row in ledger.items() if not ours(key[0])}
    mailed = [each for each in inbox if each["channel"] == "mail"]
    sent, accepted = [each for each in mailed if not ours(of_mail(each))], by_message(inbox)
    known = {message.item["id"] for message in [*plan.sms, *plan.pushes]}
    result = Result(
        judge([*plan.mails, plan.again["mail"]], sent, others, run.sent.duplicates, run.sent.seconds),
        judge_channel([*plan.sms, plan.again["sms"]], accepted, others),
        judge_channel([*plan.pushes, plan.again["push"]], accepted, others),
        judge_faxes(plan.faxes, watch.faxes(), others, facts.max_attempts, run.fax_seconds),
        judge_callbacks(callbacks, plan.told, webhook_cast.PAYLOADS),
        judge_feedback(*told, plan.marked),
        judge_campaign(run.weekly.told(), mailed, ledger, run.weekly.run),
        standing(others),
        [
            *run.troubles,
            *_left_over(watch),
            *(f"Nobody asked for {id_}, which a provider got." for id_ in accepted.keys() - known),
        ],
    )
    report.show(console, result, facts, sent[0] if sent else None)
    return result


class _Run:
    """The sending, in its order; what does not come to rest is noted, and the figures are printed all the
    same."""

    def __init__(self, running: State, plan: Plan, bars: Bars) -> None:
        self._running, self._plan, self._bars = running, plan, bars
        self._postbox, self.watch = Postbox(running.endpoints.aws), Watch(running.endpoints)
        self._patience = Patience(self.watch)
        self._finals = plan.finals()
        self.troubles: list[str] = []
        self.sent, self.fax_seconds = Sent(0, 0.0), 0.0
        self.weekly = CampaignRun(running, self._postbox, self.watch)
        bars.plan(
            mails=len(plan.mails),
            faxes=len(plan.faxes),
            callbacks=sum(map(len, plan.told.values())),
            finals=len(self._finals),
            campaign=len(self.weekly.expected),
        )

    def mails(self) -> None:
        """First and alone, for they are timed: each function that starts takes a core for a second. What SES
        tells of them is held back meanwhile, but for what it tells before it answers."""
        plan, bars = self._plan, self._bars
        feedback.hold_back(self._running.endpoints)
        with self._noting():
            self.sent = mails.send(plan.mails, self._postbox, self._patience, bars.mail_put, bars.mails_ended)
        feedback.let_go(self._running.endpoints)
        repeated = mails.repeat(self._postbox, plan.mails)  # nothing more may be sent for it
        self.sent = Sent(self.sent.duplicates + repeated, self.sent.seconds)

    def others(self) -> None:
        """SMS, pushes, faxes and webhooks at once; then second messages to those who are suppressed."""
        plan, bars = self._plan, self._bars
        self._put([message.item for message in [*plan.sms, *plan.pushes]])
        faxes = FaxRun(self._running, self._postbox)
        faxes.put(plan.faxes, bars.fax_put)
        faxes.put_webhooks(plan.webhooks)
        with self._noting():
            self._patience.until_suppressed(plan.suppressing(), SUPPRESSED_SECONDS)
        self._put([message.item for message in plan.again.values()])
        with self._noting():
            ended = len(plan.faxes) + len(plan.webhooks)
            self.fax_seconds = faxes.wait(
                ended, self._patience, lambda n: bars.faxes_ended(n, len(self.watch.received()))
            )

    def settle(self) -> None:
        """Until each message stands where it must, and no queue holds anything."""
        with self._noting():
            self._patience.until_final(self._finals, FINAL_SECONDS, self._bars.final)
        with self._noting():
            self._patience.until_quiet(QUIET_SECONDS)

    def campaign(self) -> None:
        """A run that loses all that was under way; then the same once more, and one person less."""
        with self._noting():
            self.weekly.begin_and_kill(self._bars.composed)
            self.weekly.opt_out()
            self.weekly.start_again(self._bars.campaign_ended)
            self._patience.until_quiet(QUIET_SECONDS)

    def _put(self, items: Sequence[dict[str, object]]) -> None:
        self._postbox.put_all(items, lambda: None)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except Unsettled as trouble:
            self.troubles.append(str(trouble))


def _left_over(watch: Watch) -> list[str]:
    dead = {name: depth for name, depth in watch.depths(dead=True).items() if depth}
    troubles = [f"{depth} dead letters in {name}." for name, depth in dead.items()]
    if given_up := watch.given_up():
        troubles.append(f"A stream gave up on records: {given_up} objects in the bucket for them.")
    return troubles
