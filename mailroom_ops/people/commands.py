"""The commands `people`: show why messages to people are not sent, stop and allow them, and erase people."""

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from rich.text import Text

from mailroom.search.finder import PAGE
from mailroom_ops.messages import filter_options, filters
from mailroom_ops.people.erase import erase
from mailroom_ops.people.opt_outs import OptedOut, OptOuts
from mailroom_ops.people.suppression_lists import CHANNELS, FAULTS, Lists, ProvidersList, SuppressedRecipient
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.screen import (
    Refused,
    aws_faults,
    confirm,
    errors,
    fold,
    print_answer,
    print_json,
    print_line,
    screen,
    stacked,
    table_of,
    whole,
)
from mailroom_ops.shared.terminal import Terminal
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Show why people get nothing; stop, allow and erase them.",
)


def _listed_channel(channel: str) -> str:
    if channel in ("", *CHANNELS):
        return channel
    raise typer.BadParameter(f"{channel!r} is not one of {', '.join(CHANNELS)}.")


Recipient = Annotated[str, typer.Argument(help="A mail address, a number such as +16175551234, or an ARN.")]
Topic = Annotated[str, typer.Option(help="The topic, as in the messages' attribute topic.")]
Channel = Annotated[str, typer.Option(callback=_listed_channel, help=f"The channel: {', '.join(CHANNELS)}.")]
Reason = Annotated[str, typer.Option("--why", help="The reason, which is stored.")]


class PeopleListed(Struct, frozen=True):
    """Output of `people list`, the newest first. `total` is the number of entries without --limit."""

    stage: str
    total: int
    suppressions: list[SuppressedRecipient]


class PersonAnswer(Struct, frozen=True):
    """Output of `people show` and `people stop`: the reasons why messages to a recipient are not sent."""

    stage: str
    suppressions: list[SuppressedRecipient]
    opt_outs: list[OptedOut]


class Allowed(Struct, frozen=True):
    """Output of `people allow`: the entries that were removed."""

    stage: str
    suppressions: list[SuppressedRecipient]
    opt_outs: list[OptedOut]
    ses: ProvidersList


@app.command("list")
def list_(
    stage: Stage = "dev",
    channel: Channel = "",
    *,
    since: filter_options.Since = "",
    until: filter_options.Until = "",
    limit: filter_options.Limit = None,
    as_json: AsJson = False,
) -> None:
    """Print the suppressed people, the newest first, and the message that caused each suppression.

    --since and --until are compared with the time of the suppression. People who have opted out of a topic
    are not on this list: see mailroom people show.

    Example: mailroom people list --stage prod --channel mail --since 24h
    """
    with aws_faults(stage):
        period = filters.Period.of(since, until, time.time())
        entries = Lists(aws_session(), stage).listed(channel, period)
    print_answer(PeopleListed(stage, len(entries), entries[: limit or PAGE]), _print_list, as_json=as_json)


@app.command()
def show(recipient: Recipient, stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """Print why messages to a recipient are not sent: the channels on which they are suppressed, and the
    topics that they have opted out of. Exit code 1: they are not suppressed, and have not opted out.

    Example: mailroom people show ada@example.com --stage prod
    """
    with aws_faults(stage):
        answer = _person(aws_session(), stage, recipient)
    otherwise = f"{recipient} is not suppressed in {stage}, and has not opted out of a topic."
    print_answer(answer, partial(_print_reasons, otherwise=otherwise), as_json=as_json)
    raise typer.Exit(0 if answer.suppressions or answer.opt_outs else 1)


@app.command()
def stop(
    recipient: Recipient,
    stage: Stage = "dev",
    *,
    topic: Topic = "",
    channel: Channel = "",
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Stop messages to a recipient: of a topic, or all on a channel. Then print everything that is stopped.

    --topic opts the recipient out, at their request. --channel puts them on the suppression list, and needs
    --why. Exit code 1: this was stopped already.

    Example: mailroom people stop ada@example.com --topic followers --stage prod

    Example: mailroom people stop ada@example.com --channel mail --why "asked by phone" --stage prod
    """
    with aws_faults(stage):
        _check_one(topic, channel)
        if channel and not reason.strip():
            raise Refused("--channel needs --why: the reason is stored on the suppression list.")
        session = aws_session()
        if topic:
            stopped = OptOuts(session, stage).opt_out(recipient, topic, reason)
        else:
            stopped = Lists(session, stage).add(recipient, channel, reason)
        answer = _person(session, stage, recipient)
    print_answer(answer, _print_reasons, as_json=as_json)
    raise typer.Exit(0 if stopped else 1)


@app.command()
def allow(
    recipient: Recipient,
    stage: Stage = "dev",
    *,
    topic: Topic = "",
    channel: Channel = "",
    reason: Reason = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Allow messages to a recipient again: of a topic, or on a channel.

    --topic ends an opt-out. Do this only if the recipient has asked for it.

    --channel takes the recipient off the suppression list. A new bounce or complaint adds them again. A
    person who opted out of text messages has to text START instead: until then, the provider refuses messages
    to the number, and each refusal adds the number again. The command also removes a mail address from the
    list of SES or Resend, which all stages in the account share (at SES, in the region), and enables the
    endpoint of a device that SNS has disabled.

    Exit code 1: messages were not stopped, or the provider failed.

    Example: mailroom people allow ada@example.com --topic followers --stage prod

    Example: mailroom people allow ada@example.com --channel mail --why "new mailbox" --stage prod
    """
    say = errors if as_json else screen
    with aws_faults(stage):
        _check_one(topic, channel)
        session = aws_session()
        if topic:
            answer = _opt_in(OptOuts(session, stage), stage, recipient, topic, reason, say, yes=yes)
        else:
            answer = _lift(Lists(session, stage), stage, recipient, channel, reason, say, yes=yes)
    if as_json:
        print_json(answer)
    allowed = answer.suppressions or answer.opt_outs or answer.ses == "lifted"
    raise typer.Exit(0 if allowed and answer.ses != "failed" else 1)


app.command()(erase)


def _check_one(topic: str, channel: str) -> None:
    """Raise Refused unless exactly one of the two options is used."""
    if bool(topic) == bool(channel):
        raise Refused(
            "Use either --topic or --channel: --topic for messages of one topic, out of which people opt "
            "themselves; --channel for all messages on a channel, such as after a bounce or a complaint."
        )


def _person(session: "boto3.Session", stage: str, recipient: str) -> PersonAnswer:
    """Return the reasons why messages to a recipient are not sent."""
    suppressions = Lists(session, stage).find(recipient)
    return PersonAnswer(stage, suppressions, OptOuts(session, stage).of(recipient))


def _opt_in(
    choices: OptOuts, stage: str, recipient: str, topic: str, reason: str, say: Terminal, *, yes: bool
) -> Allowed:
    """End an opt-out after a confirmation, and print the result."""
    opt_outs = choices.of(recipient, topic)
    for opt_out in opt_outs:
        print_line(opt_out.sentence, console=say)
    if opt_outs:
        confirm(f"Send {topic} of {stage} to it again? Do so only if they have asked for it.", yes=yes)
        opt_outs = choices.opt_in(recipient, topic, reason)
    for opt_out in opt_outs:
        print_line(f"{opt_out.recipient} gets {topic} of {stage} again.", console=say)
    if not opt_outs:
        print_line(f"{recipient} has not opted out of {topic} in {stage}.", console=say)
    return Allowed(stage, [], opt_outs, "not_asked")


def _lift(
    lists: Lists, stage: str, recipient: str, channel: str, reason: str, say: Terminal, *, yes: bool
) -> Allowed:
    """Take a recipient off the suppression list and the mail provider's list after a confirmation, and print
    the result. Raises botocore's errors."""
    entries = lists.find(recipient, (channel,))
    for entry in entries:
        print_line(entry.sentence, console=say)
    if not entries:
        print_line(f"{recipient} is not on the suppression list of {stage} for {channel}.", console=say)
        if channel != "mail":
            return Allowed(stage, [], [], "not_asked")
    confirm(_question(channel, lists, stage, listed=bool(entries)), yes=yes)
    ses = _lift_from_provider(lists, recipient, say) if channel == "mail" else "not_asked"
    lifted = [entry for entry in entries if lists.lift(entry, reason)]
    for entry in lifted:
        print_line(f"{entry.recipient} gets {channel} of {stage} again.", console=say)
    return Allowed(stage, lifted, [], ses)


def _lift_from_provider(lists: Lists, recipient: str, say: Terminal) -> ProvidersList:
    """Remove a recipient from the provider's list, and print the result. This has to come before the removal
    from Mailroom's list: a provider that still lists the recipient answers the next mail with a bounce, which
    adds the recipient to Mailroom's list again."""
    try:
        result = lists.lift_from_provider(recipient)
    except FAULTS as error:
        print_line(
            f"{lists.provider} did not remove {recipient} from its suppression list: {error}", console=say
        )
        say.print("While it is listed there, mails to it bounce: run this command again.", soft_wrap=True)
        return "failed"
    words = "was removed from" if result == "lifted" else "was not on"
    print_line(f"{recipient} {words} {lists.provider}'s own list.", console=say)
    return result


def _question(channel: str, lists: Lists, stage: str, *, listed: bool) -> str:
    if channel != "mail":
        return f"Remove it from the suppression list of {stage} for {channel}?"
    from_provider = f"from {lists.provider}'s own list"
    ours = f"Remove it from the suppression list of {stage} for mail"
    sentence = f"{ours} and {from_provider}, which the whole account shares?"
    return sentence if listed else f"Remove it {from_provider}?"


def _print_list(answer: PeopleListed) -> None:
    if answer.suppressions:
        columns = (whole("since (UTC), channel"), whole("reason"), fold("recipient", ratio=1))
        screen.print(table_of(*columns, rows=map(_cells, answer.suppressions)))
    cut = len(answer.suppressions) < answer.total
    newest = f"The newest {len(answer.suppressions):,} of " if cut else ""
    screen.print(f"{newest}{answer.total:,} on the suppression list of {answer.stage}.")
    if cut:
        screen.print(f"More: --limit {answer.total}")


def _cells(entry: SuppressedRecipient) -> tuple[str | Text, ...]:
    since = stacked(short(entry.since).removesuffix(" UTC"), entry.channel)
    caused = f"by message {entry.message_id}" if entry.message_id else ""
    return since, entry.reason, stacked(entry.recipient, caused, entry.detail)


def _print_reasons(answer: PersonAnswer, otherwise: str = "") -> None:
    sentences = [entry.sentence for entry in answer.suppressions]
    sentences += [choice.sentence for choice in answer.opt_outs]
    for sentence in sentences or [otherwise]:
        print_line(sentence)
