"""Erasing beside the messages' own tables: choices, records of dead letters and of campaigns' runs, batches
that the streams gave up on, dead letters, and tables that this command does not know.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any

from mailroom.aws.dynamo import image_of
from mailroom.channels.fax import contract as fax
from mailroom.errors import Invalid
from mailroom.ledger.items import ERASED_AT
from mailroom.message.message import Key, decode
from ops.dead_letters.queues import DeadQueue, DeadQueues, ExplainedDeadLetter
from ops.erase.person import Image, Role, hides_all, mentioned, redacted, role_of, texts, without
from ops.erase.stage import ErasurePlace, ErasureRun, ItemChanged, Read, Ses
from ops.people.suppressions import FAULTS, Lists
from ops.tables import key_of

Step = Callable[[str], AbstractContextManager[Read]]
"""Begins a step of that name; what it yields counts everything that is read."""
Settle = Callable[[Key], bool]
"""Makes sure that a message only to the person is never sent. False: that is not possible now."""
CHOICES = {"preferences": ("recipient", "topic"), "suppressions": ("recipient", "channel")}
"""The tables of choices, with their keys."""
_ITEM_OF: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {"fax": fax.item_of}
"""How a body of a queue stands for an item, by the queue; in other queues it is the item itself."""
KNOWN_TABLES = ("mailbox", "ledger", *CHOICES, "dead-letters", "campaign-runs")
WAITING = "aws/lambda/"
"""Where batches lie that nobody has replayed."""
_IMAGES = ("NewImage", "OldImage")
_ANOTHER = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)
"""What S3 answers to a write of an object that is not the one that was read."""

_COLLECTING = (
    "is collecting, and the place where it goes on names the person; run this again when the run is over"
)
_TO_OTHERS = (
    "has a message to others that names the person and was not dispatched yet; replay it, then run this again"
)
_HIDES_ALL = (
    "has a mail that would have only recipients in bcc left, and was not dispatched yet; replay it, then "
    "run this again"
)
_NO_TEXT = "is not text, so it may name the person; see what it is, and delete it by hand"
_MOVED = "was replayed or written meanwhile; run this again"
_UNREADABLE = "mentions the person and is not a batch of a stream; see what it is, and delete it by hand"
_DEAD_LETTER = {
    "message": "is a message to others as well; put it back, or delete it by hand, then run this again",
    "callback": "is a callback that names the person; put it back, or delete it by hand, then run this again",
    "event": "is an event of a message to others as well; put it back, then run this again",
    "campaign": "are recipients of a campaign, this person among them; put them back, then run this again",
    "malformed": "names the person and is not a message; see what it is, and delete it by hand",
}
_INCOMPLETE = "could not be read to its end; run this again"


def other_places(run: ErasureRun, own: set[Key], settle: Settle, step: Step) -> list[ErasurePlace]:
    """All places beside the messages' own. `own` are the messages only to the person."""
    places = []
    for table in CHOICES:
        with step(table) as read:
            places.append(_choices(run, table, read))
    with step("dead-letters") as read:
        places.append(_dead_letter_records(run, own, read))
    with step("campaign-runs") as read:
        places.append(_campaign_runs(run, read))
    with step("unprocessed") as read:
        places.append(_Batches(run).erase(read))
    with step("dead-letter queues") as read:
        places.append(_DeadLetters(run, settle).erase(own, read))
    with step("other tables") as read:
        places += _other_tables(run, read)
    return places


def lift_from_ses(run: ErasureRun) -> Ses:
    """Take a mail address off SES's own list of the account."""
    if run.person.kind != "mail":
        return "not_asked"
    if run.keep_choices:
        return "kept"
    try:
        return Lists(run.data.session, run.data.stage).lift_from_ses(run.person.recipient)
    except FAULTS as error:
        run.leave("SES", "its own suppression list", f"SES refused: {error}; run this again")
        return "failed"


def _choices(run: ErasureRun, table: str, read: Read) -> ErasurePlace:
    """Opt-outs, or the suppression list: those of the person, also what was lifted."""
    place = ErasurePlace(table)
    for image in run.data.scan(table, read):
        recipient = image.get("recipient", {}).get("S", "")
        theirs = run.person.is_kept_as(recipient) or mentioned(image, run.person)
        if not (theirs and run.person.may_be_of(image)):
            continue
        place.found += 1
        if run.keep_choices:
            place.kept += 1
        elif run.apply:
            run.data.delete(table, {name: image[name] for name in CHOICES[table]})
            place.erased += 1
    return place


def _dead_letter_records(run: ErasureRun, own: set[Key], read: Read) -> ErasurePlace:
    """Records of dead letters. A dead letter that still lies in its queue is recorded anew."""
    place = ErasurePlace("dead-letters")
    for image in run.data.scan("dead-letters", read):
        about = key_of(image) if "id" in image else None
        if about in own or mentioned(image, run.person):
            place.found += 1
            if run.apply:
                run.data.delete("dead-letters", {"message_id": image["message_id"]})
                place.erased += 1
    return place


def _campaign_runs(run: ErasureRun, read: Read) -> ErasurePlace:
    """Faults of campaigns' audiences quote what was wrong with a line."""
    place = ErasurePlace("campaign-runs")
    for image in run.data.scan("campaign-runs", read):
        if mentioned(image, run.person):
            place.found += 1
            place.erased += run.apply and _campaign_run(run, image)
    return place


def _campaign_run(run: ErasureRun, image: Image) -> bool:
    cursor = image.get("cursor")
    named = cursor is not None and any(map(run.person.is_in, texts(cursor)))
    key = {name: image[name] for name in ("campaign", "run")}
    what = f"{key['campaign']['S']}, run {key['run']['S']}"
    if named and image.get("state") == {"S": "collecting"}:
        run.leave("campaign-runs", what, _COLLECTING)
        return False
    new = {
        name: value if name in key else redacted(value, run.person)
        for name, value in image.items()
        if not (named and name == "cursor")
    }
    try:
        run.data.rewrite("campaign-runs", key, image, new)
    except ItemChanged:
        run.leave("campaign-runs", what, "was written meanwhile; run this again")
        return False
    return True


def _other_tables(run: ErasureRun, read: Read) -> list[ErasurePlace]:
    """How many items of each table mention the person. So a table that is new to the stage is not forgotten;
    it is not changed either."""
    prefix = run.data.table("")
    pages = run.data.dynamodb.get_paginator("list_tables").paginate()
    names = [
        name.removeprefix(prefix) for page in pages for name in page["TableNames"] if name.startswith(prefix)
    ]
    return [
        ErasurePlace(each, sum(mentioned(image, run.person) for image in run.data.scan(each, read)))
        for each in names
        if each not in KNOWN_TABLES
    ]


class _Batches:
    """Records of batches that the streams gave up on, and of those that were replayed: a batch is rewritten
    without the person's records, or deleted where it had no others. The bucket keeps no versions."""

    def __init__(self, run: ErasureRun) -> None:
        self._run = run
        self._s3 = run.data.s3
        self._bucket = run.data.unprocessed
        self._person = run.person

    def erase(self, read: Read) -> ErasurePlace:
        """Look through all objects of the bucket; each holds a batch, 6 MB at most."""
        place = ErasurePlace("unprocessed")
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        for name in (each["Key"] for page in pages for each in page.get("Contents", ())):
            read(1)
            try:
                reply = self._s3.get_object(Bucket=self._bucket, Key=name)
            except self._s3.exceptions.NoSuchKey:
                continue  # replayed meanwhile: its other name comes later
            body = reply["Body"].read()
            try:
                found, left = self._without(name, body.decode())
            except UnicodeDecodeError:
                self._run.leave("unprocessed", name, _NO_TEXT)
                continue
            place.found += found
            if self._run.apply and left is not None:
                place.erased += self._write(name, left, reply["ETag"])
        return place

    def _without(self, name: str, text: str) -> tuple[bool, str | None]:
        """Whether an object tells of the person, and its text without them ("": nothing is left of it; None:
        it stays as it is)."""
        try:
            document = json.loads(text)
            given = document["payload"]
            event = json.loads(given) if isinstance(given, str) else given
            records = event["Records"]
            roles = [self._role(each["dynamodb"]) for each in records]
        except (ValueError, KeyError, TypeError):
            found = self._person.is_in(text)
            if found:
                self._run.leave("unprocessed", name, _UNREADABLE)
            return found, None
        if not any(roles):
            return False, None
        waiting = name.startswith(WAITING)
        if waiting and "mention" in roles:
            self._run.leave("unprocessed", name, _TO_OTHERS)
        if waiting and any(map(self._hides_all, records)):
            self._run.leave("unprocessed", name, _HIDES_ALL)
        left = [
            kept
            for each, role in zip(records, roles, strict=True)
            if (kept := self._kept(each, role, waiting=waiting)) is not None
        ]
        if left == records:
            return True, None
        if not left:
            return True, ""
        event = {**event, "Records": left}
        payload = _compact(event) if isinstance(given, str) else event
        return True, _compact({**document, "payload": payload})

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
        images = {name: without(change[name], self._person) for name in _IMAGES if name in change}
        return {**record, "dynamodb": {**change, **images}}

    def _write(self, name: str, text: str, tag: str) -> bool:
        """Whether it is written: what is replayed meanwhile must not come back under its old name."""
        if not text:
            self._s3.delete_object(Bucket=self._bucket, Key=name)
            return True
        try:
            self._s3.put_object(Bucket=self._bucket, Key=name, Body=text.encode(), IfMatch=tag)
        except self._s3.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] not in _ANOTHER:
                raise
            self._run.leave("unprocessed", name, _MOVED)
            return False
        return True


def _compact(value: Any) -> str:
    """JSON as Lambda wrote it: a batch may fill what an invocation takes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _DeadLetters:
    """Dead letters: copies of messages that are over, or that were cancelled for the erasure."""

    def __init__(self, run: ErasureRun, settle: Settle) -> None:
        self._queues = DeadQueues(run.data.session, run.data.stage)
        self._run = run
        self._settle = settle

    def erase(self, own: set[Key], read: Read) -> ErasurePlace:
        """`own` are messages only to the person. Their dead letters go if the ledger was emptied of them."""
        place = ErasurePlace("dead-letter queues")
        for queue in self._queues.named(None):
            # Of a FIFO queue's group ten can be seen at once: those behind them come when these are gone.
            deleted = self._pass(queue, own, place, read)
            while deleted and queue.fifo:
                deleted = self._pass(queue, own, place, read)
        return place

    def _pass(self, queue: DeadQueue, own: set[Key], place: ErasurePlace, read: Read) -> int:
        """One look through a queue; how many dead letters were deleted."""
        deleted = 0
        with self._queues.scan(queue) as dead_letters:
            for seen in dead_letters:
                read(1)
                if not self._is_theirs(seen, own):
                    continue
                place.found += 1
                if not self._run.apply:
                    continue
                key = seen.subject.key
                # A message only to the person is settled first: from then on it is never sent.
                if _is_over(seen) or (key is not None and self._is_to_them(seen) and self._settle(key)):
                    dead_letters.delete(seen.dead_letter)
                    deleted += 1
                else:
                    what = f"{queue.queue}, dead letter {seen.dead_letter.message_id}"
                    self._run.leave("dead-letter queues", what, _DEAD_LETTER[seen.subject.kind])
            if not dead_letters.complete():
                self._run.leave("dead-letter queues", queue.queue, _INCOMPLETE)
        place.erased += deleted
        return deleted

    def _is_theirs(self, seen: ExplainedDeadLetter, own: set[Key]) -> bool:
        """A callback names a message and not its recipient, unless its text does."""
        if seen.subject.kind != "callback" and seen.subject.key in own:
            return True
        if self._run.person.kind == "id":  # which stands in no text for itself
            return self._is_to_them(seen)
        return self._run.person.is_in(seen.dead_letter.body)

    def _is_to_them(self, seen: ExplainedDeadLetter) -> bool:
        """Whether its body is a message only to the person."""
        if seen.subject.kind != "message" or seen.subject.key is None:
            return False
        body = decode(seen.dead_letter.body)  # it was read before: what is no JSON is malformed
        try:
            item_of = _ITEM_OF.get(seen.dead_letter.queue.partition("-")[0], dict)
            image = image_of(item_of(body))
        except Invalid:
            return False
        return role_of(image, self._run.person) == "whole"


def _is_over(seen: ExplainedDeadLetter) -> bool:
    """Whether the dead letter could be sent no more: its message was the person's, and is emptied."""
    return seen.subject.kind in ("message", "event", "callback") and ERASED_AT in seen.item
