"""Erasing one person from one stage: a look at all places, the erasure, and the same look once more."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import boto3
from msgspec import Struct

from mailroom.clock import iso
from mailroom.message.message import Key
from ops.erase.answer import Erased, Left, Place, Ses
from ops.erase.find import Messages, Read, find
from ops.erase.letters import LetterErasure
from ops.erase.messages import MessageErasure
from ops.erase.others import other_tables
from ops.erase.people import CHOICES, PeopleErasure
from ops.erase.person import Person
from ops.erase.stage_facts import StageFacts
from ops.erase.unprocessed import UnprocessedErasure

Step = Callable[[str], AbstractContextManager[Read]]
"""Begins a step of that name; what it yields is told of everything that is read."""


class Look(Struct):
    """What one look has found: the messages, and a place each."""

    messages: Messages
    places: dict[str, Place]

    @property
    def found(self) -> int:
        """All of it."""
        return sum(each.found for each in self.places.values())


class Erasing:
    """`keep_choices`: opt-outs and the suppression list stay, SES's too."""

    def __init__(
        self, session: boto3.Session, facts: StageFacts, person: Person, step: Step, *, keep_choices: bool
    ) -> None:
        self._session = session
        self._facts = facts
        self._person = person
        self.step = step
        self._keep = keep_choices
        self._remains: list[Left] = []

    def look(self) -> Look:
        """Find all there is; change nothing."""
        with self.step("messages") as read:
            messages = find(self._session.client("dynamodb"), self._facts, self._person, read)
        found = list(messages.found.values())
        places = [
            Place("mailbox", sum(each.mailbox is not None for each in found)),
            Place("ledger", sum(each.ledger is not None for each in found)),
            Place("payloads", len({each for one in found if one.role == "whole" for each in one.objects})),
            *self._beside(set(messages.keys("whole")), None),
        ]
        return Look(messages, {each.place: each for each in places})

    def erase(self, look: Look) -> tuple[int, Ses]:
        """Erase what a look has found. How many messages were cancelled, and what SES said."""
        messages = MessageErasure(self._session, self._facts, self._person)
        with self.step("messages") as read:
            messages.run(look.messages, read)
        people = PeopleErasure(self._session, self._facts, self._person, apply=True)
        ses = people.ses(keep=self._keep)
        self._remains += people.remains
        own = set(look.messages.keys("whole"))
        done = {each.place: each for each in self._beside(own, messages.copy_of)}
        self._remains += messages.remains
        for name, place in {**messages.places, **done}.items():
            look.places[name].erased = place.erased
            look.places[name].kept = place.kept
        return messages.cancelled, ses

    def _beside(self, own: set[Key], settle: Callable[[Key], bool] | None) -> list[Place]:
        """All places beside the messages' own. `own` are those to the person alone; without `settle` they are
        only counted."""
        apply = settle is not None
        people = PeopleErasure(self._session, self._facts, self._person, apply=apply)
        batches = UnprocessedErasure(self._session, self._facts, self._person, apply=apply)
        letters = LetterErasure(self._session, self._facts.stage, self._person, settle)
        places = []
        for table in CHOICES:
            with self.step(table) as read:
                places.append(people.choices(table, keep=self._keep, read=read))
        for name, work in (
            ("dead-letters", lambda read: people.dead_letters(own, read)),
            ("campaign-runs", people.runs),
            ("unprocessed", batches.run),
            ("dead-letter queues", lambda read: letters.run(own, read)),
        ):
            with self.step(name) as read:
                places.append(work(read))
        with self.step("other tables") as read:
            places += other_tables(self._session, self._facts, self._person, read)
        if apply:
            self._remains += [*people.remains, *batches.remains, *letters.remains]
        return places

    def answer(self, first: Look, last: Look | None, cancelled: int = 0, ses: Ses = "not_asked") -> Erased:
        """What `first` has found, and what of it `last` still finds (None: nothing was erased)."""
        ids = (last or first).messages.ids
        if last is not None:
            for name, place in first.places.items():
                place.left = max(0, last.places[name].found - last.places[name].kept)
        end = max(ids.values(), default=0)
        return Erased(
            self._facts.stage,
            last is None,
            list(first.places.values()),
            cancelled,
            self._remains,
            sorted(ids),
            iso(end) if end else None,
            ses,
            sum(each.left for each in first.places.values()) if last is not None else first.found,
        )
