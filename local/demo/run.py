"""`make demo`: start a stage, send, wait, check, and stop the stage whatever happens."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from local.demo import campaign, report
from local.demo.campaign import CampaignRun
from local.demo.checks.callbacks import check_callbacks, different, read
from local.demo.checks.campaign import check_campaign, is_of_campaign
from local.demo.checks.faxes import check_faxes
from local.demo.checks.feedback import check_feedback
from local.demo.checks.messages import by_message, check_messages, totals, unexpected
from local.demo.client import StageClient
from local.demo.report import Result
from local.demo.scenarios import pushes
from local.demo.scenarios.faxes import PDF
from local.demo.scenarios.plan import PAYLOADS, DemoFacts, DemoPlan
from local.demo.waiter import NotSettled, Waiter
from local.stage import lifecycle
from local.stage.workspace import DEMO, DOT_LOCAL, State
from ops.terminal import Terminal

RESULT = DOT_LOCAL / "demo.json"
MAIL_SECONDS = 90.0
QUIET_SECONDS = FINAL_SECONDS = 60.0
FAX_SECONDS = SUPPRESSED_SECONDS = 180.0


def run(console: Terminal) -> int:
    """The exit code: 0 only if everything came out as it should."""
    lifecycle.stop(DEMO)  # what an earlier demo left, if it was killed
    RESULT.unlink(missing_ok=True)
    try:
        running = lifecycle.start(DEMO, lambda line: console.print(f"- {line}"), campaign.PEOPLE + 1)
        result = _send_and_check(console, running)
    finally:
        lifecycle.stop(DEMO)
    RESULT.write_text(json.dumps(result.as_json(), indent=2) + "\n")
    if result.failures:
        console.print(f"Logs: {DEMO.folder}/*.log")
    return 1 if result.failures else 0


def _send_and_check(console: Terminal, running: State) -> Result:
    stage = StageClient(running)
    facts = DemoFacts.of(stage)
    devices = pushes.register(running.endpoints, facts.applications)
    plan = DemoPlan.of(facts, devices, running.endpoints.providers)
    with Bars(console, plan) as bars:
        sending = _Sending(stage, plan, bars)
        sending.mails()
        sending.all_else()
        callbacks = read(stage.requests(), facts.webhook_key)
        bars.show("callbacks received", len(different(callbacks)) - len(plan.webhooks))
        feedback = check_feedback(
            stage.events(), stage.twilio_callbacks(), stage.suppressed(), plan.suppressed
        )
    ledger, inbox = stage.ledger_items(), stage.accepted()
    mails = [each for each in inbox if each["channel"] == "mail"]
    accepted = {id_: each for id_, each in by_message(inbox).items() if not is_of_campaign(id_)}
    others = {key: row for key, row in ledger.items() if not is_of_campaign(key[0])}
    again = plan.again
    scenarios = {
        "mail": [*plan.mails, again["mail"]],
        "sms": [*plan.sms, again["sms"]],
        "push": [*plan.pushes, again["push"]],
    }
    known = {each.id for of_channel in scenarios.values() for each in of_channel}
    weekly = sending.weekly
    result = Result(
        mails=check_messages(scenarios["mail"], accepted, others),
        duplicates=sending.duplicates,
        mail_seconds=sending.mail_seconds,
        sms=check_messages(scenarios["sms"], accepted, others),
        pushes=check_messages(scenarios["push"], accepted, others),
        faxes=check_faxes(plan.faxes, stage.faxes(), others, facts.max_attempts, sending.fax_seconds),
        callbacks=check_callbacks(callbacks, plan.callbacks, PAYLOADS),
        feedback=feedback,
        campaign=check_campaign(weekly.observation(), mails, ledger, weekly.run),
        channels=totals(others),
        troubles=[*sending.troubles, *_left_over(stage), *unexpected(accepted, known)],
    )
    report.show(console, result, facts, mails[0] if mails else None)
    return result


class Bars(Progress):
    """A bar for each thing that is waited for."""

    def __init__(self, console: Terminal, plan: DemoPlan) -> None:
        columns = TextColumn("- {task.description:<28}"), BarColumn(), MofNCompleteColumn()
        super().__init__(*columns, console=console)
        totals = {
            "mails put into the mailbox": len(plan.mails),
            "mails sent, or rejected": len(plan.mails),
            "faxes put": len(plan.faxes),
            "faxes delivered, or given up": len(plan.faxes),
            "callbacks received": sum(map(len, plan.callbacks.values())),
            "messages with final status": len(plan.finals()),
            "campaign, until killed": campaign.PEOPLE + 1,
            "campaign, started again": campaign.PEOPLE + 1,
        }
        self._totals = totals
        self._bars = {name: self.add_task(name, total=total) for name, total in totals.items()}

    def step(self, name: str) -> None:
        self.advance(self._bars[name])

    def show(self, name: str, count: int) -> None:
        """Show how many there are by now; a bar never holds more than its total."""
        self.update(self._bars[name], completed=min(count, self._totals[name]))


class _Sending:
    """The sending, in its order. What does not come to rest is noted, and the figures are printed anyway."""

    def __init__(self, stage: StageClient, plan: DemoPlan, bars: Bars) -> None:
        self._stage, self._plan, self._bars = stage, plan, bars
        self._waiter = Waiter(stage)
        self.troubles: list[str] = []
        self.duplicates = 0
        self.mail_seconds = self.fax_seconds = self._faxes_began = 0.0
        self.weekly = CampaignRun(stage)

    def mails(self) -> None:
        """Send the mails first and by themselves, for they are timed: each function that starts takes a core
        for a second. SES's later events are held back meanwhile."""
        items, bars = [each.item for each in self._plan.mails], self._bars
        self._stage.pause_events()
        with self._noting():
            started = time.monotonic()
            new = self._stage.put_all(items, lambda: bars.step("mails put into the mailbox"))
            self.duplicates += len(items) - new
            keys = [each.key for each in self._plan.mails]
            self._waiter.until_ended(keys, MAIL_SECONDS, lambda n: bars.show("mails sent, or rejected", n))
            self.mail_seconds = time.monotonic() - started
        self._stage.resume_events()
        self._repeat()

    def _repeat(self) -> None:
        """Ask for three mails again, each in another way; nothing more may be sent for it."""
        twice, changed, reinserted = (each.item for each in self._plan.mails[:3])
        refused = not self._stage.put_new(twice)  # the mailbox itself refuses
        self._stage.put({**changed, "last_name": "Renamed"})  # a MODIFY, which the mapping filters out
        self._stage.delete(reinserted["id"])
        self._stage.put(reinserted)  # a new INSERT, which the ledger refuses
        self.duplicates += refused + 2

    def all_else(self) -> None:
        """Send SMS, pushes, faxes and webhooks, and a campaign while the faxes wait. Their functions start
        before the campaign's: all at once they would run out of time on a slow machine."""
        self._others()
        # Without `with`, which would wait for the campaign: a Ctrl-C is to stop the stage at once.
        weekly = ThreadPoolExecutor(1).submit(self._campaign)
        self._until_faxes_ended()
        weekly.result()
        self._settle()

    def _others(self) -> None:
        """Send all but mails at once; then second messages to suppressed recipients."""
        plan = self._plan
        self._stage.put_all([each.item for each in [*plan.sms, *plan.pushes]])
        self._faxes_began = time.monotonic()
        self._put_faxes()
        self._stage.put_all(plan.webhooks)
        with self._noting():
            self._waiter.until_suppressed(plan.suppressing(), SUPPRESSED_SECONDS)
        self._stage.put_all([each.item for each in plan.again.values()])

    def _until_faxes_ended(self) -> None:
        plan, bars = self._plan, self._bars

        def show(ended: int) -> None:
            bars.show("faxes delivered, or given up", ended)
            bars.show("callbacks received", len(self._stage.requests()))

        with self._noting():
            keys = [*(fax.key for fax in plan.faxes), *((each["id"], "webhook") for each in plan.webhooks)]
            self._waiter.until_ended(keys, FAX_SECONDS, show)
            self.fax_seconds = time.monotonic() - self._faxes_began

    def _put_faxes(self) -> None:
        """Put the faxes; those of the upstream application go to the queue in their order."""
        providers = self._stage.running.endpoints.providers
        bucket = self._stage.output("PayloadBucketName")
        for fax in self._plan.faxes:
            if fax.payload:
                self._stage.s3.put_object(Bucket=bucket, Key=f"{fax.id}.pdf", Body=PDF)
            if fax.way == "queue":
                self._stage.queue_fax(json.dumps(fax.body(providers, bucket)), fax.group or fax.line)
                self._bars.step("faxes put")
        items = [fax.item(providers, bucket) for fax in self._plan.faxes if fax.way == "mailbox"]
        self._stage.put_all(items, lambda: self._bars.step("faxes put"))

    def _settle(self) -> None:
        """Wait until each message has its final status, and the queues are empty."""
        with self._noting():
            self._waiter.until_final(
                self._plan.finals(),
                FINAL_SECONDS,
                lambda n: self._bars.show("messages with final status", n),
            )
        with self._noting():
            self._waiter.until_quiet(QUIET_SECONDS)

    def _campaign(self) -> None:
        """Start a run that loses all that was under way; then the same run again, with one recipient less."""
        with self._noting():
            self.weekly.begin_and_kill(lambda n: self._bars.show("campaign, until killed", n))
            self.weekly.opt_out()
            self.weekly.start_again(lambda n: self._bars.show("campaign, started again", n))

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except NotSettled as trouble:
            self.troubles.append(str(trouble))


def _left_over(stage: StageClient) -> list[str]:
    dead = {name: depth for name, depth in stage.depths(dead=True).items() if depth}
    troubles = [f"{depth} dead letters in {name}." for name, depth in dead.items()]
    if given_up := stage.given_up():
        troubles.append(f"A stream gave up on records: {given_up} objects in their bucket.")
    return troubles
