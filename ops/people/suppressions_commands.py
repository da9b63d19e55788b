"""`suppressions`: who gets nothing more, why, and how that is ended."""

from typing import Annotated, Literal

import boto3
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from mailroom.recipients.choices import Suppression
from ops.people.answers import Lifted, Ses, Suppressed, SuppressionsAnswer, suppressed
from ops.people.suppressions import FAULTS, Lists
from ops.screen import AsJson, Stage, Yes, aws_faults, errors, plain, screen, tell
from ops.times import short

app = typer.Typer(no_args_is_help=True, help="Recipients to whom nothing more is sent: see them, lift them.")

Channel = Literal["mail", "sms", "push"]
Recipient = Annotated[str, typer.Argument(help="A mail address, a number such as +16175551234, an endpoint.")]

_WHY = {
    "bounce": "a message to it came back for good",
    "complaint": "it complained",
    "gone": "its provider says that it is no more",
}


@app.command("list")
def list_(
    stage: Stage = "dev",
    channel: Annotated[Channel | None, typer.Option(help="That channel's alone.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Print who is on the list, the newest first, and by which message it was told.

    Example: mailroom suppressions list --stage prod --channel mail
    """
    with aws_faults(stage):
        found = [suppressed(each) for each in Lists(boto3.Session(), stage).listed(channel)]
    if as_json:
        tell(SuppressionsAnswer(stage, found))
        return
    if found:
        screen.print(_table(found))
    screen.print(f"{len(found)} on the list of {stage}.")


@app.command()
def show(recipient: Recipient, stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """Say why a recipient gets nothing. Exit code 1: it is on no list of Mailroom's.

    Example: mailroom suppressions show ada@example.com --stage prod
    """
    with aws_faults(stage):
        found = [suppressed(each) for each in Lists(boto3.Session(), stage).find(recipient)]
    if as_json:
        tell(SuppressionsAnswer(stage, found))
    elif found:
        for each in found:
            screen.print(plain(_sentence(each)), soft_wrap=True)
    else:
        screen.print(plain(f"{recipient} is not on the list of {stage}."), soft_wrap=True)
    raise typer.Exit(0 if found else 1)


@app.command()
def lift(
    recipient: Recipient,
    channel: Annotated[Channel, typer.Option(help="The channel that it shall get messages on again.")],
    stage: Stage = "dev",
    *,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Take a recipient off the list, so that it gets messages again; a new bounce or complaint puts it back.

    An address of mail is taken off SES's list as well, which all stages of the account share in this region.
    Exit code 1: it was on no list, or SES did not do its part.

    Example: mailroom suppressions lift ada@example.com --channel mail --stage prod
    """
    say = errors if as_json else screen
    with aws_faults(stage):
        lists = Lists(boto3.Session(), stage)
        found = lists.find(recipient, (channel,))
    for each in found:
        say.print(plain(_sentence(suppressed(each))), soft_wrap=True)
    ses: Ses = "not_asked"
    lifted: list[Suppression] = []
    if not found:
        say.print(plain(f"{recipient} is not on the {channel} list of {stage}."), soft_wrap=True)
    if found or channel == "mail":
        if not yes:
            typer.confirm(_question(channel, stage, listed=bool(found)), abort=True, err=as_json)
        ses = _lift_from_ses(lists, recipient, say) if channel == "mail" else "not_asked"
        with aws_faults(stage):
            lifted = [each for each in found if lists.lift(each)]
    for each in lifted:
        say.print(plain(f"{each.recipient} gets {channel} of {stage} again."), soft_wrap=True)
    if as_json:
        tell(Lifted(stage, channel, [suppressed(each) for each in lifted], ses))
    raise typer.Exit(0 if ses != "failed" and (lifted or ses == "lifted") else 1)


def _lift_from_ses(lists: Lists, recipient: str, say: Console) -> Ses:
    """Before our own list: SES would answer the next mail with a bounce, which marks the recipient anew."""
    try:
        said = lists.lift_from_ses(recipient)
    except FAULTS as error:
        say.print(plain(f"SES did not take {recipient} off its own list: {error}"), soft_wrap=True)
        say.print(
            "It bounces the next mail by itself until that is done: run this command again, or "
            "`aws sesv2 delete-suppressed-destination`.",
            soft_wrap=True,
        )
        return "failed"
    where = "was taken off" if said == "lifted" else "was not on"
    say.print(plain(f"{recipient} {where} SES's own list."), soft_wrap=True)
    return said


def _question(channel: str, stage: str, *, listed: bool) -> str:
    also = " and off SES's own, which the whole account shares" if channel == "mail" else ""
    return f"Take it off the {channel} list of {stage}{also}?" if listed else "Take it off SES's own list?"


def _sentence(found: Suppressed) -> str:
    told = f" Told by message {found.message_id}." if found.message_id else ""
    detail = f" ({found.detail})" if found.detail else ""
    since = f"since {short(found.since)}: {_WHY[found.reason]}{detail}"
    return f"{found.recipient} gets no {found.channel} {since}.{told}"


def _table(found: list[Suppressed]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("recipient", overflow="fold", min_width=20)
    table.add_column("channel")
    table.add_column("reason")
    table.add_column("since (UTC)", no_wrap=True)
    table.add_column("message", overflow="fold", min_width=12)
    table.add_column("detail", overflow="fold", ratio=1)
    for each in found:
        table.add_row(
            plain(each.recipient),
            each.channel,
            each.reason,
            short(each.since).removesuffix(" UTC"),
            plain(each.message_id),
            plain(each.detail),
        )
    return table
