"""Dead letters: looked through where they lie, by an alarm, by a schedule or by hand. Nothing is deleted."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mailroom.aws import clients
from mailroom.clock import Clock
from mailroom.dead_letters.callbacks import CallbackResults
from mailroom.dead_letters.log import DeadLetterLog
from mailroom.dead_letters.look import Look
from mailroom.dead_letters.queue import LONG_POLL_SECONDS, DeadLetterQueue
from mailroom.environment import DeadLetters as Settings
from mailroom.ledger.ledger import Ledger
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

RESERVE_SECONDS = 10.0
"""Kept at the end of an invocation, for what has begun and for putting back."""
PUT_BACK_SECONDS = 0.003
"""A letter's share of a call that puts ten back: kept as well, for each that is held."""


class NotLookedAt(RuntimeError):
    """Some letters could not be looked at. They lie where they were, and the next pass comes to them."""


class DeadLetters:
    """Looks through a stage's dead-letter queues. `urls` has them by short name, such as mail-dlq."""

    def __init__(
        self,
        urls: Mapping[str, str],
        stage: str,
        *,
        ledger: Ledger,
        callbacks: CallbackResults,
        log: DeadLetterLog,
        sqs: "SQSClient",
        long_poll: int,
    ) -> None:
        self._urls = urls
        self._alarms = {f"mailroom-{stage}-{each.removesuffix('.fifo')}-not-empty": each for each in urls}
        self._ledger = ledger
        self._callbacks = callbacks
        self._log = log
        self._sqs = sqs
        self._long_poll = long_poll

    @classmethod
    def of(cls, settings: Settings, clock: Clock = time.time) -> "DeadLetters":
        """What a function's settings describe."""
        return cls(
            settings.dead_letter_queues,
            settings.stage,
            ledger=Ledger.of(settings),
            callbacks=CallbackResults.of(settings.ledger_table),
            log=DeadLetterLog.of(settings.dead_letters_table, clock),
            sqs=clients.sqs(),
            long_poll=LONG_POLL_SECONDS,
        )

    def handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        """One pass: through an alarm's queue, the one that `queue` names, or all of them.

        `remaining` is Lambda's `get_remaining_time_in_millis`. Returns how many letters were seen, and how
        many of them were new, by queue. Raises ValueError for a queue or an alarm that the stage does not
        have and, when all else is done, NotLookedAt.
        """
        found: dict[str, Any] = {}
        failed = 0
        left = self._smallest_first(self._asked(event))
        for at, (queue, waiting) in enumerate(left):
            # One queue of very many letters must not keep a pass from the others.
            share = (remaining() / 1000 - RESERVE_SECONDS) / (len(left) - at)
            look = self._go_through(queue, waiting, share, remaining)
            found[queue.name] = {"seen": queue.seen, "new": look.new}
            failed += look.failed
        if failed:
            count("DeadLettersNotLookedAt", failed)
            raise NotLookedAt(f"{failed} looks at dead letters failed; the lines before say why")
        return found

    def _asked(self, event: Mapping[str, Any]) -> Iterable[str]:
        """The names of the queues that an event is about. An alarm that is over is about none."""
        detail = event.get("detail")
        if isinstance(detail, Mapping) and "alarmName" in detail:
            if detail.get("state", {}).get("value") != "ALARM":
                return ()
            return (_found(self._alarms, detail["alarmName"], "alarm"),)
        if "queue" in event:
            return (_found({each: each for each in self._urls}, event["queue"], "queue"),)
        return self._urls

    def _smallest_first(self, names: Iterable[str]) -> list[tuple[DeadLetterQueue, int]]:
        """The queues with their approximate numbers of letters."""
        queues = (DeadLetterQueue(self._sqs, each, self._urls[each], self._long_poll) for each in names)
        return sorted(((each, _waiting(each)) for each in queues), key=lambda pair: pair[1])

    def _go_through(
        self, queue: DeadLetterQueue, waiting: int, share: float, remaining: Callable[[], int]
    ) -> Look:
        """Look through one queue for `share` seconds at most, and put back all that it handed out."""
        look = Look(self._ledger, self._callbacks, self._log)
        end = remaining() / 1000 - share

        def in_time() -> bool:
            return remaining() / 1000 - queue.seen * PUT_BACK_SECONDS > end

        letters = None
        try:
            while letters != [] and in_time() and not queue.full:
                letters = queue.receive(remaining() / 1000)
                look.at(letters, in_time)
        except Exception:  # noqa: BLE001 - logged and counted; the other queues are looked through
            logger.exception("dead-letter queue not looked through", queue=queue.name)
            look.failed += 1
        finally:
            queue.put_back()
        if not queue.ended:
            logger.warning(
                "dead letters left for the next pass", queue=queue.name, seen=queue.seen, waiting=waiting
            )
        return look


def _waiting(queue: DeadLetterQueue) -> int:
    """For the order of the queues and for people: not knowing it is no reason to stay away."""
    try:
        return queue.waiting()
    except Exception:  # noqa: BLE001 - logged
        logger.exception("dead letters not counted", queue=queue.name)
        return 0


def _found(known: Mapping[str, str], name: object, kind: str) -> str:
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"no {kind} {name!r:.100} here; there are: {', '.join(sorted(known))}")
    return known[name]
