"""Opt-outs of a deployed stage."""

from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.clock import iso
from mailroom.recipients.choices import OptOut, Preferences, opt_out_of
from mailroom_ops.people.recipients import canonical_at, forms_at
from mailroom_ops.shared.deeds import Deeds, with_names
from mailroom_ops.shared.deployed_stage import name
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3

_HOW = {
    "one_click": "with the button of their mail program",
    "page": "on the page that a mail links to",
    "preferences": "on their page of preferences",
    "api": "by the API, through its caller {actor}",
    "command": "by {actor} (command)",
    "console": "by {actor} (console)",
}


class OptedOut(Struct, frozen=True):
    """Opt-out of a recipient from a topic. `by` is the way in which the recipient opted out, and `actor` the
    caller of the API or the operator, if it was not the recipient."""

    recipient: str
    topic: str
    since: str
    by: str
    actor: str

    @classmethod
    def of(cls, choice: OptOut) -> "OptedOut":
        """Convert an entry of the table of preferences."""
        by, since = choice.by.replace("-", "_"), iso(choice.opted_out_at / 1000)
        return cls(choice.recipient, choice.topic, since, by, choice.actor)

    @property
    def how(self) -> str:
        """Way, and person or caller, in words."""
        return _HOW[self.by].format(actor=with_names(self.actor))

    @property
    def sentence(self) -> str:
        """Sentence for people."""
        since = short(self.since)
        return f"{self.recipient} has received no {self.topic} since {since}: opted out {self.how}."


class OptOuts:
    """Reads and changes the opt-outs of one stage."""

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        self._session, self._stage, self._deeds = session, stage, Deeds(session, stage)
        self._preferences = Preferences(session.client("dynamodb"), name(stage, "preferences"))

    def of(self, recipient: str, topic: str | None = None) -> list[OptedOut]:
        """Return the opt-outs of a recipient in all spellings, of all topics or of one."""
        forms = forms_at(self._session, self._stage, recipient)
        choices = filter(None, map(opt_out_of, self._preferences.items(forms)))
        return [OptedOut.of(choice) for choice in choices if topic in (None, choice.topic)]

    def opt_out(self, recipient: str, topic: str, reason: str = "") -> bool:
        """Opt a recipient out of a topic, for the reason. Return False if the recipient had opted out before.
        Raises Refused if the text is not a recipient."""
        form = canonical_at(self._session, self._stage, recipient)
        self._deeds.record(f"opt out of {topic}", [self._deeds.person(form)], reason)
        return self._preferences.opt_out(form, topic, self._deeds.way, self._deeds.by())

    def opt_in(self, recipient: str, topic: str, reason: str = "") -> list[OptedOut]:
        """End an opt-out of a topic, for the reason. Return the removed entries; the list is empty if the
        recipient had not opted out."""
        choices = self.of(recipient, topic)
        people = {self._deeds.person(choice.recipient) for choice in choices}
        self._deeds.record(f"opt in to {topic}", people, reason)
        return [
            choice
            for choice in choices
            if self._preferences.opt_in(choice.recipient, topic, self._deeds.way, actor=self._deeds.by())
        ]
