"""The look at one dead letter: mark the ledger's item, write the log line, remember that it was written.

A process that dies before the last of these does all of it again: a line may then come twice, but none is
lost. The other way round a crash would leave a letter that nobody was ever told of.
"""

from collections.abc import Callable, Iterable
from typing import Any

from mailroom.clock import iso
from mailroom.dead_letters.callbacks import CallbackResults
from mailroom.dead_letters.cause import cause_of
from mailroom.dead_letters.dead_letter import Letter
from mailroom.dead_letters.log import DeadLetterLog
from mailroom.dead_letters.subject import Subject, subject_of
from mailroom.ledger.ledger import Ledger
from mailroom.telemetry import count, logger, working_on


class Look:
    """Looks at letters, at each once. `new` counts those, `failed` the ones that it could not look at."""

    def __init__(self, ledger: Ledger, callbacks: CallbackResults, log: DeadLetterLog) -> None:
        self._ledger = ledger
        self._callbacks = callbacks
        self._log = log
        self.new = 0
        self.failed = 0

    def at(self, letters: Iterable[Letter], in_time: Callable[[], bool]) -> None:
        """Look at those that are new, as long as there is time. Raises where it cannot be told which are."""
        before = self.new
        for letter in self._log.unknown(letters):
            if not in_time():
                break
            subject = subject_of(letter)
            working_on(subject.key)
            try:
                self._look(letter, subject)
                self.new += 1
            except Exception:  # noqa: BLE001 - logged and counted; the others of its queue are looked at
                logger.exception("dead letter not looked at", message_id=letter.message_id)
                self.failed += 1
            finally:
                working_on(None)
        if self.new > before:
            count("DeadLetters", self.new - before)

    def _look(self, letter: Letter, subject: Subject) -> None:
        cause = cause_of(letter, subject, self._item(subject))
        logger.error(
            "dead letter",
            queue=letter.queue,
            cause={"code": cause.code, "message": cause.message},
            receives=letter.receives,
            message_id=letter.message_id,
            sent_at=iso(letter.sent_at / 1000),
        )
        self._log.remember(letter, subject.key, cause)

    def _item(self, subject: Subject) -> dict[str, Any]:
        """What the ledger knows; where the letter asks for the message, it is marked on the way."""
        if subject.key is None or subject.kind == "event":
            return {}
        if subject.kind == "callback":
            return self._callbacks.find(subject.key)
        return self._ledger.dead_lettered(subject.key)
