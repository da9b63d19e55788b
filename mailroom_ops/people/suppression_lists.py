"""Suppression lists: of a deployed stage, and of its mail providers."""

import json
import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import iso, milliseconds
from mailroom.message.message import Message
from mailroom.recipients.choices import Reason, Suppression, Suppressions
from mailroom_ops.messages.filters import Period
from mailroom_ops.people.recipients import canonical_at, forms_at
from mailroom_ops.shared.deeds import Deeds, with_names
from mailroom_ops.shared.deployed_stage import function_variables, name
from mailroom_ops.shared.refusals import RESEND_FAULTS, NotDeployed, Refused
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3

    from mailroom_ops.shared.resend_account import ResendAccount

CHANNELS = tuple(
    channel for channel, contract in CONTRACTS.items() if contract.addressees is not Message.addressees
)
"""Channels whose recipients can be on the suppression list."""
FAULTS = (ClientError, BotoCoreError, *RESEND_FAULTS)
"""Exceptions that `lift_from_provider` raises."""
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

    @property
    def sentence(self) -> str:
        """Sentence for people."""
        cause = f" Caused by message {self.message_id}." if self.message_id else ""
        detail = f" ({self.detail})" if self.detail else ""
        since = f"since {short(self.since)}: {self.why}{detail}"
        return f"{self.recipient} has received no {self.channel} {since}.{cause}"


class Lists:
    """Reads and changes the suppression list of one stage, and the list of its account at the mail
    provider."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        self._list = Suppressions(session.client("dynamodb"), name(stage, "suppressions"))
        self._session, self._stage, self._deeds = session, stage, Deeds(session, stage)

    def listed(self, channel: str, period: Period) -> list[SuppressedRecipient]:
        """Return the entries of the list in a period, the newest first; of one channel, or of all if
        `channel` is empty."""
        entries = [
            entry
            for entry in self._list.listed()
            if channel in ("", entry.channel) and period.contains(entry.at)
        ]
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
        # Imported here, because only this needs the sender of push messages.
        from mailroom.providers.sns.sender import endpoint_of

        sns = self._session.client("sns")
        application, _, token = device.partition("#")
        # The endpoint may have been deleted, and the stage may no longer have the application.
        with suppress(NotDeployed, KeyError, sns.exceptions.NotFoundException):
            if token:
                variables = function_variables(self._session.client("lambda"), name(self._stage, "send-push"))
                device = endpoint_of(sns, json.loads(variables["PLATFORM_APPLICATIONS"])[application], token)
            sns.set_endpoint_attributes(EndpointArn=device, Attributes={"Enabled": "true"})

    @cached_property
    def providers(self) -> "dict[str, ResendAccount | None]":
        """Mail providers of the stage, each with a suppression list of its own: see `mail_providers`."""
        # Imported here, because only this needs the client of Resend.
        from mailroom_ops.shared.resend_account import mail_providers

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
