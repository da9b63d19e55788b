"""The commands `suppressions`: show and change Mailroom's suppression list and, for mail, the provider's
list."""

import json
import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct
from rich.text import Text

from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import iso, milliseconds
from mailroom.message.message import Message
from mailroom.providers.sns.sender import endpoint_of
from mailroom.recipients.choices import Reason, Suppression, Suppressions
from mailroom_ops.people.recipients import canonical_at, forms_at
from mailroom_ops.shared.deeds import Deeds, with_names
from mailroom_ops.shared.deployed_stage import aws_session, function_variables, name
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.resend_account import RESEND_FAULTS, ResendAccount, mail_providers
from mailroom_ops.shared.screen import (
    NotDeployed,
    Refused,
    aws_faults,
    errors,
    fold,
    plain,
    print_answer,
    print_json,
    print_line,
    screen,
    table_of,
    whole,
)
from mailroom_ops.shared.terminal import Terminal
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Show the suppression list; add and remove recipients."
)

CHANNELS = tuple(
    channel for channel, contract in CONTRACTS.items() if contract.addressees is not Message.addressees
)
"""Channels whose recipients can be on the suppression list."""
FAULTS = (ClientError, BotoCoreError, *RESEND_FAULTS)
"""Exceptions that `lift_from_provider` raises."""
Recipient = Annotated[str, typer.Argument(help="A mail address, a number such as +16175551234, or an ARN.")]


def _listed_channel(channel: str | None) -> str | None:
    if channel in (None, *CHANNELS):
        return channel
    raise typer.BadParameter(f"{channel!r} is not one of {', '.join(CHANNELS)}.")


WHY = {
    "bounce": "a message to it bounced permanently",
    "complaint": "the recipient complained",
    "gone": "its provider reports that it no longer exists",
    "stop": "the recipient opted out",
    "operator": "an operator put it on the list",
}


ProvidersList = Literal["lifted", "not_listed", "failed", "kept", "not_asked"]
"""Result for an address on the mail provider's own suppression list (of SES or Resend)."""


class SuppressedRecipient(Struct, frozen=True):
    """Recipient who is suppressed on a channel."""

    recipient: str
    channel: str
    reason: Reason
    since: str
    """Time of the suppression (ISO 8601)."""
    detail: str
    """Explanation for people."""
    message_id: str
    """Id of the message whose event caused the suppression; empty if there was another cause."""
    actor: str = ""
    """ARN of the operator who put the recipient on the list; empty if there was another cause."""

    @classmethod
    def of(cls, entry: Suppression) -> "SuppressedRecipient":
        """Convert an entry of the list."""
        cause = iso(entry.at / 1000), entry.detail, entry.message_id, entry.actor
        return cls(entry.recipient, entry.channel, entry.reason, *cause)

    @property
    def why(self) -> str:
        """Reason in words."""
        return WHY[self.reason].replace("an operator", with_names(self.actor) or "an operator")


class SuppressionsAnswer(Struct, frozen=True):
    """Output of `suppressions list`, the newest first, and of `suppressions show` and `add`."""

    stage: str
    suppressions: list[SuppressedRecipient]


class Lifted(Struct, frozen=True):
    """Output of `suppressions lift`: the entries that were removed from a channel's list."""

    stage: str
    channel: str
    lifted: list[SuppressedRecipient]
    ses: ProvidersList


class Lists:
    """Reads and changes the suppression list of one stage, and the list of its account at the mail
    provider."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        self._list = Suppressions(session.client("dynamodb"), name(stage, "suppressions"))
        self._session, self._stage, self._deeds = session, stage, Deeds(session, stage)

    def listed(self, channel: str | None) -> list[SuppressedRecipient]:
        """Return the entries of the list, the newest first; of all channels, or of one."""
        entries = [entry for entry in self._list.listed() if channel in (None, entry.channel)]
        entries.sort(key=lambda entry: (-entry.at, entry.channel, entry.recipient))
        return [SuppressedRecipient.of(entry) for entry in entries]

    def find(self, recipient: str, channels: tuple[str, ...] = CHANNELS) -> list[SuppressedRecipient]:
        """Return an entry for each of the channels on which a recipient is suppressed."""
        forms = self._forms(recipient)
        entries = (entry for channel in channels for entry in self._list.find(channel, forms).values())
        return [SuppressedRecipient.of(entry) for entry in entries]

    def canonical(self, channel: str, recipient: str) -> str:
        """Return a recipient in the form with which recipients of messages are compared. Raises Refused if
        the text is not a recipient of the channel, or if the channel is without a suppression list."""
        if channel not in CHANNELS:
            raise Refused(f"channel: {channel!r:.40} has no suppressions; use {', '.join(CHANNELS)}.")
        return canonical_at(self._session, self._stage, recipient, channel)

    def _forms(self, recipient: str) -> tuple[str, ...]:
        return forms_at(self._session, self._stage, recipient)

    def add(self, recipient: str, channel: str, reason: str) -> bool:
        """Add a recipient to Mailroom's list, in its canonical form and with the reason. Return False if the
        recipient was listed before. Raises Refused if the text is not a recipient of the channel."""
        form = self.canonical(channel, recipient)
        self._deeds.record(f"suppress {channel}", [self._deeds.person(form)], reason)
        now_ms, actor = milliseconds(time.time()), self._deeds.by()
        return self._list.mark(Suppression(form, channel, "operator", now_ms, reason, actor=actor))

    def lift(self, suppression: SuppressedRecipient, reason: str = "") -> bool:
        """Remove a recipient from Mailroom's list, and store the reason. Return False if the recipient was
        not listed any more.

        The endpoint of a device that was gone is enabled first: otherwise SNS refuses the next push, and the
        refusal adds the device to the list. Raises botocore's errors."""
        person = self._deeds.person(suppression.recipient)
        self._deeds.record(f"lift {suppression.channel}", [person], reason)
        if suppression.channel == "push" and suppression.reason == "gone":
            self._enable(suppression.recipient)
        return self._list.lift(suppression.recipient, suppression.channel, reason)

    def _enable(self, device: str) -> None:
        """Enable the endpoint of a device at SNS. A new registration of the app does not: SNS returns the
        disabled endpoint.

        Source: https://docs.aws.amazon.com/sns/latest/dg/mobile-platform-endpoint.html (2026-11-29).
        """
        sns = self._session.client("sns")
        application, _, token = device.partition("#")
        # The endpoint may have been deleted, and the stage may no longer have the application.
        with suppress(NotDeployed, KeyError, sns.exceptions.NotFoundException):
            if token:
                variables = function_variables(self._session.client("lambda"), name(self._stage, "send-push"))
                device = endpoint_of(sns, json.loads(variables["PLATFORM_APPLICATIONS"])[application], token)
            sns.set_endpoint_attributes(EndpointArn=device, Attributes={"Enabled": "true"})

    @cached_property
    def providers(self) -> dict[str, ResendAccount | None]:
        """Mail providers of the stage, each with a suppression list of its own: see `mail_providers`."""
        return mail_providers(self._session, self._stage)

    @property
    def provider(self) -> str:
        """Names of the stage's mail providers."""
        return " and ".join(self.providers)

    def lift_from_provider(self, recipient: str) -> Literal["lifted", "not_listed"]:
        """Remove an address from each mail provider's own suppression list, which all stages in the account
        share.

        Raises one of FAULTS if a provider does not remove it; the other provider is asked as well.
        """
        self._deeds.record("lift mail at the provider", [self._deeds.person(recipient)])
        results: list[str] = []
        faults: list[Exception] = []
        for resend in self.providers.values():
            try:
                for address in self._forms(recipient):
                    lifted = self._lift_from_ses(address) if resend is None else resend.lift(address)
                    results.append(lifted)
            except FAULTS as fault:
                faults.append(fault)
        if faults:
            raise faults[0]
        return "lifted" if "lifted" in results else "not_listed"

    def _lift_from_ses(self, address: str) -> Literal["lifted", "not_listed"]:
        ses = self._session.client("sesv2")
        try:
            ses.delete_suppressed_destination(EmailAddress=address)
        except ses.exceptions.NotFoundException:
            return "not_listed"
        return "lifted"


@app.command("list")
def list_(
    stage: Stage = "dev",
    channel: Annotated[
        str | None, typer.Option(callback=_listed_channel, help=f"Only this channel: {', '.join(CHANNELS)}.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Print the suppressed recipients, the newest first, and the message that caused each suppression.

    Example: mailroom suppressions list --stage prod --channel mail
    """
    with aws_faults(stage):
        entries = Lists(aws_session(), stage).listed(channel)
    if as_json:
        print_json(SuppressionsAnswer(stage, entries))
        return
    if entries:
        columns = (whole("since (UTC)"), whole("channel"), whole("reason"), fold("recipient", ratio=1))
        screen.print(table_of(*columns, rows=map(_cells, entries)))
    screen.print(f"{len(entries)} on the suppression list of {stage}.")


@app.command()
def show(recipient: Recipient, stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """Print why a recipient is suppressed. Exit code 1: the recipient is not on Mailroom's list.

    Example: mailroom suppressions show ada@example.com --stage prod
    """
    with aws_faults(stage):
        entries = Lists(aws_session(), stage).find(recipient)
    if entries or as_json:
        print_answer(SuppressionsAnswer(stage, entries), _print_reasons, as_json=as_json)
    else:
        print_line(f"{recipient} is not on the suppression list of {stage}.")
    raise typer.Exit(0 if entries else 1)


@app.command()
def add(
    recipient: Recipient,
    channel: Annotated[
        str,
        typer.Option(callback=_listed_channel, help=f"Send nothing on this channel: {', '.join(CHANNELS)}."),
    ],
    reason: Annotated[str, typer.Option(help="The reason, which is stored with the entry.")],
    stage: Stage = "dev",
    *,
    as_json: AsJson = False,
) -> None:
    """Add a recipient to the suppression list: it gets no messages on the channel until you lift it.

    For a single topic, use mailroom preferences opt-out. Exit code 1: the recipient was on the list already.

    Example: mailroom suppressions add ada@example.com --channel mail --reason "asked by phone" --stage prod
    """
    with aws_faults(stage):
        lists = Lists(aws_session(), stage)
        added = lists.add(recipient, channel, reason)
        entries = lists.find(recipient, (channel,))
    print_answer(SuppressionsAnswer(stage, entries), _print_reasons, as_json=as_json)
    raise typer.Exit(0 if added else 1)


@app.command()
def lift(
    recipient: Recipient,
    channel: Annotated[
        str,
        typer.Option(
            callback=_listed_channel, help=f"Allow messages on this channel again: {', '.join(CHANNELS)}."
        ),
    ],
    stage: Stage = "dev",
    *,
    reason: Annotated[str, typer.Option(help="The reason for the removal, which is stored.")] = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove a recipient from the suppression list. A new bounce or complaint adds the recipient again.

    A person who opted out of text messages has to text START instead: until then, the provider refuses
    messages to the number, and each refusal adds the number again.

    The command also removes a mail address from the list of SES or Resend, which all stages in the account
    share (at SES, in the region), and enables the endpoint of a device that SNS has disabled. Exit code 1:
    the recipient was not listed, or the provider failed.

    Example: mailroom suppressions lift ada@example.com --channel mail --stage prod
    """
    say = errors if as_json else screen
    with aws_faults(stage):
        lists = Lists(aws_session(), stage)
        entries = lists.find(recipient, (channel,))
    for entry in entries:
        print_line(_sentence(entry), console=say)
    ses: ProvidersList = "not_asked"
    lifted: list[SuppressedRecipient] = []
    if not entries:
        print_line(f"{recipient} is not on the suppression list of {stage} for {channel}.", console=say)
    if entries or channel == "mail":
        if not yes:
            typer.confirm(_question(channel, lists, stage, listed=bool(entries)), abort=True, err=as_json)
        ses = _lift_from_provider(lists, recipient, say) if channel == "mail" else "not_asked"
        with aws_faults(stage):
            lifted = [entry for entry in entries if lists.lift(entry, reason)]
    for entry in lifted:
        print_line(f"{entry.recipient} gets {channel} of {stage} again.", console=say)
    if as_json:
        print_json(Lifted(stage, channel, lifted, ses))
    raise typer.Exit(0 if ses != "failed" and (lifted or ses == "lifted") else 1)


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
    whole = f"{ours} and {from_provider}, which the whole account shares?"
    return whole if listed else f"Remove it {from_provider}?"


def _print_reasons(answer: SuppressionsAnswer) -> None:
    for suppression in answer.suppressions:
        print_line(_sentence(suppression))


def _sentence(entry: SuppressedRecipient) -> str:
    cause = f" Caused by message {entry.message_id}." if entry.message_id else ""
    detail = f" ({entry.detail})" if entry.detail else ""
    since = f"since {short(entry.since)}: {entry.why}{detail}"
    return f"{entry.recipient} has received no {entry.channel} {since}.{cause}"


def _cells(entry: SuppressedRecipient) -> tuple[str | Text, ...]:
    # The message and the detail have a line each: side by side they would be cut at 80 columns.
    caused = f"by message {entry.message_id}" if entry.message_id else ""
    recipient = Text("\n").join(plain(line) for line in (entry.recipient, caused, entry.detail) if line)
    return short(entry.since).removesuffix(" UTC"), entry.channel, entry.reason, recipient
