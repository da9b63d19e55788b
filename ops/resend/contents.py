"""What a message would say if it was sent again now, and whether anything about that forbids it."""

from typing import Any

from mailroom.aws.dynamo import plain, string
from mailroom.errors import Invalid
from mailroom.message.message import Message
from mailroom.recipients.choices import Choices, Preferences, Suppressions, Wanted
from ops.resend.copies import Copies, Item, fax_of
from ops.resend.deployed import Deployed
from ops.resend.ids import Asked
from ops.resend.judge import Verdict

_CHOSEN = ("mail", "sms", "push")
"""Channels that people can be suppressed on, or opt out of a topic."""


def items_of(deployed: Deployed, table: str, asked: Asked) -> list[dict[str, Any]]:
    """A table's items of that id, of all channels where none is named."""
    condition, values = "id = :id", {":id": string(asked.id)}
    if asked.event_type:
        condition += " AND event_type = :event_type"
        values[":event_type"] = string(asked.event_type)
    reply = deployed.dynamodb.query(
        TableName=table,
        KeyConditionExpression=condition,
        ExpressionAttributeValues=values,
        ConsistentRead=True,
    )
    return [plain(item) for item in reply["Items"]]


def next_attempt(found: Item) -> int:
    """The number of the attempt that follows, by the ledger's item."""
    return int(found.get("attempts", 0)) + 1


class Contents:
    """Of one stage. With `force` a message may be for people who get nothing: its sender sees to that."""

    def __init__(self, deployed: Deployed, copies: Copies, *, force: bool) -> None:
        self._deployed = deployed
        self._copies = copies
        self._force = force
        self._choices = Choices(
            Suppressions(deployed.dynamodb, deployed.name("suppressions")),
            Preferences(deployed.dynamodb, deployed.name("preferences")),
        )

    def of(self, found: Item) -> Item | None:
        """What would be sent: the mailbox's item, a fax by what the ledger kept. None: it is gone."""
        if found["event_type"] == "fax":
            return fax_of(found)
        items = items_of(self._deployed, self._deployed.mailbox, Asked(found["id"], found["event_type"]))
        return items[0] if items else None

    def fit(self, found: Item, content: Item | None, verdict: Verdict) -> Verdict:
        """The same verdict, or what about its content forbids it."""
        # Under a new id nothing keeps it from arriving twice.
        known = f"{verdict.why}; " if verdict.twice else ""
        anew = f"{known}to send it after all, put it there under a new id"
        if content is None:
            return Verdict(go=False, why=f"its item is gone from the mailbox; {anew}")
        try:
            message = self._copies.read(content, next_attempt(found))
        except Invalid as fault:
            return Verdict(go=False, why=f"it would fail: {fault}; {anew}")
        unwanted = self._unwanted(message)
        if unwanted and not self._force:
            return Verdict(
                go=False, why=f"it would be suppressed again: {unwanted}; see mailroom suppressions"
            )
        return verdict

    def _unwanted(self, message: Message) -> str:
        """Why all of its recipients get nothing; "": some of them do, or it is for no person. Raises
        UnprocessedKeys."""
        wanted = {Wanted(each, message.topic) for each in message.addressees}
        if message.event_type not in _CHOSEN or not wanted:
            return ""
        found = self._choices.find(message.event_type, wanted)
        return next(iter(found.values())).sentence if len(found) == len(wanted) else ""
