"""Erasing messages: those to the person alone whole, of those to several this recipient, of others a mention.

In this order, so that whoever dies in between is found again by the next run: what waits is cancelled in the
ledger; objects of the payload bucket go; the ledger's item is emptied; the mailbox's item goes.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import boto3

from mailroom.dynamo import Value, plain
from mailroom.erasure import ERASED_AT, Erasure
from mailroom.message import Key
from ops.erase.answer import Left, Place
from ops.erase.find import Messages, Read, named_by_others, where
from ops.erase.images import Image, Role, without
from ops.erase.person import Person
from ops.erase.stage_facts import StageFacts
from ops.erase.tables import Changed, rewrite

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client

_ON_ITS_WAY = "is on its way ({}); run this again when it is over"
_CHANGED = "was written meanwhile; run this again"
_NO_END = (
    "goes to others and names the person; the ledger does not say that it is over, so it is not touched: see "
    "`mailroom status`, then delete the item or run this again"
)
_MAYBE_QUEUED = (
    "goes to others as well and may lie in a queue with this recipient: the ledger does not know it yet; run "
    "this again when the queues are empty"
)
_SHARED = "is needed by messages to others as well, so it stays; see what is in it"
_MOST_OBJECTS = 1000


class MessageErasure:
    """Erases the messages that were found. `cancelled` counts those that will not be sent for it."""

    def __init__(self, session: boto3.Session, facts: StageFacts, person: Person, *, quiet: bool) -> None:
        """`quiet`: nothing lies in any queue of the stage."""
        self._client: DynamoDBClient = session.client("dynamodb")
        self._s3: S3Client = session.client("s3")
        self._erasure = Erasure(self._client, facts.table("ledger"), facts.ttl)
        self._facts = facts
        self._person = person
        self._quiet = quiet
        self.places = {each: Place(each) for each in ("mailbox", "ledger", "payloads")}
        self.remains: list[Left] = []
        self.cancelled = 0

    def run(self, messages: Messages, read: Read) -> None:
        """Erase them; `read` is told of items read on the way."""
        over = [key for key in messages.keys("whole") if self._settle(key)]
        objects = {each for key in over for each in messages.found[key].objects}
        if objects:
            self._delete_objects(objects, set(over), read)
        for key in over:
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
        item = self._item("ledger", key)
        if item is not None and "completedAt" not in item and not _waits(item):
            self._leave("ledger", key, _ON_ITS_WAY.format(item["status"]["S"]))
            return
        self._rewrite(key, item)
        if mailbox == "whole":
            self._delete(key)
        if item is None and not self._quiet:
            self._leave("mailbox", key, _MAYBE_QUEUED)

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

    def _delete_objects(self, objects: set[str], own: set[Key], read: Read) -> None:
        shared = named_by_others(self._client, self._facts, objects, own, read)
        for each in sorted(shared):
            self.remains.append(Left("payloads", each, _SHARED))
        for part in _parts(sorted(objects - shared), _MOST_OBJECTS):
            reply = self._s3.delete_objects(
                Bucket=self._facts.payloads, Delete={"Objects": [{"Key": each} for each in part]}
            )
            failed = {each["Key"]: each.get("Message", "") for each in reply.get("Errors", ())}
            for name, why in failed.items():
                self.remains.append(Left("payloads", name, f"S3 did not delete it: {why}"))
            self.places["payloads"].erased += len(part) - len(failed)

    def _item(self, table: str, key: Key) -> dict[str, Value] | None:
        reply = self._client.get_item(TableName=self._facts.table(table), Key=where(key), ConsistentRead=True)
        image: dict[str, Any] | None = reply.get("Item")
        return image

    def _leave(self, place: str, key: Key, why: str) -> None:
        self.remains.append(Left(place, f"{key.id} ({key.event_type})", why))


def _waits(item: Image) -> bool:
    """Whether it waits for its `send_at`: when that has come, the mailbox's item is read anew."""
    return item["status"] == {"S": "scheduled"} and not item.keys() & {"startedAt", "claim_token", ERASED_AT}


def _parts(names: list[str], most: int) -> Iterable[list[str]]:
    return (names[at : at + most] for at in range(0, len(names), most))
