"""A model of an SQS FIFO queue on a virtual clock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

DUPLICATES_SECONDS = 300.0


@dataclass
class Letter:
    """A message of a group. After a receive it is invisible until `visible_at`."""

    message_id: str
    body: str
    group: str
    visible_at: float = 0.0
    receives: int = 0
    receipts: list[str] = field(default_factory=list)


class Fifo:
    """A queue whose groups are in order.

    A message in flight locks its group. Repeats within five minutes are dropped, and the redrive policy
    unlocks the group of a message that it moves.
    """

    def __init__(self, clock: Callable[[], float], visibility: float, max_receives: int) -> None:
        self._clock = clock
        self._visibility = visibility
        self._max_receives = max_receives
        self._taken: dict[tuple[str, str], float] = {}
        self._made = 0
        self.letters: list[Letter] = []
        self.dead: list[Letter] = []

    def put(self, body: str, group: str, duplicate: str) -> None:
        taken = self._taken.get((group, duplicate))
        if taken is not None and self._clock() < taken + DUPLICATES_SECONDS:
            return
        self._taken[group, duplicate] = self._clock()
        self._made += 1
        self.letters.append(Letter(f"f{self._made}", body, group))

    def receive(self) -> list[dict[str, Any]]:
        """Return the first message of the first unlocked group in a list, or [] if all are locked or
        empty."""
        locked: set[str] = set()
        for letter in list(self.letters):
            if letter.group in locked:
                continue
            if letter.visible_at > self._clock():
                locked.add(letter.group)
                continue
            if letter.receives == self._max_receives:
                self.letters.remove(letter)
                self.dead.append(letter)
                continue
            return [self._handed_out(letter)]
        return []

    def delete(self, receipt: str) -> None:
        """Delete a message.

        Has no effect if the receipt has expired, because the message is visible again or was received again.
        """
        letter = self._held(receipt)
        if letter is not None:
            self.letters.remove(letter)

    def hide(self, receipt: str, seconds: float) -> None:
        letter = self._held(receipt)
        if letter is not None:
            letter.visible_at = self._clock() + seconds

    def next_visible(self) -> float | None:
        """Return the time of the next possible receive, or None if the queue is empty."""
        heads: dict[str, float] = {}
        for letter in self.letters:
            heads.setdefault(letter.group, letter.visible_at)
        return min(heads.values(), default=None)

    def redrive(self) -> None:
        """Move the dead letters back, as an operator does."""
        for letter in self.dead:
            self._made += 1
            self.letters.append(Letter(f"f{self._made}", letter.body, letter.group))
        self.dead.clear()

    def _handed_out(self, letter: Letter) -> dict[str, Any]:
        letter.receives += 1
        letter.visible_at = self._clock() + self._visibility
        letter.receipts.append(f"{letter.message_id}/{letter.receives}")
        return {
            "messageId": letter.message_id,
            "receiptHandle": letter.receipts[-1],
            "body": letter.body,
            "attributes": {
                "ApproximateReceiveCount": str(letter.receives),
                "MessageGroupId": letter.group,
            },
        }

    def _held(self, receipt: str) -> Letter | None:
        for letter in self.letters:
            if letter.receipts[-1:] == [receipt] and letter.visible_at > self._clock():
                return letter
        return None
