"""Sets of messages on which an operator acts: `messages resend`, `cancel`, `correct` and `settle`.

Each act is evaluated without a change first. It is safe to repeat: the ledger or the mailbox has the result
of a message that was done before.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import typer
from msgspec import Struct

from mailroom.errors import quantity
from mailroom.ledger.status_reader import REMEMBERED_SECONDS
from mailroom_ops.messages.listed import text_of
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.screen import (
    Refused,
    aws_faults,
    bar,
    confirm,
    errors,
    fold,
    print_answer,
    print_line,
    screen,
    table_of,
)
from mailroom_ops.shared.selected_messages import MessageRef, selected
from mailroom_ops.shared.stage_queues import DeployedStage
from mailroom_ops.shared.tables import parts

if TYPE_CHECKING:
    import boto3

AT_ONCE = 50
"""Number of messages of one step. A crash can leave as many messages half done, which a repetition ends."""
WORKERS = 8
UNASKED = 10
"""Maximum number of messages that a command sends again or cancels without a question."""
LARGE = 100
"""Largest set that is confirmed by a click or a yes. For a larger one, its size has to be typed."""
_SHOWN = 50

Ids = Annotated[
    list[str] | None,
    typer.Argument(help="Message ids; - reads ids or a command's --json from standard input."),
]
IdsFile = Annotated[Path | None, typer.Option("--ids", help="A file with one id per line.")]
Why = Annotated[
    str, typer.Option("--why", help="The reason, to be recorded: without names, addresses and numbers.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")]


class MessageResult(Struct, frozen=True):
    """Result for one message of a set, or the expected result in a dry run. `status` is the message's status
    before the act, and `attempt` the number of its next attempt. The result `unqueued` means that the
    message was reopened, or may have been, and is not in a queue: `messages resend` queues it."""

    id: str
    event_type: str
    status: str
    result: Literal["ready", "resent", "cancelled", "corrected", "recorded", "refused", "unqueued"]
    why: str
    attempt: int | None = None
    may_arrive_twice: bool = False

    def refused(self, reason: str) -> "MessageResult":
        """Return the result for a message that was left unchanged, with the reason."""
        return MessageResult(self.id, self.event_type, self.status, "refused", reason)


class SetAnswer(Struct, frozen=True):
    """Output of a command that acts on a set: the results for the messages, and their number by result. In a
    dry run, messages that would be done have the result `ready`."""

    stage: str
    dry_run: bool
    counts: dict[str, int]
    messages: list[MessageResult]


class Act(Protocol):
    """Act on messages of one stage."""

    def evaluate(self, refs: Iterable[MessageRef]) -> list[MessageResult]:
        """Return the state of each message and whether it can be done, without a change."""

    def send(self, ready: Sequence[MessageResult], reason: str = "") -> list[MessageResult]:
        """Do the ready messages, for a reason or for none. Each is evaluated once more, because it may have
        changed."""


def found(stage: DeployedStage, ref: MessageRef) -> Mapping[str, Any] | str:
    """Return the ledger item of a message or, if there is not exactly one, the reason as a text."""
    items = stage.items("ledger", ref)
    if len(items) == 1:
        return items[0]
    if items:
        names = " and ".join(item["event_type"] for item in items)
        return f"{names} have messages with that id; choose one with --channel"
    if stage.items("mailbox", ref):
        days = REMEMBERED_SECONDS // 86_400
        return (
            "it has no item in the ledger: no worker has started it, and mailroom messages resend puts it "
            f"into its queue; but one that was put more than {days} days ago may have been sent and forgotten"
        )
    return "there is no such message in the ledger"


def _refs(ids: Sequence[str] | None, file: Path | None, channel: str | None, stage: str) -> list[MessageRef]:
    """Return references to the messages that a command names, in order and without duplicates. Raises
    Refused, also if the command names none."""
    if not ids and file is None:
        raise Refused("Name the messages: by their ids, with --ids FILE, or with - for standard input.")
    lines = text_of(file).splitlines() if file else []
    typed = [*(ids or ()), *(line.strip() for line in lines if line.strip() not in ("", "-"))]
    return selected(typed, channel, sys.stdin, stage)


def act_on(
    selection: tuple[Sequence[str] | None, Path | None, str | None],
    stage: str,
    act_of: "Callable[[boto3.Session, DeployedStage], Act]",
    question: str,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    reason: str,
    always_ask: bool = False,
) -> None:
    """Show what an act would do, ask, do it, and print the results. `selection` has the ids, the file and the
    channel that the command got, and `question` a place for the number of messages. The `reason` is recorded.
    Up to UNASKED messages that cannot arrive twice are done without a question unless `always_ask`. Ends the
    command, with exit code 1 if some messages were not done."""
    piped, looked = "-" in (selection[0] or ()), list[MessageResult]()
    with aws_faults(stage):
        refs, session = _refs(*selection, stage), aws_session()
        act = act_of(session, DeployedStage.of(session, stage))
        with bar("looking", quiet=as_json) as report:
            for step in parts(refs, AT_ONCE):
                looked += act.evaluate(step)
                report(len(looked), len(refs))
        if not as_json:
            _show(looked)
        ready = [message for message in looked if message.result == "ready"]
        done = ready
        if ready and not dry_run:
            limit = 0 if always_ask else UNASKED
            _confirm(question, stage, ready, yes=yes, piped=piped, limit=limit)
            done = []
            with bar("doing", quiet=as_json) as report:
                for messages in parts(ready, AT_ONCE):
                    done += act.send(messages, reason)
                    report(len(done), len(ready))
    results = [*done, *(message for message in looked if message.result != "ready")]
    counts = Counter(message.result for message in results)
    answer = SetAnswer(stage, dry_run, dict(sorted(counts.items())), results)
    print_answer(answer, partial(_say, printed=looked), as_json=as_json)
    raise typer.Exit(1 if counts["refused"] or counts["unqueued"] else 0)


def _confirm(
    question: str, stage: str, ready: Sequence[MessageResult], *, yes: bool, piped: bool, limit: int
) -> None:
    twice = sum(message.may_arrive_twice for message in ready)
    risk = f" {twice:,} of them may arrive twice." if twice else ""
    messages = f"{quantity(len(ready), 'message')} of {stage}"
    text = f"{question.format(messages)}?{risk}"
    if yes or piped or len(ready) <= LARGE:
        confirm(text, yes=yes or not (twice or len(ready) > limit), piped=piped)
    elif typer.prompt(f"{text} Type their number to go on", err=True) != str(len(ready)):
        raise Refused(f"That is not {len(ready)}. Nothing was changed.")


def _show(looked: Sequence[MessageResult]) -> None:
    """Print each message, first those that are left out. Of a long list, only the first ones are printed."""
    ordered = sorted(looked, key=lambda message: message.result == "ready")
    rows = (
        (message.id, message.event_type, "yes" if message.result == "ready" else "no", message.why)
        for message in ordered[:_SHOWN]
    )
    if looked:
        columns = (fold("id"), "channel", "possible", fold("state", ratio=1))
        screen.print(table_of(*columns, rows=rows))
    if len(ordered) > _SHOWN:
        screen.print(f"and {len(ordered) - _SHOWN:,} more; --json has all.")


def _say(answer: SetAnswer, printed: Sequence[MessageResult]) -> None:
    """Print the number of messages by result, and each message that could be done but was not."""
    printed_messages = {*printed}
    for message in answer.messages:
        if message.result in ("unqueued", "refused") and message not in printed_messages:
            print_line(f"{message.id} ({message.event_type}): {message.why}", "red", errors)
    counted = ", ".join(f"{count:,} {result}" for result, count in answer.counts.items())
    screen.print(
        f"{quantity(len(answer.messages), 'message')} of {answer.stage}{': ' if counted else ''}{counted}."
    )
