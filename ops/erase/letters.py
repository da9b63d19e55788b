"""Erasing dead letters: copies of messages that are over, or that were cancelled for the erasure."""

from collections.abc import Callable

import boto3

from mailroom.aws.dynamo import image_of
from mailroom.channels.fax import contract as fax
from mailroom.errors import Invalid
from mailroom.ledger.items import ERASED_AT
from mailroom.message.message import Key, decode
from ops.dead_letters.look import Looking, Seen
from ops.dead_letters.queues import DeadQueue, DeadQueues
from ops.erase.answer import Left, Place
from ops.erase.find import Read
from ops.erase.images import role_of
from ops.erase.person import Person

_WHY = {
    "message": "is a message to others as well; redrive it, or delete it by hand, then run this again",
    "callback": "is a callback that names the person; redrive it, or delete it by hand, then run this again",
    "event": "is an event of a message to others as well; redrive it, then run this again",
    "campaign": "are people of a campaign, this one among them; redrive them, then run this again",
    "malformed": "names the person and is no message; see what it is, and delete it by hand",
}
_INCOMPLETE = "could not be looked through to its end; run this again"


class LetterErasure:
    """Looks through all dead-letter queues of a stage. `settle` sees to it that nothing comes of a message to
    the person alone, and says whether it could; None: letters are counted, and none is deleted."""

    def __init__(
        self, session: boto3.Session, stage: str, person: Person, settle: Callable[[Key], bool] | None
    ) -> None:
        self._queues = DeadQueues(session, stage)
        self._looking = Looking(session, stage)
        self._person = person
        self._settle = settle
        self.remains: list[Left] = []

    def run(self, own: set[Key], read: Read) -> Place:
        """`own` are messages to the person alone. Their letters go where the ledger was emptied of them."""
        place = Place("dead-letter queues")
        for queue in self._queues.found():
            # Of a FIFO queue's group ten can be seen at once: those behind them come when these are gone.
            deleted = self._pass(queue, own, place, read)
            while deleted and queue.fifo:
                deleted = self._pass(queue, own, place, read)
        return place

    def _pass(self, queue: DeadQueue, own: set[Key], place: Place, read: Read) -> int:
        """One look through a queue; how many letters were deleted."""
        deleted = 0
        with self._looking.through(queue) as letters:
            for seen in letters:
                read(1)
                if not self._is_theirs(seen, own):
                    continue
                place.found += 1
                if self._settle is None:
                    continue
                if _is_over(seen) or self._is_settled(seen, self._settle):
                    letters.delete(seen.letter)
                    deleted += 1
                else:
                    self._leave(queue, seen)
            if not letters.complete():
                self._note(Left("dead-letter queues", queue.queue, _INCOMPLETE))
        place.erased += deleted
        return deleted

    def _is_theirs(self, seen: Seen, own: set[Key]) -> bool:
        """A callback tells of a message and not of its recipient, unless its text does."""
        asks = seen.subject.kind != "callback" and seen.subject.key in own
        return asks or self._person.is_in(seen.letter.body)

    def _is_settled(self, seen: Seen, settle: Callable[[Key], bool]) -> bool:
        """Whether nothing can come any more of a message that its body says is for the person alone."""
        if seen.subject.kind != "message" or seen.subject.key is None:
            return False
        body = decode(seen.letter.body)  # it was read before: what is no JSON is malformed
        try:
            image = image_of(fax.item_of(body) if seen.letter.queue.startswith("fax-") else body)
        except Invalid:
            return False
        return role_of(image, self._person) == "whole" and settle(seen.subject.key)

    def _leave(self, queue: DeadQueue, seen: Seen) -> None:
        left = Left(
            "dead-letter queues", f"{queue.queue}, letter {seen.letter.message_id}", _WHY[seen.subject.kind]
        )
        self._note(left)

    def _note(self, left: Left) -> None:
        if left not in self.remains:
            self.remains.append(left)


def _is_over(seen: Seen) -> bool:
    """Whether nothing would come of the letter any more: its message was the person's, and is emptied."""
    return seen.subject.kind in ("message", "event", "callback") and ERASED_AT in seen.item
