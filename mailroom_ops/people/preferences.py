"""Topics that people have opted out of, and changes of them on people's behalf."""

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from mailroom.aws.dynamo_values import plain as plain_item
from mailroom.aws.dynamo_values import string
from mailroom.clock import iso
from mailroom.recipients.choices import OptOut, Preferences, opt_out_of
from mailroom_ops.people.recipients import canonical_at, forms_at
from mailroom_ops.shared.deeds import Deeds
from mailroom_ops.shared.deployed_stage import name
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3

_BY = {
    "one_click": "with the button of their mail program",
    "page": "on the page that a mail links to",
    "operator": "through an operator",
}


class OptedOut(Struct, frozen=True):
    """Opt-out of a recipient from a topic. `by` is the way in which the recipient opted out."""

    recipient: str
    topic: str
    since: str
    by: Literal["one_click", "page", "operator"]

    @classmethod
    def of(cls, choice: OptOut) -> "OptedOut":
        """Convert an entry of the table of preferences."""
        by: Literal["one_click", "page", "operator"] = "one_click" if choice.by == "one-click" else choice.by
        return cls(choice.recipient, choice.topic, iso(choice.opted_out_at / 1000), by)

    @property
    def sentence(self) -> str:
        """Sentence for people."""
        since = short(self.since)
        return f"{self.recipient} has received no {self.topic} since {since}: opted out {_BY[self.by]}."


class OptOuts:
    """Reads and changes the opt-outs of one stage."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        self._session, self._stage, self._deeds = session, stage, Deeds(session, stage)
        self._client = session.client("dynamodb")
        self._table = name(stage, "preferences")
        self._preferences = Preferences(self._client, self._table)

    def of(self, recipient: str, topic: str | None = None) -> list[OptedOut]:
        """Return the opt-outs of a recipient in all spellings, of all topics or of one."""
        forms = forms_at(self._session, self._stage, recipient)
        choices = [OptedOut.of(choice) for form in forms for choice in self._of(form)]
        return [choice for choice in choices if topic in (None, choice.topic)]

    def opt_out(self, recipient: str, topic: str, reason: str = "") -> bool:
        """Opt a recipient out of a topic, for the reason. Return False if the recipient had opted out before.
        Raises Refused if the text is not a recipient."""
        form = canonical_at(self._session, self._stage, recipient)
        self._deeds.record(f"opt out of {topic}", [self._deeds.person(form)], reason)
        return self._preferences.opt_out(form, topic, "operator")

    def opt_in(self, recipient: str, topic: str, reason: str = "") -> list[OptedOut]:
        """End an opt-out of a topic, for the reason. Return the removed entries; the list is empty if the
        recipient had not opted out."""
        choices = self.of(recipient, topic)
        people = {self._deeds.person(choice.recipient) for choice in choices}
        self._deeds.record(f"opt in to {topic}", people, reason)
        return [choice for choice in choices if self._preferences.opt_in(choice.recipient, choice.topic)]

    def _of(self, recipient: str) -> list[OptOut]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="recipient = :recipient",
            ExpressionAttributeValues={":recipient": string(recipient)},
            ConsistentRead=True,
        )
        items = (opt_out_of(plain_item(item)) for page in pages for item in page["Items"])
        return [choice for choice in items if choice is not None]
