"""The command `send`: puts a message, made from a file, from options or from both, into the mailbox."""

import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct, structs

from mailroom.aws.dynamo_batches import batch_get
from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import assumed_utc
from mailroom.errors import Invalid, Malformed, can_be_key
from mailroom.ledger.items import where
from mailroom.ledger.status_reader import READY, LedgerReader
from mailroom.mailbox import original
from mailroom.message import CAMPAIGN_START
from mailroom.message.message import Key
from mailroom_ops.messages.items import Rules, read_item, rules_of, set_values
from mailroom_ops.messages.views import reader_of
from mailroom_ops.messages.waiting import WAITS_FOR
from mailroom_ops.shared.deployed_stage import aws_session, config_for_puts
from mailroom_ops.shared.deployed_stage import name as stage_name
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import Refused, aws_faults, ended, print_answer, print_line, screen, status

if TYPE_CHECKING:
    import boto3

    from mailroom.channels.preview import Preview

UNDER_WAY = (READY, "scheduled", "sending", "retrying")
"""Statuses of messages without an outcome."""
GOOD = ("sent", "delivered")
_WORDS = {"delivered": "sent and delivered"}
"""Words of statuses that are printed otherwise. A delivery event can arrive before the next poll, so
`delivered` names `sent` too."""
_FIRST_POLL, _LONGEST_POLL = 0.2, 2.0
_LETTERS = "bcdfghjkmnpqrstvwxz23456789"
"""Characters of random ids: no vowels, so that ids contain no words, and no characters that look alike."""
_RANDOM = 6
_NOT_COPIED = frozenset(
    (
        *("to", "email", "cc", "bcc", "url", "attempt", "ttl"),
        *("send_at", "expires_at", "unless", CAMPAIGN_START),
    )
)
"""Attributes that a copy of a message to another recipient does not get, such as recipients and times."""
_AGAIN = re.compile(r"-again-\w{6}$")
_COPIED_ID = 100
"""Maximum number of characters that the id of a copy takes from the id of its original. `#` marks ids of a
campaign's run; it is replaced, because a copy does not belong to the run."""
_SAID = {
    "accepted": "It is in the mailbox.",
    "existed": "It was in the mailbox already, with the same content.",
    "conflict": "Another message has that id, and was not replaced. Use a new id.",
}


class SendAnswer(Struct, frozen=True, kw_only=True):
    """Output of the command `send`. `result` is accepted, existed (the mailbox had the same message already)
    or conflict (another message has the id, and was not replaced). If the command waited for an outcome,
    `status`, `error` and `waits_for`, the reason of a wait, are from the ledger."""

    id: str
    event_type: str
    stage: str
    result: str
    status: str | None = None
    waits_for: str = ""
    error: str | None = None
    provider_id: str | None = None
    unused: list[str] = []
    """Attributes that neither the channel nor the template uses."""
    send_at: str | None = None
    """Time of `send_at` in UTC, if the item's `send_at` is without an offset."""


def send(
    channel: Annotated[str | None, typer.Argument(help=f"The channel: {', '.join(CONTRACTS)}.")] = None,
    stage: Stage = "dev",
    *,
    to: Annotated[list[str] | None, typer.Option(help="The recipient; repeatable for a mail.")] = None,
    subject: Annotated[str | None, typer.Option(help="The subject of a mail.")] = None,
    text: Annotated[str | None, typer.Option(help="The text of a mail or an SMS.")] = None,
    template: Annotated[str | None, typer.Option(help="The name of a template, instead of a text.")] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="The id; default: a new id, which is printed.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="An attribute or variable, NAME=VALUE. Write lists and numbers as JSON."),
    ] = None,
    topic: Annotated[str | None, typer.Option(help="The topic, which recipients can opt out of.")] = None,
    lane: Annotated[str | None, typer.Option(help="The lane, normal or bulk.")] = None,
    send_at: Annotated[
        str | None, typer.Option(help="Send at this time, such as 2026-11-21T09:00:00Z.")
    ] = None,
    unless: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHANNEL:ID:STATUS",
            help="Do not send if, at --send-at, another message has this status, such as "
            "sms:code-17:delivered. Separate several statuses by commas. You may repeat the option.",
        ),
    ] = None,
    callback_url: Annotated[str | None, typer.Option(help="The URL to which callbacks are sent.")] = None,
    file: Annotated[str | None, typer.Option(help="A file with a JSON object; - is standard input.")] = None,
    from_message: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Send a copy of this message to another recipient, by default under a new id."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the message has an outcome.")] = False,
    wait_seconds: Annotated[float, typer.Option(min=0, help="Time limit of --wait in seconds.")] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Send one message.

    It is made from options, from a JSON file, or from both; options override the file.

    The command validates the message by the rules of the deployed stage before it puts the message into the
    mailbox; an error names the invalid attribute. Exit code 0: the message is in the mailbox, or was there
    already; with --wait, it was sent. 1: another message has the id; with --wait, the message was not sent,
    or had no outcome in time. 2: the message is invalid, or the stage cannot be reached.

    Example: mailroom send mail --to ada@example.com --subject Hello --text "Hi, Ada" --wait

    Example: mailroom send --from-message welcome-17 --to ada@new.example
    """
    typed = {
        "to": to[0] if to and len(to) == 1 else to,
        "subject": subject,
        "text": text,
        "template": template,
        "id": id_,
        "topic": topic,
        "lane": lane,
        "send_at": send_at,
        "callback_url": callback_url,
        "unless": [_condition(text) for text in unless or ()],
    }
    with aws_faults(stage):
        session = aws_session()
        base = read_item(file) if file else {}
        if from_message is not None:
            base = {**copy_of(session, stage, from_message, channel), **base}
        item = _draft(channel, base, typed, set_ or ())
        sent = put(session, stage, item)
        if wait and sent.result != "conflict":
            reader = reader_of(session, stage)
            with status("waiting", quiet=as_json) as show:
                sent = wait_for(reader, sent, wait_seconds, report=lambda word: show(f"waiting: {word}"))
    print_answer(sent, _show, as_json=as_json)
    bad = sent.result == "conflict" or (wait and sent.status not in GOOD)
    raise typer.Exit(1 if bad else 0)


def wait_for(
    reader: LedgerReader,
    sent: SendAnswer,
    seconds: float,
    *,
    report: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> SendAnswer:
    """Poll a message until it has an outcome or `seconds` have passed, and return the answer with its last
    status. `report` is called with each status."""
    deadline, pause = clock() + seconds, _FIRST_POLL
    while True:
        message = next(iter(reader.find(sent.id, sent.event_type)), None)
        report(message.status if message else "gone")
        if message is None:
            return sent
        if message.status not in UNDER_WAY or clock() + pause > deadline:
            error = message.error["message"] if message.error else None
            status, provider_id = message.status, message.provider_id
            return structs.replace(
                sent, status=status, waits_for=message.waits_for, error=error, provider_id=provider_id
            )
        sleep(pause)
        pause = min(_LONGEST_POLL, pause * 1.5)


def judge(session: "boto3.Session", stage: str, item: Mapping[str, Any]) -> "tuple[Rules, Preview]":
    """Validate an item by the rules of the stage. Return the rules, and a preview of the message as its
    sender would render it. Raises Invalid, which names the invalid attribute, or Malformed."""
    rules, s3 = rules_of(session, stage), session.client("s3")
    message = rules.validator(s3).validate(item)
    return rules, rules.previews(s3).look(message)


def put(session: "boto3.Session", stage: str, item: Mapping[str, Any]) -> SendAnswer:
    """Put an item into the mailbox. Raises Refused, which names the invalid attribute, if the item does not
    follow the stage's rules, and Refused if AWS does not store it."""
    try:
        rules, preview = judge(session, stage, item)
    except (Invalid, Malformed) as fault:
        raise Refused(ended(f"Not put: {fault}")) from None
    dynamodb = session.client("dynamodb", config=config_for_puts(1))
    written = rules.writer(dynamodb, session.client("s3")).put(item)
    if written.state in ("refused", "failed"):
        raise Refused(f"Not put: {written.error}.")
    return SendAnswer(
        id=item["id"],
        event_type=item["event_type"],
        stage=stage,
        result=written.state,
        unused=preview.unused,
        send_at=assumed_utc(item.get("send_at")),
    )


def _draft(
    channel: str | None,
    file_item: Mapping[str, Any],
    typed: Mapping[str, str | Sequence[Any] | None],
    sets: Sequence[str],
) -> dict[str, Any]:
    """Return the item: the attributes of the file, overridden by typed ones. Raises Refused if the channel is
    missing or unknown, if file and command name different channels, and if a value of --set is invalid."""
    item = dict(file_item)
    of_file = item.get("event_type")
    if None not in (channel, of_file) and of_file != channel:
        raise Refused(
            f"The file's event_type is {of_file!r:.60}, but the command says {channel}; leave one out."
        )
    kind = channel or of_file
    if not isinstance(kind, str) or kind not in CONTRACTS:
        channels = ", ".join(CONTRACTS)
        raise Refused(f"The channel is missing or unknown. Use one of {channels}: mailroom send mail --to …")
    item["event_type"] = kind
    item |= {name: value for name, value in typed.items() if value}
    item |= set_values(kind, sets)
    if item.get("id") is None:
        item["id"] = new_id(kind)
    return item


def _condition(text: str) -> dict[str, Any]:
    """Parse a condition `channel:id:status,status`. The id may contain colons."""
    channel, _, pair = text.partition(":")
    id_, _, statuses = pair.rpartition(":")
    return {"id": id_, "event_type": channel, "status": statuses.split(",")}


def copy_of(session: "boto3.Session", stage: str, id_: str, channel: str | None) -> dict[str, Any]:
    """Return a copy of a message for another recipient: without recipients and times, and with a new id that
    begins with the id of the message. Raises Refused if no message or several messages have the id."""
    kinds = [channel] if channel else list(CONTRACTS)
    mailbox, dynamodb = stage_name(stage, "mailbox"), session.client("dynamodb")
    keys = [where(Key(id_, kind)) for kind in kinds]
    items = batch_get(dynamodb, {mailbox: keys}, consistent=(mailbox,))[mailbox] if can_be_key(id_) else []
    if not items:
        raise Refused(f"The mailbox has no item of {id_!r:.200}; it may have expired. Write a new message.")
    if len(items) > 1:
        names = " and ".join(sorted(item["event_type"] for item in items))
        raise Refused(f"{names} have messages with that id; say which: mailroom send mail --from-message …")
    copied = {name: value for name, value in original(items[0]).items() if name not in _NOT_COPIED}
    return {**copied, "id": f"{_AGAIN.sub('', id_.replace('#', '-'))[:_COPIED_ID]}-again-{_random()}"}


def new_id(channel: str) -> str:
    """Return a unique id that is easy to read out, such as mail-20261121-221503-k7wq3f."""
    return f"{channel}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{_random()}"


def _random() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(_RANDOM))


def _show(sent: SendAnswer) -> None:
    print_line(f"{sent.id}  ({sent.event_type}, {sent.stage})", "bold")
    screen.print(_SAID[sent.result])
    if sent.send_at:
        print_line(f"Its send_at has no offset and counts as UTC: {sent.send_at}.")
    if sent.unused:
        print_line(f"Unused attributes: {', '.join(sent.unused)}; see `mailroom docs messages`.")
    if sent.status is not None:
        words = _WORDS.get(sent.status, sent.status)
        words = f"{words}: {sent.error}" if sent.error else words
        print_line(f"It waits for {WAITS_FOR[sent.waits_for]}" if sent.waits_for else f"It is {words}")
    if sent.status not in GOOD and sent.result != "conflict":
        command = f"mailroom messages show {quote(sent.id)} --channel {sent.event_type} --stage {sent.stage}"
        print_line(f"To see its progress: {command}")
