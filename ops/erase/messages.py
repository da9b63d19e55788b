"""Erasing messages: those to the person alone whole, of those to several this recipient, of others a mention.

In this order, so that whoever dies in between is found again by the next run: what waits is cancelled in the
ledger; objects of the payload bucket go; the ledger's item is emptied; the mailbox's item goes.
"""

import time
from typing import TYPE_CHECKING, Any

import boto3

from mailroom.aws.dynamo import Value, plain
from mailroom.aws.queues import MAX_DELAY_SECONDS
from mailroom.clock import Clock, epoch
from mailroom.ledger.erasure import Erasure
from mailroom.ledger.items import ERASED_AT
from mailroom.mailbox import due
from mailroom.message.message import Key
from ops.erase.answer import Left, Place
from ops.erase.find import Messages, Read, where
from ops.erase.images import Image, Role, hides_all, without
from ops.erase.objects import ObjectErasure
from ops.erase.person import Person
from ops.erase.stage_facts import StageFacts
from ops.erase.tables import Changed, rewrite

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

AHEAD = MAX_DELAY_SECONDS + 60
"""Seconds: what is due later lies in no queue, for none delays longer; clocks' skew included."""
_ON_ITS_WAY = "is on its way ({}); run this again when it is over"
_CHANGED = "was written meanwhile; run this again"
_NO_END = (
    "goes to others and names the person; the ledger does not say that it is over, so it is not touched: see "
    "`mailroom status`, then delete the item or run this again"
)
_MAYBE_QUEUED = (
    "goes to others as well and may lie in a stream or a queue with this recipient, for the ledger does not "
    "know it; run this again when `mailroom status` says that it is over. Where the ledger has forgotten it, "
    "delete the item by hand"
)
_HIDES_ALL = (
    "would be left with nobody but those in bcc, and cannot be sent so; put it anew without the person, or "
    "run this again when it is over"
)


class MessageErasure:
    """Erases the messages that were found. `cancelled` counts those that will not be sent for it."""

    def __init__(
        self, session: boto3.Session, facts: StageFacts, person: Person, clock: Clock = time.time
    ) -> None:
        self._client: DynamoDBClient = session.client("dynamodb")
        self._objects = ObjectErasure(session, facts, clock)
        self._erasure = Erasure(self._client, facts.table("ledger"), facts.ttl)
        self._facts = facts
        self._person = person
        self._clock = clock
        self._held: set[Key] = set()
        self.places = {each: Place(each) for each in ("mailbox", "ledger")}
        self.places["payloads"] = self._objects.place
        self.remains: list[Left] = []
        self.cancelled = 0

    def run(self, messages: Messages, read: Read) -> None:
        """Erase them; `read` is told of items read on the way."""
        over = [key for key in messages.keys("whole") if self._settle(key)]
        objects = {each for key in over for each in messages.found[key].objects}
        staying = self._objects.run(objects, set(over), read)
        self.remains += self._objects.remains
        self._held = {key for key in over if messages.found[key].objects & staying}
        for key in over:
            if key not in self._held:
                self._whole(key)
        for key in messages.keys("part"):
            self._part(key, messages.found[key].mailbox)
        for key in messages.keys("mention"):
            self._mention(key)

    def copy_of(self, key: Key) -> bool:
        """A copy of a message to the person alone has turned up somewhere, such as one that was written to a
        queue directly and that neither table knows. Whether it can come to nothing any more."""
        if not self._settle(key):
            return False
        if key not in self._held:
            self._whole(key)
        return True

    def _settle(self, key: Key) -> bool:
        """Whether a message to the person alone is over, or is so from now on."""
        item = self._item("ledger", key)
        if item is not None and "completedAt" in item:
            return True
        if self._erasure.withdraw(key):
            self.cancelled += 1
            return True
        item = self._item("ledger", key) or {}
        if "completedAt" in item:  # it has ended between the two
            return True
        self._leave("ledger", key, _ON_ITS_WAY.format(item.get("status", {}).get("S", "sending")))
        return False

    def _whole(self, key: Key) -> None:
        item = self._item("ledger", key)
        if item is not None:
            if not self._erasure.empty(key, plain(item)):
                self._leave("ledger", key, _CHANGED)
                return
            self.places["ledger"].erased += 1
        self._delete(key)

    def _delete(self, key: Key) -> None:
        reply = self._client.delete_item(
            TableName=self._facts.table("mailbox"), Key=where(key), ReturnValues="ALL_OLD"
        )
        self.places["mailbox"].erased += "Attributes" in reply

    def _part(self, key: Key, mailbox: Role | None) -> None:
        """The other recipients' mail stays as it is. What `mailbox` says is the person's alone goes whole."""
        item, request = self._item("ledger", key), self._item("mailbox", key)
        if item is None:
            self._leave("mailbox", key, _MAYBE_QUEUED)
            return
        if "completedAt" not in item:
            if not self._waits(item, request):
                self._leave("ledger", key, _ON_ITS_WAY.format(item["status"]["S"]))
                return
            if request is not None and mailbox != "whole" and hides_all(request, self._person):
                self._leave("mailbox", key, _HIDES_ALL)
                return
        self._rewrite(key, item)
        if mailbox == "whole":
            self._delete(key)

    def _waits(self, item: Image, request: Image | None) -> bool:
        """Whether it waits for its `send_at` for a while yet: when that has come, the mailbox's item is read
        anew. The ledger is told nothing when its time comes, nor where it is put anew and goes at once."""
        if item["status"] != {"S": "scheduled"} or item.keys() & {"startedAt", "claim_token", ERASED_AT}:
            return False
        ahead = self._clock() + AHEAD
        try:
            scheduled = epoch(item["scheduledFor"]["S"])
        except (KeyError, ValueError):
            return False
        return scheduled > ahead and (request is None or due(request) > ahead)

    def _mention(self, key: Key) -> None:
        item = self._item("ledger", key)
        if item is None or "completedAt" not in item:
            self._leave("mailbox", key, _NO_END)
            return
        self._rewrite(key, item)

    def _rewrite(self, key: Key, item: Image | None) -> None:
        """Both items without the person. The ledger's on condition that it is still where it was."""
        for table, image in (("ledger", item), ("mailbox", self._item("mailbox", key))):
            if image is None:
                continue
            new = without(image, self._person)
            if new == dict(image):
                continue
            held = "" if table == "mailbox" or "completedAt" in image else "attribute_not_exists(startedAt)"
            try:
                rewrite(self._client, self._facts.table(table), where(key), image, new, held)
            except Changed:
                self._leave(table, key, _CHANGED)
                return
            self.places[table].erased += 1

    def _item(self, table: str, key: Key) -> dict[str, Value] | None:
        reply = self._client.get_item(TableName=self._facts.table(table), Key=where(key), ConsistentRead=True)
        image: dict[str, Any] | None = reply.get("Item")
        return image

    def _leave(self, place: str, key: Key, why: str) -> None:
        self.remains.append(Left(place, f"{key.id} ({key.event_type})", why))
