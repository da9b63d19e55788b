"""The messages of a batch and the time: which of them may be sent now, and which wait for their window, for
the day's quota or for a provider that refuses them; and how many were sent."""

import math
from collections.abc import Callable, Container, Iterable, Sequence

from msgspec import convert, structs

from mailroom.budget import CLOSED_SECONDS, Budget, Grant, hour_of
from mailroom.delivery.worker import DONE, ComeBack, QueueRecord, Result, Tools
from mailroom.environment import Sender
from mailroom.errors import Invalid
from mailroom.ledger.contents import Contents, Held
from mailroom.ledger.items import PAUSED
from mailroom.ledger.waits import AHEAD_SECONDS, DAY_USED_UP, OUTSIDE_WINDOW, PROVIDER_REFUSES, Wait, Waits
from mailroom.message.message import Key, Message, encode
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Sent
from mailroom.message.window import Window
from mailroom.telemetry import logger

USED_UP_SECONDS = 900
"""Seconds that a message of a normal lane waits if its provider says that the day is used up: the provider
frees what was sent a day ago bit by bit."""
LATEST_MESSAGES, MOST_REFUSED = 20, 10
"""Bulk is closed once so many of its latest messages were refused for no fault of theirs."""
_METRICS = {
    DAY_USED_UP: "WaitsForDay",
    OUTSIDE_WINDOW: "WaitsForWindow",
    PROVIDER_REFUSES: "WaitsForProvider",
    PAUSED: "WaitsForRun",
}
"""Metrics by the reason of the wait."""
Entry = tuple[Message, QueueRecord]
Waiting = tuple[Wait, QueueRecord]


class SendingTime:
    """Decides which messages of a batch may be sent now. A message outside of its window waits until the
    window opens. Bulk asks for its part of the day, once for the batch and before its submits; other lanes
    never ask: what they have sent is counted when their batch is over.

    If a provider refuses most of what bulk submits, and no message is at fault, new messages of bulk wait: a
    campaign must not become as many dead letters. Messages that were received before go on. They show when
    the provider takes messages again, and become the dead letters whose alarm somebody hears. Each
    environment of the function judges by its own messages, so the direct way has no further call.

    A message waits only if it was certainly not sent: its hold is conditional on that, and is made before any
    claim. Any other message goes on to its claim, and evidence comes before time.
    """

    def __init__(self, settings: Sender, tools: Tools, retry_wait: Callable[[int], float]) -> None:
        """`retry_wait`: see `ChannelDelivery.retry_wait`."""
        self._bulk = settings.bulk
        self._window = convert(settings.window, Window | None)
        client = tools.once or tools.dynamodb
        self._waits = Waits(client, settings.ledger_table, settings.ledger_ttl_seconds, tools.clock)
        self._contents = Contents(tools.dynamodb, settings.contents_table, tools.clock)
        self._tools = tools
        self._retry_wait = retry_wait
        self._budget: Budget | None = None
        if settings.per_day:
            of_day = (settings.channel, settings.per_day, settings.reserve, tools.clock)
            self._budget = Budget(tools.dynamodb, settings.budgets_table, *of_day)
        self._second = math.ceil(1 / settings.pace_seconds) if settings.pace_seconds else 0
        """Recipients that this worker reaches in a second."""
        self._asked_at = 0.0
        self._left = Grant(0, 0)
        """Granted to this worker and not used yet: for its batches of the same second."""
        self._spent: dict[Key, int] = {}
        self._results: dict[Key, Result | Invalid] = {}
        self._paused: Container[str] = ()
        self._refused: dict[Key, bool] = {}
        """Whether the latest messages were refused for no fault of theirs, the latest answer last. A message
        that comes back again and again is one message."""
        self._closed_until = 0.0
        self._unheld: dict[Key, Wait] = {}
        """Waits of messages that may have been sent, so that they could not be held before their claim."""

    def begin(self, entries: Sequence[Entry], paused: Container[str]) -> None:
        """Decide for the messages of a batch, and hold those that must wait. Never raises: a message that
        could not be held comes back later. `paused`: ids of messages whose run is paused."""
        self._paused = paused
        self._spent, self._results, self._unheld = {}, {}, {}
        moment = self._tools.clock()
        waits: list[Waiting] = []
        asking: list[Entry] = []
        for message, record in entries:
            if message.expired(moment):
                continue
            try:
                wait = self._wait_for(message, record, moment)
            except Invalid as fault:
                # The message's `time_zone` is invalid. If the message has no window of its own, nothing
                # checked it before.
                self._results[message.key] = fault
                continue
            if wait is None:
                asking.append((message, record))
            else:
                waits.append((wait, record))
        if self._bulk and self._budget is not None and asking:
            waits += self._ask(self._budget, asking, moment)
        self._hold(waits)

    def postponed(self, key: Key) -> Result | Invalid | None:
        """Return the result of a message that may not go out now, or why it never can; None if it may."""
        return self._results.get(key)

    def must_wait(self, key: Key) -> bool:
        """Return whether the message has to wait, and was not held because it may have been sent."""
        return key in self._unheld

    def postpone_unsent(self, key: Key, record: QueueRecord) -> Result:
        """Hold a message that must wait, after evidence has shown that no try has sent it. Its claim must be
        released before."""
        return self._held(self._unheld.pop(key), record)

    def spend(self, message: Message) -> None:
        """Count the recipients of a message as the provider is given it now."""
        self._spent[message.key] = message.recipient_count

    def unspend(self, key: Key) -> None:
        """Take back the count of a message that its provider has not accepted."""
        self._spent.pop(key, None)

    def answered(self, key: Key, outcome: Outcome) -> None:
        """Remember whether the provider refuses what bulk submits. An answer that puts a message off does not
        count."""
        if isinstance(outcome, Sent | Rejected | Misconfigured):
            self._refused.pop(key, None)
            self._refused[key] = isinstance(outcome, Misconfigured)

    def used_up(self, message: Message, record: QueueRecord) -> Result:
        """Close the day for bulk, because the provider's quota of today is used up, and hold the message. Its
        claim must be released before."""
        if self._budget is not None:
            # Hour 0 makes the rest of the grant outdated, so that the next batch does not use it.
            self._left = self._left._replace(hour=0)
            try:
                self._budget.close()
            except Exception:  # noqa: BLE001 - logged; bulk finds out by itself that the day is used up
                logger.warning("the day could not be closed for bulk", exc_info=True)
        lines_up = self._bulk and self._budget is not None
        due = self._tools.clock() + (0 if lines_up else USED_UP_SECONDS)
        return self._held(self._wait(message, record, DAY_USED_UP, due), record)

    def end(self) -> None:
        """Count what was sent without a grant. What bulk did not use of its grant is for its next batch of
        the same second. Never raises."""
        if self._bulk:
            self._judge()
        sent = sum(self._spent.values())
        if self._budget is None or not sent:
            return
        if self._bulk:
            # Messages that may have been sent before need no grant, but count as well. So more may have been
            # sent than was granted, and the excess is counted separately.
            granted = min(sent, self._left.recipients)
            self._left = self._left._replace(recipients=self._left.recipients - granted)
            sent -= granted
        if sent:
            self._count(self._budget, sent)

    def _count(self, budget: Budget, sent: int) -> None:
        try:
            budget.count(sent, bulk=self._bulk)
        except Exception:  # noqa: BLE001 - logged; the messages are sent, and the provider's own count holds
            logger.warning("the day's budget was not told of a batch", recipients=sent, exc_info=True)

    def _wait_for(self, message: Message, record: QueueRecord, moment: float) -> Wait | None:
        """Return the wait for a paused run, for the message's time and window, or for a provider that refuses
        messages; None if there is none. Raises Invalid for an unknown time zone."""
        if message.id in self._paused:
            return self._wait(message, record, PAUSED, moment)
        window = message.window or self._window
        due = message.due() or moment
        # Dispatch holds a message until its `send_at`. A message of a stopped run that is sent after all
        # bypasses dispatch, so it is held here.
        earliest = due if self._bulk and due > moment + AHEAD_SECONDS else moment
        opens = earliest if window is None else window.opens(earliest, message.time_zone)
        if opens > moment:
            return self._wait(message, record, OUTSIDE_WINDOW, opens)
        if moment < self._closed_until and record.receives == 1:
            return self._wait(message, record, PROVIDER_REFUSES, self._closed_until)
        return None

    def _wait(self, message: Message, record: QueueRecord, reason: str, due: float) -> Wait:
        window = message.window or self._window
        if window is not None and message.time_zone is not None:
            window = structs.replace(window, zone=message.time_zone)
        return Wait(
            message,
            reason,
            min(due, message.expiry() or due),
            self._tools.ledger.new_token(),
            record.put_at,
            window,
            lines_up=self._bulk and self._budget is not None,
            new=record.fresh and message.attempt == 1 and message.send_at is None,
        )

    def _ask(self, budget: Budget, asking: Sequence[Entry], moment: float) -> Iterable[Waiting]:
        """Ask for the messages' part of the day, and return the waits of those that get none. Those that were
        put first are served first, and a smaller one behind does not overtake. Never raises."""
        # A grant older than a second is not used: it would let messages overtake a line that has opened
        # since.
        if moment >= self._asked_at + 1 or self._left.hour != hour_of(moment):
            self._left = Grant(0, hour_of(moment))
        in_order = sorted(asking, key=lambda entry: _place(entry, moment))
        try:
            part = budget.largest_part()
            fitting = []
            for message, record in in_order:
                if message.recipient_count > part:
                    self._results[message.key] = _larger_than_day(message, part)
                else:
                    fitting.append((message, record))
            over = self._over(budget, fitting, moment)
        except Exception:  # noqa: BLE001 - logged; they wait in the queue, as when the ledger cannot be asked
            logger.exception("the day's budget could not be asked; they go back to the queue unsent")
            self._tools.tally.add("Errors")
            self._results |= {
                message.key: ComeBack(self._retry_wait(record.receives)) for message, record in asking
            }
            return []
        return [(self._wait(message, record, DAY_USED_UP, moment), record) for message, record in over]

    def _over(self, budget: Budget, asking: Sequence[Entry], moment: float) -> Sequence[Entry]:
        """Return the messages for which today lacks room, of messages in the order of their places."""
        turn, behind = asking, list[Entry]()
        line_at = self._take(budget, turn, moment, self._second if moment < self._asked_at + 1 else 0)
        if line_at < math.inf:
            # Messages that were put earlier than some of these wait in line, so only messages up to their
            # place may ask.
            turn = [entry for entry in asking if _place(entry, moment) <= line_at]
            behind = [entry for entry in asking if _place(entry, moment) > line_at]
            self._take(budget, turn, moment)
        promised = 0
        for number, (message, _) in enumerate(turn):
            promised += message.recipient_count
            if promised > self._left.recipients:
                return [*turn[number:], *behind]
        return behind

    def _take(self, budget: Budget, messages: Sequence[Entry], moment: float, minimum: int = 0) -> float:
        """Ask for what the messages need beside what is left, and for at least `minimum` recipients.
        Returns the place up to which messages may ask, if some of these may not; else infinity."""
        lacking = sum(message.recipient_count for message, _ in messages) - self._left.recipients
        if lacking <= 0:
            return math.inf
        self._asked_at = moment
        place = _place(messages[-1], moment)
        grant = budget.ask(max(lacking, minimum), place)
        self._left = self._left._replace(recipients=self._left.recipients + grant.recipients)
        return grant.line_at if grant.line_at < place else math.inf

    def _hold(self, waiting: Sequence[Waiting]) -> None:
        """Hold messages, and keep the result of each. A message that could not be held comes back later; one
        that may have been sent goes on to its claim. Never raises."""
        if not waiting:
            return
        waits = [wait for wait, _ in waiting]
        try:
            self._contents.put(
                [(Held(wait.message.key, wait.version), encode(record.item)) for wait, record in waiting]
            )
            results = self._waits.hold(waits)
            unheld = [wait for wait, is_held in zip(waits, results, strict=True) if not is_held]
            self._contents.delete(Held(wait.message.key, wait.version) for wait in unheld)
            self._join([wait for wait, is_held in zip(waits, results, strict=True) if is_held])
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the records
            logger.exception("not held; they go back to the queue unsent")
            self._tools.tally.add("Errors")
            for wait, record in waiting:
                self._results[wait.message.key] = ComeBack(self._retry_wait(record.receives))
            return
        self._unheld |= {wait.message.key: wait for wait in unheld}
        for wait, is_held in zip(waits, results, strict=True):
            if is_held:
                self._tools.tally.add(_METRICS[wait.reason])
                self._results[wait.message.key] = DONE

    def _held(self, wait: Wait, record: QueueRecord) -> Result:
        """Hold one message, and return its result."""
        key = wait.message.key
        self._hold([(wait, record)])
        result = self._results.get(key)
        return result if isinstance(result, Result) else ComeBack(USED_UP_SECONDS)

    def _join(self, waits: Sequence[Wait]) -> None:
        """Open the line for those who wait for the day now, so that no later message overtakes them."""
        moment = self._tools.clock()
        places = [wait.put_at or moment for wait in waits if wait.lines_up and wait.reason == DAY_USED_UP]
        if self._budget is not None and places:
            self._budget.join(min(places))

    def _judge(self) -> None:
        """Close bulk for a while if the provider has refused most of the latest messages."""
        self._refused = dict([*self._refused.items()][-LATEST_MESSAGES:])
        if self._tools.tally.counts["Misconfigured"] and sum(self._refused.values()) >= MOST_REFUSED:
            self._closed_until = self._tools.clock() + CLOSED_SECONDS
            logger.error("bulk is closed: the provider refuses its messages", seconds=CLOSED_SECONDS)
            self._tools.tally.add("BulkClosed")


def _place(entry: Entry, moment: float) -> int:
    """Return when the message was put, in whole epoch seconds, as the queue's attribute has it."""
    return int(entry[1].put_at or moment)


def _larger_than_day(message: Message, part: int) -> Invalid:
    return Invalid(
        "to",
        f"has {message.recipient_count} recipients, more than bulk may reach in a day ({part}); use fewer",
    )
