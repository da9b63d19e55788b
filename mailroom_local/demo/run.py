"""`make demo`: start a stage, send, wait, check, and stop the stage whatever happens."""

import json

from lab.demo import campaign, report
from lab.demo.campaign import CampaignRun
from lab.demo.day import DayRun
from lab.demo.feedback import check_feedback
from lab.demo.load import faxes, pushes
from lab.demo.plan import DemoFacts, DemoPlan
from lab.demo.report import Result
from lab.harness.expected import Expected
from lab.harness.run import Bars, Run
from lab.harness.stage_client import StageClient
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import DEMO, State
from mailroom_ops.terminal import Terminal
from mailroom_stacks.paths import DOT_LOCAL

RESULT = DOT_LOCAL / "demo.json"
PATIENCE_SECONDS = 180.0


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
    report.show(console, result)
    if result.failures:
        console.print(f"Logs: {DEMO.folder}/*.log")
    return 1 if result.failures else 0


def _send_and_check(console: Terminal, running: State) -> Result:
    stage = StageClient(running)
    facts, bucket = DemoFacts.of(stage), stage.output("PayloadBucketName")
    devices = pushes.register(running.endpoints, facts.applications)
    plan = DemoPlan.of(facts, devices, running.endpoints.providers, bucket)
    with Bars(console) as bars:
        run = Run(stage, bars, PATIENCE_SECONDS)
        # The mails come first and by themselves, for they are timed: each function that starts takes a core
        # for a second. SES's later events are held back meanwhile.
        stage.pause_events()
        mail_seconds = run.send("mails", plan.mails)
        stage.resume_events()
        duplicates = _repeat(stage, plan.mails)
        # Before the campaign: what is left of a sender's room would let some of bulk go on a closed day.
        day = DayRun(stage, plan.day)
        day.close()
        run.send("on a closed day", plan.day, disturb=day.disturb)
        store_documents(stage, plan.others, bucket)
        weekly = CampaignRun(stage, bars.bar)
        fax_seconds = run.send("faxes and all else", plan.others, disturb=weekly.disturb)
        run.load += weekly.expected
        run.settle()
        run.send("to suppressed recipients", plan.again)
        run.settle()
        judgement = run.judge(strict=True)
    judgement.wrong.extend([*left_over(stage), *weekly.unlinked(stage.accepted())])
    feedback = check_feedback(stage.events(), stage.twilio_callbacks(), stage.suppressed(), plan.suppressed)
    return Result(judgement, run.load, facts, weekly, day, feedback, duplicates, mail_seconds, fax_seconds)


def _repeat(stage: StageClient, mails: list[Expected]) -> int:
    """Ask for three mails again, each in another way; nothing more may be sent for it."""
    twice, changed, reinserted = (each.item for each in mails[:3])
    refused = not stage.put_new(twice)  # the mailbox itself refuses
    stage.put({**changed, "last_name": "Renamed"})  # a MODIFY, which the mapping filters out
    stage.delete(reinserted["id"])
    stage.put(reinserted)  # a new INSERT, which the ledger refuses
    return refused + 2


def store_documents(stage: StageClient, load: list[Expected], bucket: str) -> None:
    """Put the documents that messages name into the stage's bucket of payloads."""
    for each in load:
        if "payload_ref" in each.item:
            stage.s3.put_object(Bucket=bucket, Key=f"{each.id}.pdf", Body=faxes.PDF)


def left_over(stage: StageClient) -> list[str]:
    """A sentence for each dead-letter queue and bucket that should be empty and is not."""
    dead = {name: depth for name, depth in stage.depths(dead=True).items() if depth}
    troubles = [f"{depth} dead letters in {name}." for name, depth in dead.items()]
    if given_up := stage.given_up():
        troubles.append(f"A stream gave up on records: {given_up} objects in their bucket.")
    return troubles
