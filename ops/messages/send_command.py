"""`send`: one message into the mailbox."""

from shlex import quote
from typing import Annotated

import boto3
import typer

from ops.messages.draft import draft, read
from ops.messages.sending import GOOD, Post, Sent
from ops.screen import AsJson, Stage, aws_faults, errors, plain, print_json, screen

Channel = Annotated[str | None, typer.Argument(help="mail, sms, push, fax or webhook.")]
To = Annotated[list[str] | None, typer.Option(help="Whom it is for; of a mail as often as need be.")]
Id = Annotated[str | None, typer.Option("--id", help="Without it, a new one, which is printed.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", help="attribute=value; what is no text is written as JSON.")
]
File = Annotated[str | None, typer.Option("--file", help="A JSON object; - is standard input.")]
Wait = Annotated[bool, typer.Option("--wait", help="Until it has an outcome.")]
Seconds = Annotated[float, typer.Option(min=0, help="For how long --wait does, in seconds.")]
_SAID = {
    "accepted": "It is in the mailbox.",
    "existed": "It exists, with the same content: nothing was put.",
    "conflict": "That id is another message's, which stays. Use a new one.",
}


def send(
    channel: Channel = None,
    stage: Stage = "dev",
    *,
    to: To = None,
    subject: Annotated[str | None, typer.Option(help="Of a mail.")] = None,
    text: Annotated[str | None, typer.Option(help="Of a mail or an SMS.")] = None,
    template: Annotated[str | None, typer.Option(help="A template's name, instead.")] = None,
    id_: Id = None,
    set_: Sets = None,
    topic: Annotated[str | None, typer.Option(help="What recipients can opt out of.")] = None,
    lane: Annotated[str | None, typer.Option(help="normal or bulk.")] = None,
    send_at: Annotated[str | None, typer.Option(help="ISO 8601, such as 2026-11-21T09:00:00Z.")] = None,
    callback_url: Annotated[str | None, typer.Option(help="Told of each outcome.")] = None,
    file: File = None,
    wait: Wait = False,
    wait_seconds: Seconds = 60.0,
    as_json: AsJson = False,
) -> None:
    """Send one message: from options, from a JSON file, or from a file with options laid over it.

    It is checked as the stage itself would before it is put, and the sentence names the attribute at fault.
    Exit code 0: it is in the mailbox, or the very same was there already; with --wait, it was sent. 1: the id
    is another message's; with --wait, it has failed or has no outcome in time. 2: it is no message that this
    stage takes.

    Example: mailroom send mail --to ada@example.com --subject Hello --text "Hi, Ada" --wait
    """
    typed = {
        "to": to,
        "subject": subject,
        "text": text,
        "template": template,
        "id": id_,
        "topic": topic,
        "lane": lane,
        "send_at": send_at,
        "callback_url": callback_url,
    }
    with aws_faults(stage):
        item = draft(channel, read(file) if file else {}, typed, set_ or ())
        post = Post(boto3.Session(), stage)
        sent = post.put(item)
        if wait and sent.result != "conflict":
            sent = _waited(post, sent, wait_seconds, quiet=as_json)
    if as_json:
        print_json(sent)
    else:
        _show(sent)
    bad = sent.result == "conflict" or (wait and sent.status not in GOOD)
    raise typer.Exit(1 if bad else 0)


def _waited(post: Post, sent: Sent, seconds: float, *, quiet: bool) -> Sent:
    if quiet:
        return post.wait(sent, seconds)
    with errors.status("waiting") as shown:
        return post.wait(sent, seconds, seen=lambda status: shown.update(f"waiting: {status}"))


def _show(sent: Sent) -> None:
    screen.print(plain(f"{sent.id}  ({sent.event_type}, {sent.stage})"), style="bold", soft_wrap=True)
    screen.print(_SAID[sent.result])
    if sent.status is not None:
        words = f"{sent.status}: {sent.error}" if sent.error else sent.status
        screen.print(plain(f"It is {words}"), soft_wrap=True)
    if sent.status not in GOOD and sent.result != "conflict":
        where = f"mailroom status {quote(sent.id)} --channel {sent.event_type} --stage {sent.stage}"
        screen.print(plain(f"Where it is: {where}"), soft_wrap=True)
