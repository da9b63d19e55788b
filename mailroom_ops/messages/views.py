"""Messages of a deployed stage with advice, as the command `status` and the console show them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mailroom.ledger.status_reader import LedgerReader, MessageStatus
from mailroom.message.outcome import FAILED
from mailroom_ops.messages.advice import advice, commands
from mailroom_ops.messages.waiting import SEND_AT, Turn
from mailroom_ops.shared.deployed_stage import name as stage_name

if TYPE_CHECKING:
    import boto3

    from mailroom.channels.preview import Preview


@dataclass(frozen=True, kw_only=True)
class MessageView(MessageStatus):
    """Status of a message, with further facts for people."""

    since: str | None
    """Time when the message reached its status; None if the time is unknown."""
    advice: list[str]
    """Sentences about the status, and what to do next."""
    unused: list[str]
    """Attributes of the item that neither the channel nor the template uses."""

    @property
    def wrong(self) -> dict[str, dict[str, Any]]:
        """Entries of the recipients for whom something went wrong, by address."""
        statuses = (*FAILED, "suppressed")
        return {to: entry for to, entry in self.recipients.items() if entry.get("status") in statuses}


def is_deleted(reader: LedgerReader, message: MessageStatus) -> bool:
    """Return whether a message waits for its `send_at`, and its mailbox item is deleted."""
    return message.waits_for == SEND_AT and reader.item(message.id, message.event_type) is None


def reader_of(session: "boto3.Session", stage: str) -> LedgerReader:
    """Return a reader of a stage's ledger and mailbox."""
    tables = stage_name(stage, "ledger"), stage_name(stage, "mailbox")
    return LedgerReader(session.client("dynamodb"), *tables)


def view_of(
    message: MessageStatus,
    stage: str,
    now_s: float,
    *,
    deleted: bool = False,
    turn: Turn | None = None,
    preview: "Preview | None" = None,
) -> MessageView:
    """Return a message with advice on it at `now_s` (epoch seconds). `deleted` is the result of `is_deleted`,
    `turn` that of `turn_of`, and `preview` that of `look`."""
    since = since_of(message)
    sentences = list(advice(message, commands(message, stage), now_s, since, deleted=deleted, turn=turn))
    sentences += [preview.encoding_reason] if preview and preview.encoding_reason else []
    unused = preview.unused if preview else []
    return MessageView(**vars(message), since=since, advice=sentences, unused=unused)


def first_recipient(to: str | list[str] | None) -> str:
    """Return the first recipient and the number of further ones, or an empty text without a recipient."""
    first, *further = [to] if isinstance(to, str) else to or [""]
    return f"{first} and {len(further)} more" if further else first


def titled(template: str, version: int | None) -> str:
    """Return a template's name, with its version if it is a published one."""
    return f"{template}, version {version}" if version else template


def since_of(message: MessageStatus) -> str | None:
    """Return the time when the message reached its status. The history has it for outcomes and retries."""
    for entry in reversed(message.history):
        if entry.get("status") == message.status and "at" in entry:
            return str(entry["at"])
    if message.status == "sending":
        return message.times.get("startedAt", message.updated_at)
    return message.times.get(f"{message.status}At", message.updated_at)
