"""The person's messages: looked for in both tables of messages, item by item."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.aws.dynamo import Value
from mailroom.ledger.items import ERASED_AT
from mailroom.message.message import Key
from ops.erase.images import Image, Role, mentioned_beside_keys, role_of, texts
from ops.erase.person import Person
from ops.erase.tables import scan

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from ops.erase.stage_facts import StageFacts

Read = Callable[[int], None]
_ROLES: tuple[Role, ...] = ("part", "whole")


class Found(Struct):
    """One message, as far as it has to do with the person: its item in each table (None: nothing), and the
    objects of the payload bucket that it names."""

    mailbox: Role | None = None
    ledger: Role | None = None
    objects: frozenset[str] = frozenset()

    @property
    def role(self) -> Role:
        """What counts most. One table may know of others whom the other does not: before a claim the ledger
        has no cc, and a mailbox item may have been overwritten."""
        for role in _ROLES:
            if role in (self.mailbox, self.ledger):
                return role
        return "mention"


class Messages(Struct):
    """All that were found, and the ids that hold the recipient themselves, with the time of their end (epoch
    seconds)."""

    found: dict[Key, Found]
    ids: dict[str, int]

    def keys(self, role: Role) -> list[Key]:
        """Those of one role."""
        return [key for key, each in self.found.items() if each.role == role]


def find(client: "DynamoDBClient", facts: "StageFacts", person: Person, read: Read) -> Messages:
    """Look through mailbox and ledger. Memory grows with what is found alone."""
    messages = Messages({}, {})
    for image in scan(client, facts.table("mailbox"), read):
        role = role_of(image, person)
        if role is not None:
            found = messages.found.setdefault(key_of(image), Found())
            found.mailbox, found.objects = role, frozenset(objects_of(image, facts.payloads))
    for image in scan(client, facts.table("ledger"), read):
        _of_ledger(messages, image, facts, person)
    return messages


def _of_ledger(messages: Messages, image: Image, facts: "StageFacts", person: Person) -> None:
    key, role = key_of(image), role_of(image, person)
    theirs = role == "whole" or ERASED_AT in image
    if person.is_in(key.id) or (theirs and person.may_be_in(key.id)):
        messages.ids[key.id] = int(image["ttl"]["N"]) if "ttl" in image else 0
    if role == "mention" and ERASED_AT in image and not mentioned_beside_keys(image, person):
        return  # all that is left of it is its key
    if role is not None:
        found = messages.found.setdefault(key, Found())
        found.ledger = role
        found.objects |= frozenset(objects_of(image, facts.payloads))


def objects_of(image: Image, bucket: str) -> Iterator[str]:
    """The keys of the payload bucket's objects that an item names, in whatever attribute."""
    start = f"s3://{bucket}/"
    for name, value in image.items():
        if name in ("payload_ref", "attachments", "media_urls"):
            yield from (each.removeprefix(start) for each in texts(value) if each.startswith(start))


def named_by_others(
    client: "DynamoDBClient", facts: "StageFacts", objects: set[str], own: set[Key], read: Read
) -> set[str]:
    """Those of `objects` that messages beside `own` need as well."""
    shared: set[str] = set()
    for table in ("mailbox", "ledger"):
        for image in scan(client, facts.table(table), read):
            wanted = objects.intersection(objects_of(image, facts.payloads))
            if wanted and key_of(image) not in own:
                shared |= wanted
    return shared


def key_of(image: Image) -> Key:
    """An item's key."""
    return Key(image["id"]["S"], image["event_type"]["S"])


def where(key: Key) -> dict[str, Value]:
    """A key in DynamoDB's form."""
    return {"id": {"S": key.id}, "event_type": {"S": key.event_type}}
