"""Finds a person's messages in the mailbox, the ledger and the contents of waiting messages, and erases
them. Messages whose only recipient is the person are deleted. From messages to several recipients, the person
is removed; from messages to others, mentions of the person are removed.

The order of the steps lets the next run find the data that an interrupted run has left. First a waiting
message is cancelled in the ledger. Then its objects in the payload bucket and its content in the table
`contents` are deleted, the ledger's item is emptied, and last the mailbox's item is deleted.
"""

from collections.abc import Iterator
from http import HTTPStatus

from msgspec import Struct

from mailroom.aws.dynamo_values import image_of, plain
from mailroom.clock import epoch
from mailroom.content.payloads import OVERSIZE
from mailroom.ledger.contents import Contents, Held, item_in
from mailroom.ledger.erasure import ERASED_UNSENT, Erasure
from mailroom.ledger.items import ERASED_AT, WAIT, where
from mailroom.ledger.waits import AHEAD_SECONDS, SEND_AT
from mailroom.mailbox import due
from mailroom.message.message import Key
from mailroom_ops.people.erase_search import delete_rows
from mailroom_ops.people.person import (
    Image,
    Person,
    Role,
    hides_all,
    mentioned_beside_keys,
    role_of,
    texts,
    without,
)
from mailroom_ops.people.stage_data import ErasurePlace, ErasureRun, ItemChanged, StageData
from mailroom_ops.shared.tables import key_of

_ROLES: tuple[Role, ...] = ("part", "whole")
AHEAD = AHEAD_SECONDS + 60
"""Seconds before a waiting message's `send_at` from which on the function `release` may already have read its
mailbox item and queued it, with a margin for differences between clocks."""
_ON_ITS_WAY = "has no outcome yet ({}); run this again when it has one"
_CONTENT_NEEDED = "has no outcome yet, and may need its stored content; run this again when it has one"
_CHANGED = "was changed during the erasure; run this again"
_NO_END = (
    "goes to others and mentions the person; it has no recorded outcome, so it is not changed: see "
    "`mailroom messages show`, then delete it from the mailbox, or run this again when it has an outcome"
)
_MAYBE_QUEUED = (
    "goes to others as well and may be in a stream or a queue with this recipient, because it has no record "
    "of being sent; run this again when `mailroom messages show` shows its outcome. If its record has "
    "expired, delete it from the mailbox yourself"
)
_HIDES_ALL = (
    "would have only recipients in bcc left, and could not be sent; put it again without the person, or "
    "run this again when it has an outcome"
)
SETTLED_AFTER = 15 * 60
"""Seconds after the put of an object within which its producer also puts the items that need the object, with
a margin for differences between clocks."""
_SHARED = "is needed by messages to others as well, so it stays; check its content"
_CONTENT = (
    "is named by a hash of its content, so messages to others may need the same object: it stays until the "
    "bucket's retention ends; check its content, and delete it yourself if it is only about the person"
)
_FRESH = (
    "was put recently, and its producer may be about to put items that need it, so it stays with its "
    "messages; run this again in 20 minutes"
)


class FoundMessage(Struct):
    """Message that concerns the person."""

    mailbox: Role | None = None
    """Role of the person in the mailbox's item; None if the item does not concern the person."""
    ledger: Role | None = None
    """Role of the person in the ledger's item; None if the item does not concern the person."""
    objects: frozenset[str] = frozenset()
    """Objects of the payload bucket that the items name."""
    content: Role | None = None
    """Role of the person in contents of a message without items; None if it has an item."""
    versions: frozenset[str] = frozenset()
    """Versions of the waits whose contents concern the person."""

    @property
    def role(self) -> Role | None:
        """Most important role of the person in the message, or None if its items do not concern the person.
        The items may have different recipients: the ledger stores cc only at the claim, and a mailbox item
        may have been overwritten."""
        roles = (self.mailbox, self.ledger, self.content)
        mention: Role | None = "mention" if any(roles) else None
        return next((role for role in _ROLES if role in roles), mention)


class FoundMessages(Struct):
    """Messages that concern the person. `ids` has each message id that contains the recipient, with the time
    (epoch seconds) at which its ledger item expires."""

    found: dict[Key, FoundMessage]
    ids: dict[str, int]

    def keys(self, role: Role | None) -> list[Key]:
        """Return the keys of the messages in which the person has this role."""
        return [key for key, message in self.found.items() if message.role == role]


def find(data: StageData, person: Person) -> FoundMessages:
    """Search the tables for messages that concern the person. The use of memory depends only on the number of
    these messages."""
    messages = FoundMessages({}, {})
    for image in data.scan("mailbox"):
        role = role_of(image, person)
        if role is not None:
            message = messages.found.setdefault(key_of(image), FoundMessage())
            message.mailbox = role
            message.objects |= frozenset(objects_of(image, data.payloads))
    for image in data.scan("ledger"):
        _of_ledger(messages, image, data, person)
    # The ledger shows that a message waits, but not the contents of waits that a crash has cut off.
    for content in data.scan("contents"):
        _of_content(messages, content, data, person)
    return messages


def _of_ledger(messages: FoundMessages, image: Image, data: StageData, person: Person) -> None:
    if not person.may_be_of(image):
        return
    key, role = key_of(image), role_of(image, person)
    theirs = role == "whole" or ERASED_AT in image
    if person.is_in(key.id) or (theirs and person.may_be_in(key.id)):
        messages.ids[key.id] = int(image["ttl"]["N"]) if "ttl" in image else 0
    if role == "mention" and ERASED_AT in image and not mentioned_beside_keys(image, person):
        return  # it was erased before: only its key still mentions the person
    if role is not None:
        message = messages.found.setdefault(key, FoundMessage())
        message.ledger = role
        message.objects |= frozenset(objects_of(image, data.payloads))


def _of_content(messages: FoundMessages, content: Image, data: StageData, person: Person) -> None:
    image = image_of(item_in(content))
    key, role = key_of(image), role_of(image, person)
    if role is None:
        return
    message = messages.found.setdefault(key, FoundMessage())
    message.versions |= {content["version"]["S"]}
    # A message with items belongs to the people in them: a content of an earlier wait may be to others.
    if message.content or (
        message.role is None and not (data.item("ledger", key) or data.item("mailbox", key))
    ):
        message.content = role
        message.objects |= frozenset(objects_of(image, data.payloads))


def _for_send_at(image: Image) -> bool:
    """Return whether the ledger item of a waiting message has `send_at` as the reason of the wait."""
    mark: Image = image.get(WAIT, {}).get("M", {})
    return mark.get("reason") == {"S": SEND_AT}


def objects_of(image: Image, bucket: str) -> Iterator[str]:
    """Yield the keys of the payload bucket's objects that an item names, in any attribute that can do so."""
    start = f"s3://{bucket}/"
    for name, value in image.items():
        if name in ("payload_ref", "attachments", "media_urls"):
            yield from (text.removeprefix(start) for text in texts(value) if text.startswith(start))


def _named_by_others(data: StageData, objects: set[str], own_keys: set[Key]) -> set[str]:
    """Return those of the `objects` that messages other than `own_keys` need as well."""
    shared: set[str] = set()
    for table in ("mailbox", "ledger"):
        for image in data.scan(table):
            needed = objects.intersection(objects_of(image, data.payloads))
            if needed and key_of(image) not in own_keys:
                shared |= needed
    return shared


PLACES = ("mailbox", "contents", "ledger", "payloads", "search")
"""Places from which messages are erased."""


class MessageErasure:
    """Erases the messages that were found. `cancelled` is the number of messages that it has cancelled."""

    def __init__(self, run: ErasureRun) -> None:
        self._run = run
        self._data = run.data
        self._erasure = Erasure(run.data.dynamodb, run.data.table("ledger"), run.data.ttl)
        self._clock = run.data.clock
        self._contents = Contents(run.data.dynamodb, run.data.table("contents"))
        self.places = {place: ErasurePlace(place) for place in PLACES}
        self.cancelled = 0

    def erase(self, messages: FoundMessages) -> None:
        """Erase the messages."""
        over = [key for key in messages.keys("whole") if self._settle(key)]
        objects = {name for key in over for name in messages.found[key].objects}
        staying = self._delete_objects(objects, set(over))
        for key in over:
            if not messages.found[key].objects & staying:
                self._whole(key)
        for key in messages.keys("part"):
            self._part(key, messages.found[key].mailbox)
        for key in messages.keys("mention"):
            self._mention(key)
        for key, message in messages.found.items():
            if message.role != "whole":
                self._contents_of_others(key, message)

    def _settle(self, key: Key) -> bool:
        """Cancel a message whose only recipient is the person, unless it has an outcome or a worker is
        sending it. Return whether it has an outcome now."""
        item = self._data.item("ledger", key)
        if item is not None and "completedAt" in item:
            return True
        if self._erasure.cancel(key, ERASED_UNSENT):
            self.cancelled += 1
            return True
        item = self._data.item("ledger", key) or {}
        if "completedAt" in item:  # the message has got its outcome in the meantime
            return True
        self._leave("ledger", key, _ON_ITS_WAY.format(item.get("status", {}).get("S", "sending")))
        return False

    def _whole(self, key: Key) -> None:
        item = self._data.item("ledger", key)
        # The content is erased first: if this run is interrupted, the next run finds the message by its items
        # in the ledger and the mailbox.
        self.places["contents"].erased += self._contents.erase(key)
        if item is not None:
            if not self._erasure.empty(key, plain(item), self._data.caller):
                self._leave("ledger", key, _CHANGED)
                return
            self.places["ledger"].erased += 1
            self.places["search"].erased += delete_rows(self._data, plain(item))
        self._delete(key)

    def _delete(self, key: Key) -> None:
        self.places["mailbox"].erased += self._data.delete("mailbox", where(key))

    def _part(self, key: Key, mailbox: Role | None) -> None:
        """Remove the person from a message to several recipients. If the mailbox item is only to the person,
        delete it."""
        item, request = self._data.item("ledger", key), self._data.item("mailbox", key)
        if item is None:
            self._leave("mailbox", key, _MAYBE_QUEUED)
            return
        if "completedAt" not in item:
            if not self._waits(item, request):
                self._leave("ledger", key, _ON_ITS_WAY.format(item["status"]["S"]))
                return
            if request is not None and mailbox != "whole" and hides_all(request, self._run.person):
                self._leave("mailbox", key, _HIDES_ALL)
                return
        self._rewrite(key, item)
        if mailbox == "whole":
            self._delete(key)

    def _waits(self, item: Image, request: Image | None) -> bool:
        """Return whether a message waits for a `send_at` that is at least AHEAD seconds away. Only then will
        its mailbox item be read again before it is sent. The `send_at` of both items is checked, because a
        new put does not update the ledger. Messages that wait for other reasons have their content in the
        table `contents`."""
        if item["status"] != {"S": "scheduled"} or not _for_send_at(item):
            return False
        ahead = self._clock() + AHEAD
        return epoch(item["scheduledFor"]["S"]) > ahead and (request is None or due(request) > ahead)

    def _mention(self, key: Key) -> None:
        item = self._data.item("ledger", key)
        if item is None or "completedAt" not in item:
            self._leave("mailbox", key, _NO_END)
            return
        self._rewrite(key, item)

    def _contents_of_others(self, key: Key, message: FoundMessage) -> None:
        """Erase the contents that were found of a message that is not only to the person, if the message has
        ended. Only these versions are erased: after a resend, the message waits with a new one."""
        if not message.versions:
            return
        if "completedAt" in (self._data.item("ledger", key) or {}):
            self._contents.delete([Held(key, version) for version in message.versions])
            self.places["contents"].erased += len(message.versions)
        else:
            self._leave("contents", key, _CONTENT_NEEDED)

    def _rewrite(self, key: Key, item: Image | None) -> None:
        """Rewrite both items without the person; an open ledger item only if no worker has claimed the
        message."""
        for table, image in (("ledger", item), ("mailbox", self._data.item("mailbox", key))):
            if image is None:
                continue
            new = without(image, self._run.person)
            if new == dict(image):
                continue
            free = table == "mailbox" or "completedAt" in image
            condition = "" if free else "attribute_not_exists(startedAt)"
            try:
                self._data.rewrite(table, where(key), image, new, condition)
            except ItemChanged:
                self._leave(table, key, _CHANGED)
                return
            self.places[table].erased += 1

    def _delete_objects(self, objects: set[str], own_keys: set[Key]) -> set[str]:
        """Delete the objects that only messages of `own_keys` name. Return the objects that the next run has
        to delete: messages that name one of these must not be erased yet, because the next run finds the
        objects by these messages.

        A producer puts an object first and the item that needs it a moment later. So an object is deleted
        only some time after its put. An object whose key is a hash of its content is never deleted, because a
        producer of the same content uses the same object.
        """
        began = self._clock()
        shared = _named_by_others(self._data, objects, own_keys) if objects else set()
        staying: set[str] = set()
        for name in sorted(objects):
            if name in shared:
                self._run.leave("payloads", name, _SHARED)
            elif name.startswith(f"{OVERSIZE}/"):
                self._run.leave("payloads", name, _CONTENT)
            elif (put_at := self._put_at(name)) is None:
                continue  # the object no longer exists
            elif put_at > began - SETTLED_AFTER:
                self._run.leave("payloads", name, _FRESH)
                staying.add(name)
            elif not self._delete_object(name):
                staying.add(name)
        return staying

    def _put_at(self, name: str) -> float | None:
        """Return when the object was put, in epoch seconds, or None if the object does not exist."""
        try:
            reply = self._data.s3.head_object(Bucket=self._data.payloads, Key=name)
        except self._data.s3.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != HTTPStatus.NOT_FOUND:
                raise
            return None
        return reply["LastModified"].timestamp()

    def _delete_object(self, name: str) -> bool:
        try:
            self._data.s3.delete_object(Bucket=self._data.payloads, Key=name)
        except self._data.s3.exceptions.ClientError as error:
            self._run.leave(
                "payloads", name, f"was not deleted ({error.response['Error']['Code']}); run this again"
            )
            return False
        self.places["payloads"].erased += 1
        return True

    def _leave(self, place: str, key: Key, reason: str) -> None:
        self._run.leave(place, f"{key.id} ({key.event_type})", reason)
