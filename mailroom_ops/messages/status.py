"""The command `messages show`: shows a message's progress, its outcome, and the next steps for an
operator."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, structs
from rich.table import Column

from mailroom.clock import Clock, epoch
from mailroom.errors import Invalid, Malformed
from mailroom.ledger.status_reader import READY, LedgerReader, MessageStatus
from mailroom.message.message import Templated, parse
from mailroom.message.unless import Condition
from mailroom_ops.messages.timeline import FEW, meaning, timeline
from mailroom_ops.messages.views import (
    MessageView,
    is_deleted,
    reader_of,
    titled,
    view_of,
)
from mailroom_ops.messages.waiting import turn_of
from mailroom_ops.shared.deeds import with_names
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import (
    Refused,
    aws_faults,
    errors,
    fold,
    plain,
    print_json,
    print_line,
    screen,
    table_of,
    whole,
)
from mailroom_ops.shared.times import exactly, short

if TYPE_CHECKING:
    import boto3

    from mailroom.channels.preview import Preview

_CLAIMED_SECONDS = 5.0
"""Seconds for which `messages show` polls a message that no worker has claimed yet."""
ChannelOfId = Annotated[str | None, typer.Option(help="The channel, if several channels use the id.")]
STYLES = {
    **dict.fromkeys(("sent", "delivered"), "green"),
    **dict.fromkeys(("failed", "bounced", "complained", "undelivered"), "red"),
}


class Status(Struct, frozen=True):
    """Output of the command `messages show`: the messages with an id, at most one per channel."""

    id: str
    stage: str
    messages: list[MessageView]


def show(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The message's id.")],
    stage: Stage = "dev",
    *,
    channel: ChannelOfId = None,
    as_json: AsJson = False,
) -> None:
    """Show a message's status, and what to do next.

    The command prints its attempts, the provider's reports and its recipients, but not its content. Exit code
    1: the message does not exist, or its retention is over.

    Example: mailroom messages show order-42 --stage prod
    """
    with aws_faults(stage):
        session = aws_session()
        reader = reader_of(session, stage)
        messages = settled(lambda: reader.find(id_, channel), time.time, time.sleep)
        now_s = time.time()
        views = [
            view_of(
                message,
                stage,
                now_s,
                deleted=is_deleted(reader, message),
                turn=turn_of(session, stage, message),
                preview=look(session, stage, reader, message),
            )
            for message in messages
        ]
    if as_json:
        print_json(Status(id_, stage, views))
    elif messages:
        for message, view in zip(messages, views, strict=True):
            print_message(message, view, now_s)
    else:
        title = f"{channel} {id_}" if channel else id_
        print_line(f"There is no message {title} in {stage}.")
    raise typer.Exit(0 if messages else 1)


def settled(
    look: Callable[[], list[MessageStatus]], clock: Clock, sleep: Callable[[float], None]
) -> list[MessageStatus]:
    """Return the result of `look`. For _CLAIMED_SECONDS, `look` is called again while a message is due that
    no worker has claimed: it may have been put just now, and is then claimed within seconds."""
    end, messages = clock() + _CLAIMED_SECONDS, look()
    while clock() < end and any(_claimed_soon(message, clock()) for message in messages):
        with errors.status("waiting for a worker to claim it"):
            sleep(0.5)
        messages = look()
    return messages


def _claimed_soon(message: MessageStatus, now_s: float) -> bool:
    return message.status == READY and not (message.scheduled_for and epoch(message.scheduled_for) > now_s)


def look(
    session: "boto3.Session", stage: str, reader: LedgerReader, message: MessageStatus
) -> "Preview | None":
    """Return a preview of a message, rendered from its mailbox item. Return None if the item is deleted or
    cannot be rendered, so that the status is shown without a preview."""
    from mailroom.content.versions import DEPLOYED

    # Imported here, because it imports boto3, which takes 150 ms and would delay --help.
    from mailroom_ops.messages.items import rules_of

    item = reader.item(message.id, message.event_type)
    if item is None:
        return None
    try:
        rules = rules_of(session, stage)
        content = parse(item, rules.contracts())
        if isinstance(content, Templated):
            content = structs.replace(content, template_version=message.template_version or DEPLOYED)
        return rules.previews(session.client("s3")).look(content)
    except (Invalid, Malformed, Refused, ClientError, BotoCoreError):
        return None


def print_message(message: MessageStatus, view: MessageView, now_s: float) -> None:
    """Print one message, with its time-line until `now_s` (epoch seconds)."""
    print_line(f"{view.id}  ({view.event_type})", "bold")
    facts = table_of(Column(style="dim"), fold(), box=None, show_header=False)
    since = f" since {short(view.since)}" if view.since else ""
    facts.add_row("status", plain(view.status + since), style=STYLES.get(view.status))
    for name, value in _facts(view):
        facts.add_row(name, plain(value))
    screen.print(facts)
    life = (
        (
            short(step.at) if step.at else "",
            "" if step.after is None else exactly(step.after),
            step.what,
            step.detail,
        )
        for step in timeline(message, now_s)
    )
    screen.print(table_of(*map(whole, ("life", "after", "")), fold(), rows=life))
    if view.recipients:
        outcomes = view.recipients if len(view.recipients) <= FEW else view.wrong
        entries = (_entry(*recipient) for recipient in outcomes.items())
        print_line(meaning(message))
        screen.print(table_of(*map(fold, ("recipients", "status", "")), rows=entries))
    for line in view.advice:
        print_line(f"→ {line}")


def _facts(message: MessageView) -> Iterator[tuple[str, str]]:
    """Return labels and values about the message, in the order in which they are shown."""
    to, error, trouble = message.to, message.error, message.trouble
    facts = {
        "to": ", ".join(to) if isinstance(to, list) else to,
        "subject": message.subject,
        "template": message.template and titled(message.template, message.template_version),
        "error": error and f"{error.get('message')} ({error.get('code')})",
        "trouble": trouble and f"{trouble.get('message')} ({trouble.get('code')})",
        "provider": message.provider and f"{message.provider} {message.provider_id or ''}".strip(),
        "attempts": message.attempts and f"{message.attempts} ended",
        **{name: with_names(f"{detail}") for name, detail in message.details.items()},
        "unless": "; or ".join(Condition(**condition).text for condition in message.unless),
        "changed": message.updated_at and short(message.updated_at),
        "unused": ", ".join(message.unused),
    }
    return ((name, f"{value}") for name, value in facts.items() if value)


def _entry(name: str, entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the cells of a recipient's row: the recipient, its status, and all other details."""
    details = ", ".join(
        f"{key} {short(value) if key.endswith('At') else value}"
        for key, value in entry.items()
        if key not in ("status", "sentAt")
    )
    return name, f"{entry.get('status', '')}", details
