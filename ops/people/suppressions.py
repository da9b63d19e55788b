"""The suppression list, as an operator handles it: Mailroom's own, and for mail that of SES as well."""

from typing import Literal

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from mailroom.message.address import spellings, split, to_e164
from mailroom.recipients.choices import Suppression, Suppressions
from ops.stage import name

CHANNELS = ("mail", "sms", "push")
"""Those that have a list."""


class Lists:
    """One stage's list, and the account's in SES."""

    def __init__(self, session: boto3.Session, stage: str) -> None:
        self._list = Suppressions(session.client("dynamodb"), name(stage, "suppressions"))
        self._session = session

    def listed(self, channel: str | None) -> list[Suppression]:
        """Who is on the list, the newest first; of all channels, or of one."""
        found = (each for each in self._list.listed() if channel in (None, each.channel))
        return sorted(found, key=lambda each: (-each.at, each.channel, each.recipient))

    def find(self, recipient: str, channels: tuple[str, ...] = CHANNELS) -> list[Suppression]:
        """Why a recipient gets nothing, for each of the channels where that is so."""
        return [
            found
            for channel in channels
            for found in self._list.find(channel, forms(channel, recipient)).values()
        ]

    def lift(self, suppression: Suppression) -> bool:
        """Take a recipient off Mailroom's list. False: somebody else was faster."""
        return self._list.lift(suppression.recipient, suppression.channel)

    def lift_from_ses(self, recipient: str) -> Literal["lifted", "not_listed"]:
        """Take an address off SES's list, which all stages of the account share in this region.

        Raises ClientError or BotoCoreError where SES does not do it.
        """
        ses = self._session.client("sesv2")
        said: Literal["lifted", "not_listed"] = "not_listed"
        for address in forms("mail", recipient):
            try:
                ses.delete_suppressed_destination(EmailAddress=address)
                said = "lifted"
            except ses.exceptions.NotFoundException:
                continue
        return said


def forms(channel: str, recipient: str) -> tuple[str, ...]:
    """What a recipient may be called on a list: its canonical form, that of before, and what was typed.

    What was typed stays, so that an entry can be lifted however odd it is.
    """
    typed = recipient.strip()
    try:
        if channel == "mail":
            address = split(typed)[1]
            return tuple(dict.fromkeys((*spellings(address.lower()), address)))
        if channel == "sms":
            return tuple(dict.fromkeys((to_e164(typed), typed)))
    except ValueError:
        return (typed,)
    return (typed,)


FAULTS = (ClientError, BotoCoreError)
"""What `lift_from_ses` raises."""
