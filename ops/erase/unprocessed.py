"""Erasing records of batches that the streams gave up on, and of those that were replayed."""

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import boto3

from ops.erase.answer import Left, Place
from ops.erase.find import Read
from ops.erase.images import Image, Role, hides_all, role_of, without
from ops.erase.person import Person
from ops.erase.stage_facts import StageFacts

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

WAITING = "aws/lambda/"
"""Where batches lie that nobody has replayed."""
_IMAGES = ("NewImage", "OldImage")
_TO_OTHERS = (
    "has a message to others that names the person and was not dispatched yet; replay it, then run this again"
)
_HIDES_ALL = (
    "has a mail that would be left with nobody but those in bcc, and was not dispatched yet; replay it, then "
    "run this again"
)
_NO_TEXT = "is no text, so nobody can tell whether it names the person; see what it is, and delete it by hand"
_MOVED = "was replayed or written meanwhile; run this again"
_ANOTHER = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)
"""What S3 answers to a write of an object that is not the one that was read."""
_UNREADABLE = "mentions the person and is no batch of a stream; see what it is, and delete it by hand"


class UnprocessedErasure:
    """Rewrites a batch without the person's records, or deletes it where it had no others. The bucket keeps
    no versions. `apply` False: counts alone."""

    def __init__(self, session: boto3.Session, facts: StageFacts, person: Person, *, apply: bool) -> None:
        self._s3: S3Client = session.client("s3")
        self._bucket = facts.unprocessed
        self._person = person
        self._apply = apply
        self.remains: list[Left] = []

    def run(self, read: Read) -> Place:
        """Look through all objects of the bucket; each holds a batch, 6 MB at most."""
        place = Place("unprocessed")
        for name in self._names():
            read(1)
            try:
                reply = self._s3.get_object(Bucket=self._bucket, Key=name)
            except self._s3.exceptions.NoSuchKey:
                continue  # replayed meanwhile: its other name comes later
            body = reply["Body"].read()
            try:
                found, left = self._look(name, body.decode())
            except UnicodeDecodeError:
                self.remains.append(Left("unprocessed", name, _NO_TEXT))
                continue
            place.found += found
            if self._apply and left is not None:
                place.erased += self._write(name, left, reply["ETag"])
        return place

    def _names(self) -> Iterator[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        yield from (each["Key"] for page in pages for each in page.get("Contents", ()))

    def _look(self, name: str, text: str) -> tuple[bool, dict[str, Any] | None]:
        """Whether an object tells of the person, and the document without them (None: it stays as it is)."""
        try:
            document = json.loads(text)
            given = document["payload"]
            event = json.loads(given) if isinstance(given, str) else given
            records = event["Records"]
            roles = [self._role(each["dynamodb"]) for each in records]
        except (ValueError, KeyError, TypeError):
            found = self._person.is_in(text)
            if found:
                self.remains.append(Left("unprocessed", name, _UNREADABLE))
            return found, None
        if not any(roles):
            return False, None
        if name.startswith(WAITING) and "mention" in roles:
            self.remains.append(Left("unprocessed", name, _TO_OTHERS))
        if name.startswith(WAITING) and any(map(self._hides_all, records)):
            self.remains.append(Left("unprocessed", name, _HIDES_ALL))
        left = [
            kept
            for each, role in zip(records, roles, strict=True)
            if (kept := self._kept(each, role, waiting=name.startswith(WAITING))) is not None
        ]
        event = {**event, "Records": left}
        payload = _compact(event) if isinstance(given, str) else event
        return True, None if left == records else {**document, "payload": payload}

    def _role(self, change: dict[str, Any]) -> Role | None:
        roles = [role_of(change[name], self._person) for name in _IMAGES if name in change]
        return next((each for each in ("part", "whole", "mention") if each in roles), None)

    def _hides_all(self, record: dict[str, Any]) -> bool:
        change = record["dynamodb"]
        to_others = self._role(change) == "part"
        return to_others and any(hides_all(change[name], self._person) for name in _IMAGES if name in change)

    def _kept(self, record: dict[str, Any], role: Role | None, *, waiting: bool) -> dict[str, Any] | None:
        """The record as it may stay; None: it goes."""
        if role == "whole":
            return None
        if role is None or (waiting and (role == "mention" or self._hides_all(record))):
            return record
        change = record["dynamodb"]
        images: dict[str, Image] = {
            name: without(change[name], self._person) for name in _IMAGES if name in change
        }
        return {**record, "dynamodb": {**change, **images}}

    def _write(self, name: str, document: dict[str, Any], tag: str) -> bool:
        """Whether it is written: what is replayed meanwhile must not come back under its old name."""
        payload = document["payload"]
        event = json.loads(payload) if isinstance(payload, str) else payload
        if not event["Records"]:
            self._s3.delete_object(Bucket=self._bucket, Key=name)
            return True
        body = _compact(document).encode()
        try:
            self._s3.put_object(Bucket=self._bucket, Key=name, Body=body, IfMatch=tag)
        except self._s3.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] not in _ANOTHER:
                raise
            self.remains.append(Left("unprocessed", name, _MOVED))
            return False
        return True


def _compact(value: Any) -> str:
    """As Lambda wrote it: a batch may fill what an invocation takes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
