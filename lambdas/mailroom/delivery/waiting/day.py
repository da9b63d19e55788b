"""Wait for capacity of the daily budget: the only reason that reserves, settles and returns recipients."""

import math
from collections.abc import Mapping, Sequence

from mailroom.budget import Budget, Grant, hour_of
from mailroom.delivery.waiting.reason import Answer, Due, Entry, WaitReason
from mailroom.delivery.worker import Tools
from mailroom.environment import Sender
from mailroom.errors import Invalid
from mailroom.ledger.waits import DAY_USED_UP, Wait
from mailroom.message.message import Key, Message
from mailroom.message.outcome import DayUsedUp, Sent

USED_UP_SECONDS = 900
"""Seconds that a message waits if its provider refuses it because the daily quota is used up, unless its lane
waits for a budget. The quota is of the last 24 hours, so the provider frees it bit by bit."""


class Day(WaitReason):
    """The daily budget is used up. The bulk lane reserves its recipients in the budget, once for the
    batch and before its submits. Other lanes never reserve recipients: their recipients are counted after the
    batch, so that they wait only if the provider has refused them."""

    name, metric = DAY_USED_UP, "WaitsForDay"

    def __init__(self, settings: Sender, tools: Tools) -> None:
        self._tools = tools
        self._bulk = settings.bulk
        self._budget: Budget | None = None
        if settings.per_day:
            of_day = (settings.budget or settings.channel, settings.per_day, settings.reserve, tools.clock)
            self._budget = Budget(tools.dynamodb, settings.budgets_table, *of_day)
        self._closed_until = 0.0
        """Time in epoch seconds before which a bulk lane without a budget does not submit, because the
        provider has refused a message. Each execution environment of the Lambda function has its own."""
        self._second = math.ceil(1 / settings.pace_seconds) if settings.pace_seconds else 0
        """Maximum number of messages that this worker submits in a second. If the worker needs a second grant
        within a second, it reserves at least this number of recipients."""
        self._asked_at = 0.0
        self._left = Grant(0, 0)
        """Recipients that the budget has granted to this worker and that are not used yet. Batches of the
        same second may use them."""
        provider = settings.other_provider
        self.lines_up = self._bulk and self._budget is not None and (not provider or provider.is_fallback)
        """Whether messages that wait for the daily budget are sent in the order in which they were put. This
        is false for the sender of a fallback: after a wait, its messages go to the first provider again."""
        self._moves = provider is not None and provider.is_fallback
        """Whether messages that the provider has refused go to another provider."""
        self._closes = provider is None or not provider.when_day_used_up
        """Whether the bulk lane stops if the provider's quota is used up. It need not stop if its messages go
        to another provider."""

    def due(self) -> float:
        """Return the time until which a message waits: as soon as the budget has capacity for the message, or
        after USED_UP_SECONDS."""
        return self._tools.clock() + (0 if self.lines_up else USED_UP_SECONDS)

    def waits(self, entries: Sequence[Entry], moment: float) -> Mapping[Key, Due]:
        """Reserve the messages' recipients in the daily budget, and return the messages that do not fit.
        Messages are served in the order in which they were put, so a small message does not overtake a larger
        one that was put earlier. Raises Contention and botocore's errors."""
        if not self._bulk or not entries:
            return {}
        if self._budget is None:
            closed = moment < self._closed_until
            return {entry.record.key: self._closed_until for entry in entries} if closed else {}
        # A grant older than a second is not used: it would let messages overtake earlier messages that have
        # begun to wait since.
        if moment >= self._asked_at + 1 or self._left.hour != hour_of(moment):
            self._left = Grant(0, hour_of(moment))
        part = self._budget.largest_part()
        large, fitting = dict[Key, Due](), list[Entry]()
        for entry in sorted(entries, key=lambda entry: _place(entry, moment)):
            if entry.message.recipient_count > part:
                large[entry.record.key] = _larger_than_day(entry.message, part)
            else:
                fitting.append(entry)
        return large | {entry.record.key: self.due() for entry in self._over(self._budget, fitting, moment)}

    def learn(self, answers: Sequence[Answer]) -> None:
        """Count the recipients who were reached without a grant, and stop the bulk lane for an hour if the
        quota is used up. The unused rest of a grant to the bulk lane remains for its next batch of the same
        second. It is returned if a message of the batch may go to another provider. Without this, each try of
        such a message would use up a part of the day."""
        if self._budget is None and not self._bulk:
            return
        is_refused = self._closes and any(isinstance(answer.outcome, DayUsedUp) for answer in answers)
        if self._budget is None:
            self._closed_until = self.due() if is_refused else self._closed_until
            return
        # A message whose outcome is unknown may have been sent.
        reached = [answer.recipients for answer in answers if isinstance(answer.outcome, (Sent, type(None)))]
        sent = sum(reached)
        if self._bulk:
            # Messages that may have been sent before need no grant, but count as well. So more may have been
            # sent than was granted, and the excess is counted separately.
            granted = min(sent, self._left.recipients)
            self._left = self._left._replace(recipients=self._left.recipients - granted)
            sent -= granted
        if is_refused:
            # The rest of the grant is not used any more.
            self._left = Grant(0, 0)
            self._budget.close()
        elif self._moves and len(reached) < len(answers) and self._left.recipients > 0:
            grant, self._left = self._left, self._left._replace(recipients=0)
            self._budget.settle(self._tools.once or self._tools.dynamodb, grant, 0)
        if sent:  # last, because other workers may prevent this write
            self._budget.count(sent, bulk=self._bulk)

    def join(self, waits: Sequence[Wait]) -> None:
        """Record in the budget that messages wait for it now, so that no later message overtakes them."""
        moment = self._tools.clock()
        places = [wait.put_at or moment for wait in waits if wait.lines_up and wait.reason == DAY_USED_UP]
        if self._budget is not None and places:
            self._budget.join(min(places))

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
        for number, entry in enumerate(turn):
            promised += entry.message.recipient_count
            if promised > self._left.recipients:
                return [*turn[number:], *behind]
        return behind

    def _take(self, budget: Budget, entries: Sequence[Entry], moment: float, minimum: int = 0) -> float:
        """Reserve the recipients that the messages need beyond the rest of the last grant, and at least
        `minimum`. Returns infinity if all the messages may be sent as far as the budget allows. Otherwise
        returns `line_at` (epoch seconds): a message that was put later must wait."""
        shortage = sum(entry.message.recipient_count for entry in entries) - self._left.recipients
        if shortage <= 0:
            return math.inf
        self._asked_at = moment
        place = _place(entries[-1], moment)
        grant = budget.ask(max(shortage, minimum), place)
        self._left = self._left._replace(recipients=self._left.recipients + grant.recipients)
        return grant.line_at if grant.line_at < place else math.inf


def _place(entry: Entry, moment: float) -> int:
    """Return the time when the message was put into the mailbox, in whole epoch seconds. If the record lacks
    that time, return `moment`."""
    return int(entry.record.put_at or moment)


def _larger_than_day(message: Message, part: int) -> Invalid:
    return Invalid(
        "to",
        f"has {message.recipient_count} recipients, but bulk messages may reach only {part} in a day; "
        "use fewer",
    )
