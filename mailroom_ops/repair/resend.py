"""The command `resend`: reads its options, shows which messages can be resent, asks, and resends them."""

import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from mailroom.errors import quantity
from mailroom_ops.messages.items import rules_of
from mailroom_ops.repair.resender import Resender, Resent, ResentMessage
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.screen import (
    aws_faults,
    confirm,
    errors,
    fold,
    print_answer,
    print_line,
    screen,
    status,
    table_of,
)
from mailroom_ops.shared.selected_messages import selected
from mailroom_ops.shared.stage_queues import DeployedStage

UNASKED = 10
"""Maximum number of messages that are sent again without a question."""
_SHOWN = 50


def resend(
    ids: Annotated[
        list[str], typer.Argument(help="Message ids; - reads ids or a command's --json from standard input.")
    ],
    stage: Stage = "dev",
    *,
    channel: Annotated[str | None, typer.Option(help="Only messages of this channel (event_type).")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also send messages that arrived, were cancelled or suppressed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print which messages can be sent; send nothing.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Send messages again that failed, bounced or were suppressed, with the present content of their mailbox
    items.

    The command prints which messages can be sent again, and why others cannot. It asks before it sends more
    than 10 messages, or a message that may arrive twice. It refuses messages that are on their way, messages
    that arrived (unless you give --force), and messages that changed since they were printed. So a message is
    not sent twice if the command is run again, or twice at the same time.

    Exit code 1: some messages were not sent again. 2: the command could not do its work, or the JSON on
    standard input is about another stage, or incomplete because of its --limit.

    Example: mailroom failures --since 2h --stage prod --json | mailroom resend - --stage prod --yes
    """
    with aws_faults(stage):
        refs = selected(ids, channel, sys.stdin, stage)
        session = aws_session()
        deployed = DeployedStage.of(session, stage)
        previews = rules_of(session, stage).previews(session.client("s3"))
        resender = Resender(deployed, previews.look, force=force)
        with status("looking at the messages", quiet=as_json):
            looked = resender.evaluate(refs)
        if not as_json:
            _show(looked)
        ready = [message for message in looked if message.result == "ready"]
        refusals = [message for message in looked if message.result != "ready"]
        done = ready
        if ready and not dry_run:
            twice = sum(message.may_arrive_twice for message in ready)
            risk = f" {twice:,} of them may arrive twice." if twice else ""
            question = f"Send {quantity(len(ready), 'message')} of {stage} again?{risk}"
            confirm(question, yes=yes or not (twice or len(ready) > UNASKED), piped="-" in ids)
            with status("sending", quiet=as_json):
                done = resender.send(ready)
    messages = [*done, *refusals]
    counts = Counter(message.result for message in messages)
    answer = Resent(stage, dry_run, dict(sorted(counts.items())), messages)
    print_answer(answer, partial(_say, printed=looked), as_json=as_json)
    unsent = [message for message in messages if message.result not in ("ready", "resent")]
    raise typer.Exit(1 if unsent else 0)


def _show(looked: Sequence[ResentMessage]) -> None:
    """Print each message, first those that cannot be sent. Of a long list, only the first ones are
    printed."""
    ordered = sorted(looked, key=lambda message: message.result == "ready")
    rows = (
        (message.id, message.event_type, "again" if message.result == "ready" else "no", message.why)
        for message in ordered[:_SHOWN]
    )
    if looked:
        columns = (fold("id"), "channel", "can be sent", fold("state", ratio=1))
        screen.print(table_of(*columns, rows=rows))
    if len(ordered) > _SHOWN:
        screen.print(f"and {len(ordered) - _SHOWN:,} more; --json has all.")


def _say(answer: Resent, printed: Sequence[ResentMessage]) -> None:
    """Print the number of messages by result, and each message that could be sent but was not."""
    printed_messages = {*printed}
    for message in answer.messages:
        if message.result in ("unqueued", "refused") and message not in printed_messages:
            print_line(f"{message.id} ({message.event_type}): {message.why}", "red", errors)
    counted = ", ".join(f"{count:,} {result}" for result, count in answer.counts.items())
    screen.print(
        f"{quantity(len(answer.messages), 'message')} of {answer.stage}{': ' if counted else ''}{counted}."
    )
