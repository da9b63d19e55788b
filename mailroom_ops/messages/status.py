"""`status`: a message's progress, its outcome, and the next steps for an operator."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, structs
from rich.table import Column

from mailroom.clock import Clock, epoch
from mailroom.errors import Invalid, Malformed
from mailroom.ledger.reader import READY, LedgerReader, MessageStatus
from mailroom.message.message import Templated, parse
from mailroom.message.outcome import FAILED
from mailroom.message.unless import Condition
from mailroom_ops.messages.advice import advice, commands
from mailroom_ops.messages.timeline import FEW, meaning, timeline
from mailroom_ops.messages.waiting import SEND_AT, Turn, turn_of
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.deployed_stage import name as stage_name
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
"""How long `status` looks again for a message that nobody has claimed yet."""
ChannelOfId = Annotated[str | None, typer.Option(help="The channel, if several channels have that id.")]
STYLES = {
    **dict.fromkeys(("sent", "delivered"), "green"),
    **dict.fromkeys(("failed", "bounced", "complained", "undelivered"), "red"),
}


@dataclass(frozen=True, kw_only=True)
class MessageView(MessageStatus):
    """Message with what a person wants to know of it besides."""

    since: str | None
    """Time when the message came to its status; None if that is not known."""
    advice: list[str]
    """Sentences about the status, and what to do next."""
    unused: list[str]
    """Attributes of the item that neither the channel nor the template uses."""

    @property
    def wrong(self) -> dict[str, dict[str, Any]]:
        """Entries of the recipients for whom something went wrong, by address."""
        statuses = (*FAILED, "suppressed")
        return {to: entry for to, entry in self.recipients.items() if entry.get("status") in statuses}


class Status(Struct, frozen=True):
    """The answer of `status`: the messages of that id, one a channel; empty: there is no such message."""

    id: str
    stage: str
    messages: list[MessageView]


def status(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The message's id.")],
    stage: Stage = "dev",
    *,
    channel: ChannelOfId = None,
    as_json: AsJson = False,
) -> None:
    """Print a message's status, its attempts, what the provider said, and what to do next.

    The command prints the recipients of the message, and never the content. Exit code 1: there is no such
    message, or its retention is over.

    Example: mailroom status order-42 --stage prod
    """
    with aws_faults(stage):
        session = aws_session()
        reader = reader_of(session, stage)
        found = settled(lambda: reader.find(id_, channel), time.time, time.sleep)
        now = time.time()
        views = [
            view_of(
                message,
                stage,
                now,
                deleted=is_deleted(reader, message),
                turn=turn_of(session, stage, message),
                preview=look(session, stage, reader, message),
            )
            for message in found
        ]
    if as_json:
        print_json(Status(id_, stage, views))
    elif found:
        for each, view in zip(found, views, strict=True):
            show(each, view, now)
    else:
        there = f"{channel} {id_}" if channel else id_
        print_line(f"There is no message {there} in {stage}.")
    raise typer.Exit(0 if found else 1)


def settled(
    look: Callable[[], list[MessageStatus]], clock: Clock, sleep: Callable[[float], None]
) -> list[MessageStatus]:
    """Return the result of `look`, repeated for some seconds while a message is ready. It may have been put
    just now, and its worker is about to claim it."""
    end, found = clock() + _CLAIMED_SECONDS, look()
    while clock() < end and any(_claimed_soon(each, clock()) for each in found):
        with errors.status("looking whether a worker claims it"):
            sleep(0.5)
        found = look()
    return found


def _claimed_soon(found: MessageStatus, now: float) -> bool:
    return found.status == READY and not (found.scheduled_for and epoch(found.scheduled_for) > now)


def is_deleted(reader: LedgerReader, found: MessageStatus) -> bool:
    """Whether the item of a message that waits for its `send_at` is deleted."""
    return found.waits_for == SEND_AT and reader.item(found.id, found.event_type) is None


def reader_of(session: "boto3.Session", stage: str) -> LedgerReader:
    """Reads a stage's ledger and mailbox."""
    tables = stage_name(stage, "ledger"), stage_name(stage, "mailbox")
    return LedgerReader(session.client("dynamodb"), *tables)


def view_of(
    found: MessageStatus,
    stage: str,
    now: float,
    *,
    deleted: bool = False,
    turn: Turn | None = None,
    preview: "Preview | None" = None,
) -> MessageView:
    """Return a message with the advice on it, at `now` (epoch seconds). `deleted`: the mailbox does not have
    its item. `turn`: see `turn_of`. `preview`: see `look`."""
    since = _since(found)
    said = list(advice(found, commands(found, stage), now, since, deleted=deleted, turn=turn))
    said += [preview.encoding_reason] if preview and preview.encoding_reason else []
    unused = preview.unused if preview else []
    return MessageView(**vars(found), since=since, advice=said, unused=unused)


def first_recipient(to: str | list[str] | None) -> str:
    """Return the first recipient, and how many more there are; an empty text if there is no recipient."""
    first, *further = [to] if isinstance(to, str) else to or [""]
    return f"{first} and {len(further)} more" if further else first


def titled(template: str, version: int | None) -> str:
    """Return a template's name, with the version if that was published."""
    return f"{template}, version {version}" if version else template


def look(
    session: "boto3.Session", stage: str, reader: LedgerReader, found: MessageStatus
) -> "Preview | None":
    """The preview of a message's item; None if the item is gone, or if no sender could make a message of it:
    the status is worth showing without."""
    from mailroom.content.versions import DEPLOYED
    from mailroom_ops.messages.items import rules_of  # boto3 is 150 ms that no --help waits for

    item = reader.item(found.id, found.event_type)
    if item is None:
        return None
    try:
        rules = rules_of(session, stage)
        message = parse(item, rules.contracts())
        if isinstance(message, Templated):
            message = structs.replace(message, template_version=found.template_version or DEPLOYED)
        return rules.previews(session.client("s3")).look(message)
    except (Invalid, Malformed, Refused, ClientError, BotoCoreError):
        return None


def show(found: MessageStatus, message: MessageView, now: float) -> None:
    """Print one message as it is at `now` (epoch seconds)."""
    print_line(f"{message.id}  ({message.event_type})", "bold")
    facts = table_of(Column(style="dim"), fold(), box=None, show_header=False)
    since = f" since {short(message.since)}" if message.since else ""
    facts.add_row("status", plain(message.status + since), style=STYLES.get(message.status))
    for name, value in _facts(message):
        facts.add_row(name, plain(value))
    screen.print(facts)
    life = (
        (
            short(step.at) if step.at else "",
            "" if step.after is None else exactly(step.after),
            step.what,
            step.detail,
        )
        for step in timeline(found, now)
    )
    screen.print(table_of(*map(whole, ("life", "after", "")), fold(), rows=life))
    if message.recipients:
        outcomes = message.recipients if len(message.recipients) <= FEW else message.wrong
        entries = (_entry(*recipient) for recipient in outcomes.items())
        print_line(meaning(found))
        screen.print(table_of(*map(fold, ("recipients", "status", "")), rows=entries))
    for line in message.advice:
        print_line(f"→ {line}")


def _since(found: MessageStatus) -> str | None:
    """Return when the message reached its status: the history says it of an outcome and of a retry."""
    for entry in reversed(found.history):
        if entry.get("status") == found.status and "at" in entry:
            return str(entry["at"])
    if found.status == "sending":
        return found.times.get("startedAt", found.updated_at)
    return found.times.get(f"{found.status}At", found.updated_at)


def _facts(message: MessageView) -> Iterator[tuple[str, str]]:
    """Yield labels and values about the message, in the order in which a reader asks."""
    to, error, trouble = message.to, message.error, message.trouble
    facts = {
        "to": ", ".join(to) if isinstance(to, list) else to,
        "subject": message.subject,
        "template": message.template and titled(message.template, message.template_version),
        "error": error and f"{error.get('message')} ({error.get('code')})",
        "trouble": trouble and f"{trouble.get('message')} ({trouble.get('code')})",
        "provider": message.provider and f"{message.provider} {message.provider_id or ''}".strip(),
        "attempts": message.attempts and f"{message.attempts} ended",
        **{name: f"{detail}" for name, detail in message.details.items()},
        "unless": "; or ".join(Condition(**condition).text for condition in message.unless),
        "changed": message.updated_at and short(message.updated_at),
        "unused": ", ".join(message.unused),
    }
    return ((name, f"{value}") for name, value in facts.items() if value)


def _entry(name: str, entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """A recipient: its status, and all other details."""
    more = ", ".join(
        f"{key} {short(value) if key.endswith('At') else value}"
        for key, value in entry.items()
        if key not in ("status", "sentAt")
    )
    return name, f"{entry.get('status', '')}", more
