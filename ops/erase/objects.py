"""Erasing objects of the payload bucket that messages to the person alone name.

An object may be needed by a message that nobody can see yet: its producer puts the object first and the item
a moment later. So only what has lain there for a while is deleted, and never what is named by its content,
for whoever says the same puts the same object once more.
"""

import time
from http import HTTPStatus
from typing import TYPE_CHECKING

import boto3

from mailroom.clock import Clock
from mailroom.mailbox import PREFIX
from mailroom.message.message import Key
from ops.erase.answer import Left, Place
from ops.erase.find import Read, named_by_others
from ops.erase.stage_facts import StageFacts

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client

SETTLED_AFTER = 15 * 60
"""Seconds: whoever put an object longer ago has put its items as well; clocks' skew included."""
_SHARED = "is needed by messages to others as well, so it stays; see what is in it"
_CONTENT = (
    "is named by its content, so others who are sent the same may need it at any moment: it stays until the "
    "bucket's retention is over; see what is in it, and delete it by hand where it is the person's alone"
)
_FRESH = (
    "was put a moment ago, and items that need it may be on their way, so it stays with its messages; run "
    "this again in 20 minutes"
)


class ObjectErasure:
    """Deletes them one by one, each looked at just before."""

    def __init__(self, session: boto3.Session, facts: StageFacts, clock: Clock = time.time) -> None:
        self._client: DynamoDBClient = session.client("dynamodb")
        self._s3: S3Client = session.client("s3")
        self._facts = facts
        self._clock = clock
        self.place = Place("payloads")
        self.remains: list[Left] = []

    def run(self, objects: set[str], own: set[Key], read: Read) -> set[str]:
        """Delete what none but `own` messages name. Those that another run may delete: the messages that name
        them have to stay, or nobody would find them again."""
        began = self._clock()
        shared = named_by_others(self._client, self._facts, objects, own, read) if objects else set()
        kept: set[str] = set()
        for name in sorted(objects):
            if name in shared:
                self._leave(name, _SHARED)
            elif name.startswith(PREFIX):
                self._leave(name, _CONTENT)
            elif (put_at := self._put_at(name)) is None:
                continue  # it is gone
            elif put_at > began - SETTLED_AFTER:
                self._leave(name, _FRESH)
                kept.add(name)
            elif not self._delete(name):
                kept.add(name)
        return kept

    def _put_at(self, name: str) -> float | None:
        """When it was put, in epoch seconds; None: there is no such object."""
        try:
            reply = self._s3.head_object(Bucket=self._facts.payloads, Key=name)
        except self._s3.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != HTTPStatus.NOT_FOUND:
                raise
            return None
        return reply["LastModified"].timestamp()

    def _delete(self, name: str) -> bool:
        try:
            self._s3.delete_object(Bucket=self._facts.payloads, Key=name)
        except self._s3.exceptions.ClientError as error:
            self._leave(name, f"was not deleted ({error.response['Error']['Code']}); run this again")
            return False
        self.place.erased += 1
        return True

    def _leave(self, name: str, why: str) -> None:
        self.remains.append(Left("payloads", name, why))
