"""Sending time of the messages of a batch. A message may be sent now, or it waits for its window, for the
daily budget or until the provider accepts messages again. The recipients of sent messages are counted in the
daily budget."""

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
"""Seconds that a message of a normal lane waits if its provider refuses it because the daily quota is used
up. The quota is of the last 24 hours, so the provider frees it bit by bit."""
LATEST_MESSAGES, MOST_REFUSED = 20, 10
"""The bulk lane waits as soon as MOST_REFUSED of its LATEST_MESSAGES latest messages were refused because of
the configuration, not because of the message."""
_METRICS = {
    DAY_USED_UP: "WaitsForDay",
    OUTSIDE_WINDOW: "WaitsForWindow",
    PROVIDER_REFUSES: "WaitsForProvider",
    PAUSED: "WaitsForRun",
}
"""Metric by the reason of the wait."""
Entry = tuple[Message, QueueRecord]
Waiting = tuple[Wait, QueueRecord]


class SendingTime:
    """Decides which messages of a batch may be sent now. A message outside of its window waits until the
    window opens. The bulk lane reserves its recipients in the daily budget, once for the batch and before its
    submits. Other lanes never reserve recipients: their recipients are counted after the batch.

    If a provider refuses most bulk messages because of the configuration, new bulk messages wait, so that a
    campaign does not end as thousands of dead letters. Messages that were received before are still
    submitted. They show when the provider accepts messages again, or they become dead letters, which set off
    an alarm. Each execution environment of the Lambda function decides by the messages that it has submitted,
    so this costs no further call.

    A message waits only if it was certainly not sent. This is a condition of the write that holds it, which
    precedes any claim. Any other message is claimed first, and waits only if evidence shows that no try has
    sent it.
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
            of_day = (settings.budget or settings.channel, settings.per_day, settings.reserve, tools.clock)
            self._budget = Budget(tools.dynamodb, settings.budgets_table, *of_day)
        self._second = math.ceil(1 / settings.pace_seconds) if settings.pace_seconds else 0
        """Maximum number of messages that this worker submits in a second. If the worker needs a second grant
        within a second, it reserves at least this number of recipients."""
        self._asked_at = 0.0
        self._left = Grant(0, 0)
        """Recipients that the budget has granted to this worker and that are not used yet. Batches of the
        same second may use them."""
        self._spent: dict[Key, int] = {}
        self._unsent = False
        """Whether a message of the batch used no part of the grant."""
        self._results: dict[Key, Result | Invalid] = {}
        self._paused: Container[str] = ()
        self._refused: dict[Key, bool] = {}
        """Whether each of the latest messages was refused because of the configuration, by message, with the
        latest response last. A message that is retried counts once."""
        self._closed_until = 0.0
        provider = settings.other_provider
        self._lines_up = self._bulk and self._budget is not None and (not provider or provider.is_fallback)
        """Whether messages that wait for the daily budget are sent in the order in which they were put. This
        is false for the sender of a fallback: after a wait, its messages go to the first provider again."""
        self._closes = self._bulk and not (provider and provider.is_fallback)
        """Whether new messages wait if the provider refuses most of them. They do not if they go to another
        provider instead."""
        self._unheld: dict[Key, Wait] = {}
        """Waits of messages that may have been sent. Such a message cannot be held before its claim."""

    def begin(self, entries: Sequence[Entry], paused: Container[str]) -> None:
        """Decide which messages of a batch must wait, and hold them. Never raises: a message that could not
        be held goes back to the queue. `paused` contains the ids of the messages whose campaign run is
        paused."""
        self._paused = paused
        self._spent, self._results, self._unheld, self._unsent = {}, {}, {}, False
        moment = self._tools.clock()
        waits: list[Waiting] = []
        asking: list[Entry] = []
        for message, record in entries:
            if message.expired(moment):
                continue
            try:
                wait = self._wait_for(message, record, moment)
            except Invalid as fault:
                # The message's `time_zone` is invalid. It is first checked here if the message has no
                # attribute `window`.
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
        """Return the result of a message that may not be sent now, or Invalid if the message can never be
        sent. Returns None if the message may be sent now."""
        return self._results.get(key)

    def must_wait(self, key: Key) -> bool:
        """Return whether the message has to wait but could not be held, because it may have been sent."""
        return key in self._unheld

    def postpone_unsent(self, key: Key, record: QueueRecord) -> Result:
        """Hold a message that must wait, after evidence has shown that no try has sent it. The caller must
        release its claim before. Returns the record's result."""
        return self._held(self._unheld.pop(key), record)

    def spend(self, message: Message) -> None:
        """Count the recipients of a message that is about to be submitted."""
        self._spent[message.key] = message.recipient_count

    def unspend(self, key: Key) -> None:
        """Remove the recipients of a message that its provider has not accepted from the count."""
        self._spent.pop(key, None)
        self._unsent = True

    def answered(self, key: Key, outcome: Outcome) -> None:
        """Remember whether the provider has refused a message because of the configuration. Retry, DayUsedUp
        and Conflict do not count."""
        if isinstance(outcome, Sent | Rejected | Misconfigured):
            self._refused.pop(key, None)
            self._refused[key] = isinstance(outcome, Misconfigured)

    def used_up(self, message: Message, record: QueueRecord) -> Result:
        """Hold a message that the provider has refused because the daily quota is used up, and stop the bulk
        lane for an hour. The caller must release the message's claim before. Returns the record's result."""
        if self._budget is not None:
            # Hour 0 makes the rest of the grant outdated, so that the next batch does not use it.
            self._left = self._left._replace(hour=0)
            try:
                self._budget.close()
            except Exception:  # noqa: BLE001 - logged; further bulk messages are refused as well
                logger.warning("the daily budget could not be closed for bulk messages", exc_info=True)
        return self._held(self._day_wait(message, record), record)

    def end(self) -> None:
        """Count the recipients who were reached without a grant. The unused rest of a grant to the bulk lane
        remains for its next batch of the same second. Never raises."""
        if self._closes:
            self._judge()
        sent = sum(self._spent.values())
        if self._budget is None:
            return
        if self._bulk:
            # Messages that may have been sent before need no grant, but count as well. So more may have been
            # sent than was granted, and the excess is counted separately.
            granted = min(sent, self._left.recipients)
            self._left = self._left._replace(recipients=self._left.recipients - granted)
            sent -= granted
            if self._unsent and not self._closes:
                self._return_grant(self._budget)
        if sent:
            self._count(self._budget, sent)

    def _return_grant(self, budget: Budget) -> None:
        """Return the rest of the grant. Without this, each try of a message that goes to another provider
        would use up a part of the day. Never raises."""
        grant, self._left = self._left, self._left._replace(recipients=0)
        try:
            if grant.recipients > 0 and grant.hour:
                budget.settle(self._tools.once or self._tools.dynamodb, grant, 0)
        except Exception:  # noqa: BLE001 - logged; fewer bulk messages can be sent that day
            logger.warning("a grant was not returned", recipients=grant.recipients, exc_info=True)

    def _count(self, budget: Budget, sent: int) -> None:
        try:
            budget.count(sent, bulk=self._bulk)
        except Exception:  # noqa: BLE001 - logged; the messages are sent, and the provider counts them too
            logger.warning("recipients were not counted in the budget", recipients=sent, exc_info=True)

    def _wait_for(self, message: Message, record: QueueRecord, moment: float) -> Wait | None:
        """Return the wait if the message's run is paused, if the message is not due, if its window is closed,
        or if the provider refuses messages. Returns None if the message need not wait. Raises Invalid for an
        unknown time zone."""
        if message.id in self._paused:
            return self._wait(message, record, PAUSED, moment)
        window = message.window or self._window
        due = message.due() or moment
        # The function `dispatch` holds a message until its `send_at`. A message of a stopped run that is
        # restarted bypasses `dispatch`, so it is held here.
        earliest = due if self._bulk and due > moment + AHEAD_SECONDS else moment
        opens = earliest if window is None else window.opens(earliest, message.time_zone)
        if opens > moment:
            return self._wait(message, record, OUTSIDE_WINDOW, opens)
        if moment < self._closed_until and record.receives == 1:
            return self._wait(message, record, PROVIDER_REFUSES, self._closed_until)
        return None

    def _day_wait(self, message: Message, record: QueueRecord) -> Wait:
        """Return the wait for the daily quota or budget: until the budget has capacity for the message, or
        for USED_UP_SECONDS."""
        due = self._tools.clock() + (0 if self._lines_up else USED_UP_SECONDS)
        return self._wait(message, record, DAY_USED_UP, due)

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
            lines_up=self._lines_up,
            new=record.fresh and message.attempt == 1 and message.send_at is None,
        )

    def _ask(self, budget: Budget, asking: Sequence[Entry], moment: float) -> Iterable[Waiting]:
        """Reserve the messages' recipients in the daily budget, and return the waits of the messages that do
        not fit. Messages are served in the order in which they were put, so a small message does not overtake
        a larger one that was put earlier. Never raises."""
        # A grant older than a second is not used: it would let messages overtake earlier messages that have
        # begun to wait since.
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
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the records
            logger.exception("the daily budget could not be read; the messages go back to the queue")
            self._tools.tally.add("Errors")
            self._results |= {
                message.key: ComeBack(self._retry_wait(record.receives)) for message, record in asking
            }
            return []
        return [(self._day_wait(message, record), record) for message, record in over]

    def _over(self, budget: Budget, asking: Sequence[Entry], moment: float) -> Sequence[Entry]:
        """Return the messages that do not fit into the daily budget, of messages in the order in which they
        were put."""
        turn, behind = asking, list[Entry]()
        line_at = self._take(budget, turn, moment, self._second if moment < self._asked_at + 1 else 0)
        if line_at < math.inf:
            # Messages that were put earlier than some of these wait already. So only messages that were put
            # at `line_at` or before may reserve recipients now.
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
        """Reserve the recipients that the messages need beyond the rest of the last grant, and at least
        `minimum`. Returns infinity if all the messages may be sent as far as the budget allows. Otherwise
        returns `line_at` (epoch seconds): a message that was put later must wait."""
        lacking = sum(message.recipient_count for message, _ in messages) - self._left.recipients
        if lacking <= 0:
            return math.inf
        self._asked_at = moment
        place = _place(messages[-1], moment)
        grant = budget.ask(max(lacking, minimum), place)
        self._left = self._left._replace(recipients=self._left.recipients + grant.recipients)
        return grant.line_at if grant.line_at < place else math.inf

    def _hold(self, waiting: Sequence[Waiting]) -> None:
        """Hold messages, and store the result of each. If an error prevents this, the messages go back to the
        queue. A message that cannot be held because it may have been sent gets no result here, so that it is
        claimed. Never raises."""
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
            logger.exception("the messages that must wait were not held; they go back to the queue")
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
        """Hold one message, and return the result for its record."""
        key = wait.message.key
        self._hold([(wait, record)])
        result = self._results.get(key)
        return result if isinstance(result, Result) else ComeBack(USED_UP_SECONDS)

    def _join(self, waits: Sequence[Wait]) -> None:
        """Record in the budget that messages wait for it now, so that no later message overtakes them."""
        moment = self._tools.clock()
        places = [wait.put_at or moment for wait in waits if wait.lines_up and wait.reason == DAY_USED_UP]
        if self._budget is not None and places:
            self._budget.join(min(places))

    def _judge(self) -> None:
        """Let new bulk messages wait for CLOSED_SECONDS if the provider has refused most of the latest
        messages."""
        self._refused = dict([*self._refused.items()][-LATEST_MESSAGES:])
        if self._tools.tally.counts["Misconfigured"] and sum(self._refused.values()) >= MOST_REFUSED:
            self._closed_until = self._tools.clock() + CLOSED_SECONDS
            logger.error("bulk messages wait: the provider refuses them", seconds=CLOSED_SECONDS)
            self._tools.tally.add("BulkClosed")


def _place(entry: Entry, moment: float) -> int:
    """Return the time when the message was put into the mailbox, in whole epoch seconds. If the record lacks
    that time, return `moment`."""
    return int(entry[1].put_at or moment)


def _larger_than_day(message: Message, part: int) -> Invalid:
    return Invalid(
        "to",
        f"has {message.recipient_count} recipients, but bulk messages may reach only {part} in a day; "
        "use fewer",
    )
