"""`make demo`: put messages on all channels on a stage of its own, kill a campaign half-way and start it
again, and check at the providers the outcome of each message. Exits with 0 only if every outcome is as
expected."""

import json
import sys

from rich.text import Text

from lab.demo.killed_campaign import PEOPLE, CampaignRun
from lab.harness.expected import Expected
from lab.harness.judge import Judgement
from lab.harness.run import Bars, Run
from lab.harness.stage_client import StageClient
from lab.harness.totals import Totals
from lab.load import awkward, draw, suppressed
from mailroom.errors import quantity
from mailroom_local.commands import console, starting
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import State, Workspace
from mailroom_stacks.paths import DOT_LOCAL

DEMO = Workspace(DOT_LOCAL / "demo")
RESULT = DOT_LOCAL / "demo.json"
SEED, MESSAGES = 1, 800
PATIENCE_SECONDS = 180.0
REPEATED = 3
"""Number of messages that are put a second time."""
SHOWN = 10


def main() -> int:
    """Run the demo, print the results, and return the exit code."""
    lifecycle.stop(DEMO)  # an earlier demo that was killed may have left a stage
    RESULT.unlink(missing_ok=True)
    try:
        running = lifecycle.start(DEMO, lambda line: console.print(f"- {line}"), PEOPLE + 1)
        judgement, campaign = send(running)
    finally:
        lifecycle.stop(DEMO)
    totals = Totals.of(judgement)
    people = judgement.figures(message.key for message in campaign.expected)
    figures = {"people": people.put, "killed_at": campaign.killed_at, "sent": people.accepted}
    RESULT.write_text(
        json.dumps(totals.as_json() | {"campaign": figures, "wrong": judgement.wrong}, indent=2) + "\n"
    )
    console.print(totals.table(f"written to {RESULT.relative_to(DOT_LOCAL.parent)}"))
    console.print(
        f"A campaign to {people.put} people was killed when {campaign.killed_at} of its mails were in the "
        f"mailbox, and started again: {people.accepted} were sent, {people.sent_twice} of them twice."
    )
    for sentence in judgement.wrong[:SHOWN]:
        console.print(Text(f"WRONG: {sentence}", style="red"))
    if judgement.wrong:
        console.print(f"{len(judgement.wrong)} are wrong; logs: {DEMO.folder}/*.log", style="red")
        return 1
    console.print("Every outcome is as expected: nothing lost, nothing sent twice.", style="green")
    return 0


def send(running: State) -> tuple[Judgement, CampaignRun]:
    """Put all messages, wait until the pipeline is idle, and check the results."""
    stage, providers = StageClient(running), running.endpoints.providers
    attempts = int(stage.variables(stage.output("SendFaxFunctionName"))["MAX_ATTEMPTS"])
    load = draw(SEED, MESSAGES, providers)
    with Bars(console) as bars:
        run = Run(stage, bars, PATIENCE_SECONDS)
        campaign = CampaignRun(stage, bars.bar)
        run.send("messages", [*awkward(providers, attempts), *load], disturb=campaign.disturb)
        run.load += campaign.expected
        put_again(stage, load[:REPEATED])
        run.settle()  # the next messages need the recorded bounces
        run.send("to people who bounced", suppressed())
        run.settle()
        judgement = run.judge(strict=True)
    judgement.wrong.extend([*left_over(stage), *campaign.without_link(stage.accepted())])
    return judgement, campaign


def put_again(stage: StageClient, load: list[Expected]) -> None:
    """Put messages a second time, once changed and once as new items after a deletion. No further message may
    be sent for them."""
    for message in load:
        stage.put(message.item | {"note": "changed"})
        stage.delete(*message.key)
        stage.put(message.item)


def left_over(stage: StageClient) -> list[str]:
    """Return a sentence for each dead-letter queue and bucket that should be empty but is not."""
    dead = {name: depth for name, depth in stage.depths(dead=True).items() if depth}
    sentences = [f"{quantity(depth, 'dead letter')} in {name}." for name, depth in dead.items()]
    if given_up := stage.given_up():
        sentences.append(f"A stream gave up on records: {given_up} objects in their bucket.")
    return sentences


if __name__ == "__main__":
    with starting():
        code = main()
        console.print("\nTo send messages yourself, and see them in a browser: make up")
    sys.exit(code)
