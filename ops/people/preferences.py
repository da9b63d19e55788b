"""People's choices, as an operator handles them: which topics they have opted out of."""

import boto3

from mailroom.aws.dynamo import plain, string
from mailroom.message.address import bare, to_e164
from mailroom.recipients.choices import OptOut, Preferences, opt_out_of
from ops.people.suppressions import forms
from ops.screen import Refused
from ops.stage import name

_ARN = "arn:"
"""How a push's endpoint or topic begins."""


class Choices:
    """One stage's."""

    def __init__(self, session: boto3.Session, stage: str) -> None:
        self._client = session.client("dynamodb")
        self._table = name(stage, "preferences")
        self._preferences = Preferences(self._client, self._table)

    def of(self, recipient: str, topic: str | None = None) -> list[OptOut]:
        """What a recipient has opted out of: of all topics, or of one."""
        found = [each for form in known_as(recipient) for each in self._of(form)]
        return [each for each in found if topic in (None, each.topic)]

    def opt_out(self, recipient: str, topic: str) -> bool:
        """Send them no more of a topic. False: they had opted out before. Raises Refused."""
        return self._preferences.opt_out(canonical(recipient), topic, "operator")

    def opt_in(self, recipient: str, topic: str) -> list[OptOut]:
        """Send them of a topic again. What stood there; []: they had not opted out."""
        found = self.of(recipient, topic)
        return [each for each in found if self._preferences.opt_in(each.recipient, each.topic)]

    def _of(self, recipient: str) -> list[OptOut]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="recipient = :recipient",
            ExpressionAttributeValues={":recipient": string(recipient)},
            ConsistentRead=True,
        )
        items = (opt_out_of(plain(item)) for page in pages for item in page["Items"])
        return [each for each in items if each is not None]


def known_as(recipient: str) -> tuple[str, ...]:
    """What a recipient may be called in the table: its canonical form, that of before, and what was typed, so
    that an entry can be undone however odd it is."""
    return tuple(dict.fromkeys((*forms("mail", recipient), *forms("sms", recipient))))


def canonical(recipient: str) -> str:
    """The form that messages are compared with. Raises Refused for what no message could go to."""
    typed = recipient.strip()
    for read in (bare, to_e164):
        try:
            return read(typed)
        except ValueError:
            continue
    if typed.startswith(_ARN):
        return typed
    raise Refused(f"{typed!r} is no mail address, no number such as +16175551234 and no endpoint's ARN.")
