"""A batch and the time: which messages may be sent now, and which wait for their window, for their slot of
the day or for a provider that refuses; and how many were sent."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import convert

from mailroom.aws import queues
from mailroom.aws.queues import Entry
from mailroom.budget import CLOSED_SECONDS, Budget, Grant, hour_of
from mailroom.delivery.worker import DONE, ComeBack, QueueRecord, Result, Tools
from mailroom.environment import Sender
from mailroom.errors import Invalid
from mailroom.message.message import DAY_USED_UP, OUTSIDE_WINDOW, PROVIDER_REFUSES, Held, Key, Message
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Sent
from mailroom.message.window import Window
from mailroom.telemetry import logger

USED_UP_SECONDS = 900
"""How long a message of a normal lane waits where its provider says that the day is used up: the provider
frees what was sent a day ago bit by bit."""
LATEST_MESSAGES, MOST_REFUSED = 20, 10
"""Bulk is closed once so many of its latest messages were refused for no fault of theirs."""
_WAITS = {
    DAY_USED_UP: "WaitsForDay",
    OUTSIDE_WINDOW: "WaitsForWindow",
    PROVIDER_REFUSES: "WaitsForProvider",
}
"""The metrics by the code of the wait."""
Asking = tuple[Message, QueueRecord]


class SendingTime:
    """Whether the messages of a batch may go out now. What is outside of its window waits until that opens.
    Bulk asks for its part of the day, once for the batch and before its submits; other lanes never ask: what
    they have sent is counted when their batch is over.

    If a provider refuses most of what bulk submits, and no message is at fault, new messages of bulk wait: a
    campaign must not become as many dead letters. Messages that were received before go on. They show when
    the provider takes messages again, and become the dead letters whose alarm somebody hears. Each
    environment of the function judges by its own messages, so the direct way has no further call.

    What waits goes to the queue `scheduled`, with its content and its time: there it waits without being
    received, and comes no nearer to the dead letters.
    """

    def __init__(self, settings: Sender, tools: Tools, retry_wait: Callable[[int], float]) -> None:
        """`retry_wait`: see `ChannelDelivery.retry_wait`."""
        self._bulk = settings.bulk
        self._window = convert(settings.window, Window | None)
        self._scheduled = settings.scheduled_queue_url
        self._tools = tools
        self._retry_wait = retry_wait
        self._budget: Budget | None = None
        if settings.per_day:
            of_day = (settings.channel, settings.per_day, settings.reserve, tools.clock)
            self._budget = Budget(tools.dynamodb, settings.budgets_table, *of_day)
        self._left = Grant(0, 0)
        """Granted to this worker and not used yet: good for the hour in which it counts."""
        self._promised = 0
        self._spent: dict[Key, int] = {}
        self._kept: dict[Key, Result | Invalid] = {}
        self._refused: dict[Key, bool] = {}
        """Whether the latest messages were refused for no fault of theirs, the latest answer last. A message
        that comes back again and again is one message."""
        self._closed_until = 0.0

    def begin(self, messages: Iterable[Asking]) -> None:
        """Ask for the messages of a batch. Raises nothing: without an answer they come back later."""
        self._spent, self._kept, self._promised = {}, {}, 0
        now = self._tools.clock()
        inside = [*self._inside(messages, now)]
        if now < self._closed_until:
            inside = self._closed(inside, now)
        if self._budget is None or not self._bulk:
            return
        if self._left.hour != hour_of(now):
            self._left = Grant(0, hour_of(now))
        asking = {each[0].key: each for each in inside if not each[0].expired(now)}
        # Who has waited goes first.
        for in_line in (True, False):
            those = [each for each in asking.values() if each[1].in_line is in_line]
            if not those:
                continue
            try:
                self._ask(self._budget, those, in_line=in_line)
            except Exception:  # noqa: BLE001 - logged; they wait in the queue, as when the ledger cannot be asked
                logger.exception("the day's budget could not be asked; they go back to the queue unsent")
                self._tools.tally.add("Errors")
                self._kept |= {
                    each.key: ComeBack(self._retry_wait(record.receives)) for each, record in those
                }

    def postponed(self, key: Key) -> Result | Invalid | None:
        """Return the result of a message that may not go out now, or why it never can; None if it may."""
        return self._kept.get(key)

    def spend(self, message: Message) -> None:
        """Count the recipients of a message as the provider is given it now."""
        self._spent[message.key] = message.recipient_count

    def unspend(self, key: Key) -> None:
        """Count nobody for a message that its provider has not taken."""
        self._spent.pop(key, None)

    def answered(self, key: Key, outcome: Outcome) -> None:
        """Keep whether the provider refuses what bulk submits. An answer that puts a message off does not
        count."""
        if isinstance(outcome, Sent | Rejected | Misconfigured):
            self._refused.pop(key, None)
            self._refused[key] = isinstance(outcome, Misconfigured)

    def used_up(self, message: Message, record: QueueRecord) -> Result:
        """The provider takes no more today. Closes the day for bulk, and lets the message wait."""
        slots: Sequence[float] = [self._tools.clock() + USED_UP_SECONDS]
        if self._budget is not None:
            try:
                self._left = Grant(0, 0)
                self._budget.close()
                if self._bulk:
                    slots = self._budget.line_up([message.recipient_count])
            except Exception:  # noqa: BLE001 - logged; bulk finds out by itself that the day is used up
                logger.warning("the day could not be closed for bulk", exc_info=True)
        return self._postpone([(message, record)], slots)[message.key]

    def end(self) -> None:
        """Count what a normal lane has sent; what bulk did not need is for its next batch. Raises nothing."""
        if self._bulk:
            self._judge()
        sent = sum(self._spent.values())
        if self._budget is None or not sent:
            return
        if self._bulk:
            self._left = Grant(max(0, self._left.recipients - sent), self._left.hour)
            return
        try:
            self._budget.count(sent)
        except Exception:  # noqa: BLE001 - logged; the messages are sent, and the provider's own count holds
            logger.warning("the day's budget was not told of a batch", recipients=sent, exc_info=True)

    def _inside(self, messages: Iterable[Asking], now: float) -> Iterator[Asking]:
        """The messages whose window is open; the others wait."""
        outside: dict[Key, tuple[Asking, float]] = {}
        for message, record in messages:
            window = message.window or self._window
            try:
                opens = now if window is None else window.opens(now, message.time_zone)
            except Invalid as fault:  # its time_zone, which nobody checks without a window of its own
                self._kept[message.key] = fault
                continue
            if opens > now and not message.expired(now):
                outside[message.key] = (message, record), opens
            else:
                yield message, record
        if outside:
            those, opens_at = zip(*outside.values(), strict=True)
            self._kept |= self._postpone(those, opens_at, OUTSIDE_WINDOW)

    def _closed(self, messages: Sequence[Asking], now: float) -> list[Asking]:
        """Let new messages wait while bulk is closed; the messages that go on."""
        new = [each for each in messages if each[1].receives == 1 and not each[0].expired(now)]
        if new:
            self._kept |= self._postpone(new, [self._closed_until] * len(new), PROVIDER_REFUSES)
        return [each for each in messages if each[0].key not in self._kept]

    def _judge(self) -> None:
        """Close bulk for a while if the provider has refused most of the latest messages."""
        self._refused = dict([*self._refused.items()][-LATEST_MESSAGES:])
        if self._tools.tally.counts["Misconfigured"] and sum(self._refused.values()) >= MOST_REFUSED:
            self._closed_until = self._tools.clock() + CLOSED_SECONDS
            logger.error("bulk is closed: the provider refuses its messages", seconds=CLOSED_SECONDS)
            self._tools.tally.add("BulkClosed")

    def _ask(self, budget: Budget, asking: Sequence[Asking], *, in_line: bool) -> None:
        wanted = sum(each.recipient_count for each, _ in asking) - (self._left.recipients - self._promised)
        if wanted > 0:
            grant = budget.ask(wanted, in_line=in_line)
            self._left = Grant(self._left.recipients + grant.recipients, grant.hour)
        over: list[Asking] = []
        for each in asking:
            size = each[0].recipient_count
            # In their order: a smaller one behind does not overtake.
            if over or self._promised + size > self._left.recipients:
                over.append(each)
            else:
                self._promised += size
        if over:
            self._kept |= self._postpone(over, budget.line_up([each.recipient_count for each, _ in over]))

    def _postpone(
        self, messages: Sequence[Asking], slots: Sequence[float], code: str = DAY_USED_UP
    ) -> dict[Key, Result]:
        """Let each wait until its slot, or until it expires. What the queue does not take comes back."""
        for_day = code == DAY_USED_UP
        entries = []
        for at, ((message, record), slot) in enumerate(zip(messages, slots, strict=True)):
            due = min(slot, message.expiry() or slot)
            # A wait for the window, or of bulk for the day, is as it should be; any other is a delay.
            as_it_should = code == OUTSIDE_WINDOW or (for_day and self._bulk)
            in_line = self._bulk and (for_day or record.in_line)
            held = Held(record.item, due, due if as_it_should else record.put_at, in_line=in_line, code=code)
            entries.append(Entry(str(at), held.body))
        refused = queues.send(self._tools.sqs, self._scheduled, entries)
        waits: dict[Key, Result] = {}
        for entry, (message, record) in zip(entries, messages, strict=True):
            if entry.reference in refused:
                waits[message.key] = ComeBack(self._retry_wait(record.receives))
            else:
                self._tools.tally.add(_WAITS[code])
                waits[message.key] = DONE
        return waits
