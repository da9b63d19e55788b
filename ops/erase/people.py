"""Erasing choices, and what is told of dead letters and of campaigns' runs."""

from typing import TYPE_CHECKING

import boto3

from mailroom.aws.dynamo import Value
from mailroom.message.message import Key
from ops.erase.answer import Left, Place, Ses
from ops.erase.find import Read, key_of
from ops.erase.images import Image, mentioned, redacted, texts
from ops.erase.person import Person
from ops.erase.stage_facts import StageFacts
from ops.erase.tables import Changed, rewrite, scan
from ops.people.suppressions import FAULTS, Lists

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

CHOICES = {"preferences": ("recipient", "topic"), "suppressions": ("recipient", "channel")}
"""The tables of choices, with their keys."""
_COLLECTING = (
    "is collecting, and the place where it goes on names the person; run this again when the run is over"
)


class PeopleErasure:
    """One stage's; `apply` False: counts alone."""

    def __init__(self, session: boto3.Session, facts: StageFacts, person: Person, *, apply: bool) -> None:
        self._session = session
        self._client: DynamoDBClient = session.client("dynamodb")
        self._facts = facts
        self._person = person
        self._apply = apply
        self.remains: list[Left] = []

    def choices(self, table: str, *, keep: bool, read: Read) -> Place:
        """Opt-outs, or the suppression list: those of the person, also what was lifted."""
        place = Place(table)
        for image in scan(self._client, self._facts.table(table), read):
            if not self._is_theirs(image):
                continue
            place.found += 1
            if keep:
                place.kept += 1
            elif self._apply:
                self._delete(table, {name: image[name] for name in CHOICES[table]})
                place.erased += 1
        return place

    def ses(self, *, keep: bool) -> Ses:
        """SES's own list of the account, for a mail address."""
        if self._person.kind != "mail" or not self._apply:
            return "not_asked"
        if keep:
            return "kept"
        try:
            said = Lists(self._session, self._facts.stage).lift_from_ses(self._person.recipient)
        except FAULTS as error:
            self.remains.append(
                Left("SES", "its own suppression list", f"SES refused: {error}; run this again")
            )
            return "failed"
        return "lifted" if said == "lifted" else "not_listed"

    def dead_letters(self, keys: set[Key], read: Read) -> Place:
        """What was told of dead letters. A letter that still lies there is told of anew."""
        place = Place("dead-letters")
        for image in scan(self._client, self._facts.table("dead-letters"), read):
            about = key_of(image) if "id" in image else None
            if about in keys or mentioned(image, self._person):
                place.found += 1
                if self._apply:
                    self._delete("dead-letters", {"message_id": image["message_id"]})
                    place.erased += 1
        return place

    def runs(self, read: Read) -> Place:
        """Faults of campaigns' audiences quote what was wrong with a line."""
        place = Place("campaign-runs")
        for image in scan(self._client, self._facts.table("campaign-runs"), read):
            if mentioned(image, self._person):
                place.found += 1
                place.erased += self._apply and self._run(image)
        return place

    def _run(self, image: Image) -> bool:
        cursor = image.get("cursor")
        told = cursor is not None and any(map(self._person.is_in, texts(cursor)))
        key = {name: image[name] for name in ("campaign", "run")}
        what = f"{key['campaign']['S']}, run {key['run']['S']}"
        if told and image.get("state") == {"S": "collecting"}:
            self.remains.append(Left("campaign-runs", what, _COLLECTING))
            return False
        new = {
            name: value if name in key else redacted(value, self._person)
            for name, value in image.items()
            if not (told and name == "cursor")
        }
        try:
            rewrite(self._client, self._facts.table("campaign-runs"), key, image, new)
        except Changed:
            self.remains.append(Left("campaign-runs", what, "was written meanwhile; run this again"))
            return False
        return True

    def _is_theirs(self, image: Image) -> bool:
        recipient = image.get("recipient", {}).get("S", "")
        return self._person.is_kept_as(recipient) or mentioned(image, self._person)

    def _delete(self, table: str, key: dict[str, Value]) -> None:
        self._client.delete_item(TableName=self._facts.table(table), Key=key)
