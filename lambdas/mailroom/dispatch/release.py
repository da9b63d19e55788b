"""Release: every minute, messages that waited go to their queues, at their time or as the day has room.

A round works off one shard of what is due, or the line of one channel. A message goes to its queue first, and
then its mark is removed: after a crash in between it is queued twice, and the claim drops one of both.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import clients, queues
from mailroom.aws.dynamo_updates import try_update
from mailroom.aws.dynamo_values import number, string
from mailroom.aws.queues import Entry
from mailroom.budget import Budget
from mailroom.clock import Clock
from mailroom.dispatch.dispatcher import Dispatcher
from mailroom.environment import RELEASE_KEPT_BACK_SECONDS, LineSettings, ReleaseSettings
from mailroom.errors import Invalid, Malformed
from mailroom.ledger.batch import items_of
from mailroom.ledger.contents import Contents, Held
from mailroom.ledger.items import PAUSED
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.run_states import REASON, STOPPED, RunStates
from mailroom.ledger.waits import AHEAD_SECONDS, OUTSIDE_WINDOW, SEND_AT, WaitingRow, Waits
from mailroom.mailbox import NEEDED_AFTER, MailboxWriter, original
from mailroom.message.message import CANARY, Key, decode
from mailroom.telemetry import about, count, logger, record_duration

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

BATCH = 100
"""Messages that are handed over together: as many as one call reads from the mailbox."""
PACED_SECONDS = 120
"""A lane gets at most so many seconds' worth of messages that waited for the day, so that a limit which
changes counts soon."""
PASSES = 5
"""Looks at a line in one round. More messages may have joined it while the round handed over."""
_THREADS = 8
_LATE_SECONDS = 3600
"""Seconds after its `send_at` within which an item is read back in time: a million messages of one minute
take longer than a minute."""
_TAKEN_BACK = "the item was deleted from the mailbox before its send_at"
_GONE = (
    "the item was gone from the mailbox when it was read back, more than 1 hour after its send_at: its ttl "
    "was over, or its producer deleted it; put it under a new id, unless it was taken back"
)
_NO_CONTENT = "its content was gone when its wait was over, more than a year after it began; put it again"
_NO_LANE = "its lane {!r} of {} is not set up any more; put it again in another"
_NO_LIMIT = (("0001-01-01", 10**12),)
"""`per_day` of a channel whose limit was taken away while messages waited for it."""


class Lease(Struct, frozen=True):
    """Right to one part of the work for a while, so that a copied or a long round does not repeat work."""

    client: "DynamoDBClient"
    table: str
    seconds: float
    clock: Clock

    def take(self, name: str) -> bool:
        """Take the lease. Returns False if another round has it."""
        moment = self.clock()
        values = {":until": number(int(moment + self.seconds)), ":now": number(int(moment))}
        free = "attribute_not_exists(lease_until) OR lease_until <= :now"
        key = {"name": string(f"release#{name}")}
        return try_update(self.client, self.table, key, "SET lease_until = :until", free, values)[0]

    def give_back(self, name: str) -> None:
        """End the lease of a round that is over."""
        key = {"name": string(f"release#{name}")}
        try_update(self.client, self.table, key, "REMOVE lease_until", "attribute_exists(lease_until)", {})


class Release(Struct, frozen=True):
    """Rounds of `release`."""

    dispatcher: Dispatcher
    waits: Waits
    contents: Contents
    client: "DynamoDBClient"
    mailbox_table: str
    ledger: Ledger
    lease: Lease
    lines: Mapping[str, LineSettings]
    runs: RunStates
    clock: Clock = time.time
    threads: int = 1
    """Number of ledger items that change at a time."""

    @classmethod
    def of(cls, settings: ReleaseSettings) -> "Release":
        """Build the rounds that a function's settings describe."""
        dynamodb = clients.dynamodb()
        return cls(
            Dispatcher.of(settings),
            Waits.of(settings, time.time),
            Contents(dynamodb, settings.contents_table, time.time),
            dynamodb,
            settings.mailbox_table,
            Ledger.of(settings),
            Lease(dynamodb, settings.budgets_table, settings.lease_seconds, time.time),
            settings.lines,
            RunStates(dynamodb, settings.runs_table, time.time),
            threads=_THREADS,
        )

    def handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> None:
        """Work off what `event` names: the `shard` of what is due, or the `line` of a channel; or put the
        `canary` of a time. `remaining` is Lambda's `get_remaining_time_in_millis`. A round that has too
        little time left ends, and the next one goes on."""
        if "canary" in event:
            self._put_canary(event["canary"], event["to"])
            return
        name = f"line#{event['line']}" if "line" in event else f"due#{event['shard']}"
        if not self.lease.take(name):
            logger.info("another round is at work", part=name)
            return

        def in_time() -> bool:
            return remaining() > RELEASE_KEPT_BACK_SECONDS * 1000

        try:
            if "line" in event:
                self._line(event["line"], in_time)
            else:
                self._due(event["shard"], in_time)
        finally:
            self.lease.give_back(name)

    def _put_canary(self, time: str, address: str) -> None:
        """Put the canary of a time into the mailbox. EventBridge may send an event twice; the mailbox
        takes one item."""
        key = Key(f"{CANARY}{time}", "mail")
        content = {"to": address, "subject": "Canary", "text": "This mail shows that the stage works."}
        writer = MailboxWriter(self.client, self.mailbox_table, NEEDED_AFTER, clock=self.clock)
        result = writer.put({**about(key), **content})
        logger.info("canary", extra=about(key), state=result.state, reason=result.error)

    def _due(self, shard: int, in_time: Callable[[], bool]) -> None:
        rows = self.waits.due(shard, self.clock() + AHEAD_SECONDS)
        late = 0.0
        while in_time() and (batch := [*islice(rows, BATCH)]):
            late = max(late, self.clock() - batch[0].at)
            self._hand_over(self._waiting(batch))
        lining_up = self.waits.due(shard, self.clock(), lines_up=True)
        while in_time() and (batch := [*islice(lining_up, BATCH)]):
            late = max(late, self.clock() - batch[0].at)
            self._each(lambda row: self.waits.move(row, None), self._waiting(batch))
        record_duration("ReleaseLate", late)

    def _line(self, channel: str, in_time: Callable[[], bool]) -> None:
        """Hand over the messages that were put first, as far as the day has room and the lane keeps its pace.
        An empty line is closed."""
        settings = self.lines[channel]
        of_day = (channel, settings.per_day or _NO_LIMIT, settings.reserve, self.clock)
        budget = Budget(self.lease.client, self.lease.table, *of_day)
        paced = math.ceil(settings.per_second * PACED_SECONDS)
        # If there is no URL, the bulk lane was removed from the settings, and its waiting messages fail.
        if url := self.dispatcher.routes[channel].get("bulk"):
            paced -= queues.depth(self.dispatcher.sqs, url)
        self._resume(channel, max(0, paced), in_time)
        for _ in range(PASSES):
            line = budget.line()
            fitting, behind = self._choose(channel, budget.largest_part(), line.recipients, paced, in_time)
            if not fitting and behind is not None and line.at >= behind.at:
                budget.move_line(behind.at - 1)
            elif not fitting and behind is None and (line.at == math.inf or budget.close_line(line.joined)):
                return
            for start in range(0, len(fitting), BATCH):
                if start and not in_time():
                    return
                batch = fitting[start : start + BATCH]
                # The line moves before the messages are queued, because their worker asks for them as soon as
                # they are in its queue.
                budget.move_line(batch[-1].at)
                self._hand_over(batch)
            paced -= len(fitting)
            if behind is not None or not in_time():
                return

    def _resume(self, channel: str, limit: int, in_time: Callable[[], bool]) -> None:
        """Let messages of runs that are not paused any more go on in the line, the oldest put first. No more
        than `limit`, so that the round has time for the line."""
        rows = islice(self.waits.of_runs(channel, self._goes_on), limit)
        while (batch := [*islice(rows, BATCH)]) and in_time():
            self._each(lambda row: self.waits.move(row, None), self._waiting(batch))

    def _goes_on(self, row: WaitingRow) -> bool:
        return self._halted([row]).get(row.key.id) != PAUSED

    def _choose(
        self, channel: str, part: int, room: int, paced: int, in_time: Callable[[], bool]
    ) -> tuple[list[WaitingRow], WaitingRow | None]:
        """Return the rows that have room now, in the order of their places, and the first row behind them:
        `room` recipients, and `paced` messages. A row with more recipients than `part`, which no day
        has room for, goes to its worker, which ends it."""
        fitting: list[WaitingRow] = []
        rows = self.waits.line(channel)
        while batch := [*islice(rows, BATCH)]:
            if not in_time():
                return fitting, batch[0]
            for row in self._open_rows(batch):
                size = row.recipients if row.recipients <= part else 0
                if size > room or len(fitting) >= paced:
                    return fitting, row
                room -= size
                fitting.append(row)
        return fitting, None

    def _open_rows(self, rows: Sequence[WaitingRow]) -> list[WaitingRow]:
        """Return the rows whose window is open. A row whose window is closed goes back to those that are not
        due yet, and keeps its place."""
        moment = self.clock()
        opens = {row: _opens(row, moment) for row in self._waiting(rows)}
        self._each(
            lambda row: self.waits.move(row, opens[row]), [row for row in opens if opens[row] > moment]
        )
        return [row for row in opens if opens[row] <= moment]

    def _hand_over(self, rows: Sequence[WaitingRow]) -> None:
        """Hand rows over to their queues, and remove their marks. A row at fault does not keep the others
        back. Never raises."""
        try:
            self._send(rows)
        except Exception:  # noqa: BLE001 - logged, and the next round reads the rows again
            if len(rows) == 1:
                logger.exception("not released; the next round tries it again", extra=about(rows[0].key))
                count("ReleaseErrors")
                return
            for row in rows:
                self._hand_over([row])

    def _send(self, rows: Sequence[WaitingRow]) -> None:
        due = {str(number): row for number, row in enumerate(rows) if row.reason == SEND_AT}
        with_contents = {str(number): row for number, row in enumerate(rows) if row.reason != SEND_AT}
        failed = self._dispatch(due) | self._requeue(with_contents)
        done = [row for number, row in enumerate(rows) if str(number) not in failed]
        self._finish(done)
        count("Released", len(done))

    def _dispatch(self, rows: Mapping[str, WaitingRow]) -> set[str]:
        """Read items back from the mailbox and dispatch them. An item that is gone when its time comes was
        taken back: cancelled. If its time was long ago, it may have been there then: failed, because a delay
        of ours must not read as its producer's wish. An item whose `send_at` was moved on waits again."""
        items = items_of(self.client, self.mailbox_table, (row.key for row in rows.values()))
        for row in rows.values():
            if row.key not in items:
                self._gone(row)
        rows = {reference: row for reference, row in rows.items() if row.key in items}
        # A message that waits was never queued. So even an item that was lost and restored is dispatched, and
        # `original` removes the mark of its restoration.
        return self.dispatcher.dispatch(
            [(reference, original(items[row.key])) for reference, row in rows.items()],
            {reference: row.place for reference, row in rows.items()},
        )

    def _requeue(self, rows: Mapping[str, WaitingRow]) -> set[str]:
        """Send messages to their queues with the contents that they waited with. No fax waits like that, so
        each of these queues can delay one message."""
        bodies = self.contents.get(_name(row) for row in rows.values())
        entries: dict[str, list[Entry]] = defaultdict(list)
        for reference, row in rows.items():
            url = self.dispatcher.routes.get(row.key.event_type, {}).get(row.lane)
            if row.version not in bodies:
                self._lose(row, _NO_CONTENT)
            elif url is None:
                self._lose(row, _NO_LANE.format(row.lane, row.key.event_type))
            else:
                entries[url].append(self._entry(reference, row, bodies[row.version]))
        return set().union(*(queues.send(self.dispatcher.sqs, url, batch) for url, batch in entries.items()))

    def _entry(self, reference: str, row: WaitingRow, body: str) -> Entry:
        moment = self.clock()
        attributes = {
            "channel": row.key.event_type,
            queues.PUT_AT: str(row.place),
            queues.DUE_AT: str(_due_at(row, moment)),
        }
        group = None
        with suppress(Invalid, Malformed):  # the worker reports the fault of an invalid message
            message = self.dispatcher.validator.read(decode(body))
            group, attributes["type"] = message.group, message.kind
        return Entry(reference, body, attributes, max(0, math.ceil(row.at - moment)), group)

    def _gone(self, row: WaitingRow) -> None:
        since = self.clock() - _LATE_SECONDS
        if self.ledger.cancel(row.key, _TAKEN_BACK, since=since, version=row.version):
            logger.info("cancelled", extra=about(row.key))
            count("Cancelled")
        else:
            self._lose(row, _GONE)

    def _lose(self, row: WaitingRow, reason: str) -> None:
        if self.ledger.lose(row.key, row.version, reason):
            logger.error("it cannot be released", extra=about(row.key), reason=reason)

    def _waiting(self, rows: Iterable[WaitingRow]) -> list[WaitingRow]:
        """Return the rows of messages that still wait. Finish the others, among them those of stopped runs,
        and move those of paused runs out of the way of others."""
        rows = [*rows]
        halted = self._halted(rows)
        stopped = [row for row in rows if halted.get(row.key.id) == STOPPED]
        self._each(self._cancel, stopped)
        self._finish([*(row for row in rows if not row.waits), *stopped])
        self._each(self.waits.pause, [row for row in rows if halted.get(row.key.id) == PAUSED])
        return [row for row in rows if row.waits and row.key.id not in halted]

    def _halted(self, rows: Sequence[WaitingRow]) -> dict[str, str]:
        """Return STOPPED or PAUSED by the ids of messages whose campaign's run is so. Never raises: a message
        that is handed over all the same is not sent by its worker, which asks again."""
        try:
            return self.runs.halted(row.key.id for row in rows if row.waits)
        except Exception:  # noqa: BLE001 - logged
            logger.warning("the runs of campaigns could not be read", exc_info=True)
            return {}

    def _cancel(self, row: WaitingRow) -> None:
        """Cancel a message whose campaign's run is stopped. The first ones of a line must not keep others
        waiting until the day has room for all."""
        if self.ledger.cancel(row.key, REASON, code=STOPPED, since=0, version=row.version):
            count("Cancelled")

    def _finish(self, rows: Sequence[WaitingRow]) -> None:
        """Remove the marks and the contents of messages that do not wait any more."""
        self._each(self.waits.hand_over, rows)
        self.contents.delete([_name(row) for row in rows if row.reason != SEND_AT])

    def _each(self, change: Callable[[WaitingRow], object], rows: Sequence[WaitingRow]) -> None:
        """Change each row, by several threads."""
        if len(rows) < 2 or self.threads == 1:
            for row in rows:
                change(row)
            return
        with ThreadPoolExecutor(self.threads) as threads:
            for _ in threads.map(change, rows):
                pass


def _opens(row: WaitingRow, moment: float) -> float:
    """Return when the row's window opens; now, if there is none or its worker has to end the message."""
    try:
        return moment if row.window is None else row.window.opens(moment, None)
    except Invalid:
        return moment


def _due_at(row: WaitingRow, moment: float) -> int:
    """Return the time from which the delay of a message counts. A wait for a window, for a paused run, or of
    bulk for the day, is as it should be; any other wait is a delay."""
    if row.lines_up or row.reason == PAUSED:
        return int(moment)
    return row.at if row.reason == OUTSIDE_WINDOW else row.place


def _name(row: WaitingRow) -> Held:
    return Held(row.key, row.version)
