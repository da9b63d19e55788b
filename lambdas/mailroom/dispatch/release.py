"""Function `release`: every minute it puts waiting messages into their queues, if they are due or the daily
budget has capacity for them.

Each minute one invocation looks at the lists of waiting messages, and starts a round for each part of the
work that is not empty: it invokes the function asynchronously. A round handles one shard of the messages that
are due, or the messages of one channel that wait for the daily budget. It never starts another round. A
message is put into its queue before its mark is removed. After a crash in between it is queued twice, and the
claim drops the second copy.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.json import encode

from mailroom.aws import clients, queues
from mailroom.aws.dynamo_updates import try_update
from mailroom.aws.dynamo_values import image_of, number, plain, string
from mailroom.aws.queues import Entry
from mailroom.budget import Budget
from mailroom.clock import Clock
from mailroom.dispatch.dispatcher import Dispatcher
from mailroom.environment import RELEASE_KEPT_BACK_SECONDS, LineSettings, ReleaseSettings
from mailroom.errors import Invalid, Malformed
from mailroom.ledger.batch import items_of
from mailroom.ledger.contents import Contents, Held
from mailroom.ledger.items import RUN_UNKNOWN
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.run_states import REASON, STOPPED, RunStates
from mailroom.ledger.waits import (
    AHEAD_SECONDS,
    DAY_USED_UP,
    OF_RUNS,
    OUTSIDE_WINDOW,
    PROVIDER_REFUSES,
    SEND_AT,
    SHARDS,
    WaitingRow,
    Waits,
)
from mailroom.mailbox import NEEDED_AFTER, MailboxWriter, original
from mailroom.message.message import CANARY, Key, decode
from mailroom.telemetry import about, count, logger, record_duration

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

BATCH = 100
"""Number of messages that are put into queues together, which is the number that one call reads from the
mailbox."""
PACED_SECONDS = 120
"""Seconds of work that a lane's queue may contain of messages that waited for the daily budget, so that a
change of the limit takes effect soon."""
PASSES = 5
"""Maximum number of times that a round reads the messages that wait for a budget. More messages may begin to
wait during the round."""
REMOVED_SECONDS = 86_400
"""Seconds after the removal of a channel from the settings from which on its waiting messages end as failed.
Until then, the channel can come back, because it may have been removed by mistake."""
_THREADS = 8
_MINUTE, _HOUR = 60, 3600
_LATE_SECONDS = 3600
"""Seconds after the `send_at` of a missing item within which the item counts as deleted by its producer, and
not as expired because of a delay of `release`. The time is much longer than the minute between two
rounds, because `release` needs several rounds for a million messages that are due in the same minute."""
_TAKEN_BACK = "the item was deleted from the mailbox before its send_at"
_GONE = (
    "the item was missing in the mailbox when it was read more than 1 hour after send_at: it had expired, "
    "or its producer had deleted it; if it is still wanted, put it under a new id"
)
_NO_CONTENT = "its content was deleted before its wait ended; put the message under a new id"
_EXPIRED = "its expires_at passed while it waited"
_NO_LANE = "its lane {!r} of {} does not exist any more; put the message under a new id in another lane"
DELAYED_SINCE: dict[str, Callable[[WaitingRow, float], float]] = {
    OUTSIDE_WINDOW: lambda row, _moment: row.at,
    DAY_USED_UP: lambda row, _moment: row.place,
    PROVIDER_REFUSES: lambda row, _moment: row.place,
    **dict.fromkeys(OF_RUNS, lambda _row, moment: moment),
}
"""Time in epoch seconds from which the delay of a message counts, by the reason of its wait, from the row and
the present time. A wait for a window or for a run is intended and does not count."""
_CHANNELS = {"name": string("release#channels")}
"""Key of the item with the times at which the settings last had each channel, in epoch seconds."""
_NO_LIMIT = (("0001-01-01", 10**12),)
"""`per_day` of a channel whose daily limit was removed while messages waited for it."""


class Lease(Struct, frozen=True):
    """Exclusive right of a round to one part of the work for a while, so that an event that arrives twice, or
    a long round, does not cause repeated work."""

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
        """End the lease of a round that has ended."""
        key = {"name": string(f"release#{name}")}
        try_update(self.client, self.table, key, "REMOVE lease_until", "attribute_exists(lease_until)", {})


class Release(Struct, frozen=True):
    """Handles the events of the function `release`."""

    dispatcher: Dispatcher
    waits: Waits
    contents: Contents
    client: "DynamoDBClient"
    mailbox_table: str
    ledger: Ledger
    lease: Lease
    lines: Mapping[str, LineSettings]
    runs: RunStates
    invoke: Callable[..., object]
    """Invokes this function asynchronously, with a `Payload`."""
    clock: Clock = time.time
    threads: int = 1
    """Number of threads that read lists, or change ledger items."""

    @classmethod
    def of(cls, settings: ReleaseSettings) -> "Release":
        """Build the object from the function's settings."""
        dynamodb = clients.dynamodb()
        return cls(
            Dispatcher.of(settings),
            Waits.of(settings, time.time),
            Contents(dynamodb, settings.contents_table),
            dynamodb,
            settings.mailbox_table,
            Ledger.of(settings),
            Lease(dynamodb, settings.budgets_table, settings.lease_seconds, time.time),
            settings.lines,
            RunStates(dynamodb, settings.runs_table, time.time),
            partial(
                clients.functions().invoke,
                FunctionName=settings.aws_lambda_function_name,
                InvocationType="Event",
            ),
            threads=_THREADS,
        )

    def handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> None:
        """Handle one event. With `parts`, it starts the rounds of this minute; with `shard`, it handles the
        due messages of that shard; with `line`, the messages of that channel that wait for the daily budget;
        with `removed` and `shard`, the waiting messages of that removed channel; with `canary`, it puts a
        canary into the mailbox. `remaining` is Lambda's
        `get_remaining_time_in_millis`. A round with too little time left ends, and the next round
        continues."""
        if "canary" in event:
            self._put_canary(event["canary"], event["to"])
            return
        if "parts" in event:
            self._start_rounds()
            return
        name = _name_of(event)
        if not self.lease.take(name):
            logger.info("another round is running", part=name)
            return

        def in_time() -> bool:
            return remaining() > RELEASE_KEPT_BACK_SECONDS * 1000

        try:
            if "line" in event:
                self._line(event["line"], in_time)
            elif "removed" in event:
                self._end_removed(event["removed"], event["shard"], in_time)
            else:
                self._due(event["shard"], in_time)
        finally:
            self.lease.give_back(name)

    def _start_rounds(self) -> None:
        """Look at each part of the work, start a round for each part that is not empty, and report the
        lateness of the oldest due message. Raises the error of a part that cannot be read, and RuntimeError
        if a round was not started, after it has started the other rounds. Then it reports no lateness, so
        that the alarm `release-late` rings if this lasts."""
        shards = [{"shard": shard} for shard in range(SHARDS)]
        late = self._start_with_work([*shards, *({"line": channel} for channel in self.lines)])
        # The lateness is reported even if no message waits: without values, the alarm would ring.
        record_duration("ReleaseLate", max(late))
        removed = self._removed_channels()
        self._start_with_work([{"removed": channel, **shard} for channel in removed for shard in shards])

    def _start_with_work(self, events: Sequence[Mapping[str, Any]]) -> list[float]:
        """Start a round for each part that is not empty, and return by how many seconds each part is late.
        Raises the same errors as `_start_rounds`."""
        with ThreadPoolExecutor(self.threads) as threads:
            looks = [threads.submit(self._look, event) for event in events]
        started = [
            self._start(event)
            for event, look in zip(events, looks, strict=True)
            if look.exception() or look.result() is not None
        ]
        if not all(started):
            raise RuntimeError("not all rounds were started")
        return [look.result() or 0 for look in looks]

    def _look(self, event: Mapping[str, Any]) -> float | None:
        """Return by how many seconds the oldest due message of a part is late, or None if the part is empty.
        Only the first row of each list is read."""
        moment = self.clock()
        if "line" in event:
            is_open = self._budget(event["line"]).line().at < math.inf
            return 0 if is_open or self._any_of(event["line"], range(SHARDS)) else None
        shard = event["shard"]
        if "removed" in event:
            return 0 if self._any_of(event["removed"], [shard]) else None
        lists = (
            self.waits.due(shard, moment + AHEAD_SECONDS, page=1),
            self.waits.due(shard, moment, lines_up=True, page=1),
        )
        if rows := [row for rows in lists for row in islice(rows, 1)]:
            return max(0, *(moment - row.at for row in rows))
        return None

    def _any_of(self, channel: str, shards: Iterable[int]) -> bool:
        return any(next(self.waits.all_of(channel, shard, page=1), None) for shard in shards)

    def _start(self, event: Mapping[str, Any]) -> bool:
        """Start the round of a part, and return whether that succeeded. Never raises."""
        try:
            self.invoke(Payload=encode(event))
        except Exception:  # noqa: BLE001 - logged, and the next minute starts the round again
            logger.exception("not started; the next minute starts it again", part=_name_of(event))
            return False
        return True

    def _put_canary(self, time: str, address: str) -> None:
        """Put the canary for a time into the mailbox. EventBridge may send an event twice, but the mailbox
        accepts only one item."""
        key = Key(f"{CANARY}{time}", "mail")
        content = {"to": address, "subject": "Canary", "text": "This mail shows that the stage works."}
        writer = MailboxWriter(self.client, self.mailbox_table, NEEDED_AFTER, clock=self.clock)
        result = writer.put({**about(key), **content})
        logger.info("canary", extra=about(key), state=result.state, reason=result.error)

    def _due(self, shard: int, in_time: Callable[[], bool]) -> None:
        rows = self.waits.due(shard, self.clock() + AHEAD_SECONDS)
        while in_time() and (batch := [*islice(rows, BATCH)]):
            self._hand_over(self._waiting(batch))
        lining_up = self.waits.due(shard, self.clock(), lines_up=True)
        while in_time() and (batch := [*islice(lining_up, BATCH)]):
            self._each(lambda row: self.waits.move(row, None), self._waiting(batch))

    def _end_removed(self, channel: str, shard: int, in_time: Callable[[], bool]) -> None:
        """End the messages of a removed channel as failed. Only channels in the settings have rounds in which
        messages are queued."""
        rows = self.waits.all_of(channel, shard)
        while channel not in self.lines and in_time() and (batch := [*islice(rows, BATCH)]):
            self._each(self._without_lane, batch)
            self._finish(batch)

    def _removed_channels(self) -> list[str]:
        """Return once an hour the channels that the settings have lacked for REMOVED_SECONDS. For that, the
        time is stored at which the settings last had each channel: DynamoDB cannot list the partitions of an
        index, so messages of a channel whose name is not stored would wait for ever."""
        client, table, moment = self.lease.client, self.lease.table, int(self.clock())
        item = plain(client.get_item(TableName=table, Key=_CHANNELS).get("Item", {}))
        had_at: dict[str, int] = item.get("had_at", {})
        is_hourly = moment % _HOUR < _MINUTE
        if is_hourly or self.lines.keys() - had_at:
            client.update_item(
                TableName=table,
                Key=_CHANNELS,
                UpdateExpression="SET had_at = :had_at",
                ExpressionAttributeValues=image_of(
                    {":had_at": {**had_at, **dict.fromkeys(self.lines, moment)}}
                ),
            )
        lacked = [name for name in had_at if name not in self.lines]
        return [name for name in lacked if is_hourly and had_at[name] <= moment - REMOVED_SECONDS]

    def _budget(self, channel: str) -> Budget:
        settings = self.lines[channel]
        of_day = (channel, settings.per_day or _NO_LIMIT, settings.reserve, self.clock)
        return Budget(self.lease.client, self.lease.table, *of_day)

    def _line(self, channel: str, in_time: Callable[[], bool]) -> None:
        """Put messages that wait for a channel's daily budget into their queue, in the order in which they
        were put, as far as the budget and the lane's rate allow. If no message waits any more, record that in
        the budget."""
        budget = self._budget(channel)
        paced = math.ceil(self.lines[channel].per_second * PACED_SECONDS)
        # If there is no URL, the bulk lane was removed from the settings, and its waiting messages fail.
        if url := self.dispatcher.routes[channel].get("bulk"):
            paced -= queues.depth(self.dispatcher.sqs, url)
        # At least one batch is read, because this also finds how long messages wait for unknown runs.
        self._resume(channel, max(1, paced), in_time)
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
                # `line_at` of the budget is raised before the messages are queued: their worker asks the
                # budget for recipients at once, and gets none for messages that were put after `line_at`.
                budget.move_line(batch[-1].at)
                self._hand_over(batch)
            paced -= len(fitting)
            if behind is not None or not in_time():
                return

    def _resume(self, channel: str, limit: int, in_time: Callable[[], bool]) -> None:
        """Let about `limit` messages whose runs go on again wait for the daily budget, in the order in which
        they were put. The limit leaves time for the rest of the round. Each run is read once, and again for
        each batch of its messages."""
        state = cache(lambda start: "" if start is None else self.runs.halted([start]).get(start, ""))
        unknown = 0.0

        def skip(row: WaitingRow, reason: str) -> bool:
            nonlocal unknown
            if state(row.start) == RUN_UNKNOWN:
                unknown = max(unknown, self.clock() - row.place)
                return True
            return state(row.start) == reason

        rows, resumed = self.waits.of_runs(channel, skip), 0
        # Messages that are cancelled, or do not wait any more, do not count.
        while resumed < limit and (batch := [*islice(rows, BATCH)]) and in_time():
            waiting = self._waiting(batch)
            self._each(lambda row: self.waits.move(row, None), waiting)
            resumed += len(waiting)
        if unknown:
            record_duration("RunUnknown", unknown)

    def _choose(
        self, channel: str, part: int, room: int, paced: int, in_time: Callable[[], bool]
    ) -> tuple[list[WaitingRow], WaitingRow | None]:
        """Return the rows that may be queued now, in the order in which their messages were put, and the
        first row after them. The rows to be queued have at most `room` recipients together, and there are at
        most `paced` of them. A message with more recipients than `part`, the largest daily budget, never
        fits; it is queued as well, and its worker ends it as failed."""
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
        """Return the rows whose window is open. The messages of the other rows wait until their window opens,
        and then for the budget again, in the order in which they were put."""
        moment = self.clock()
        opens = {row: _opens(row, moment) for row in self._waiting(rows)}
        self._each(
            lambda row: self.waits.move(row, opens[row]), [row for row in opens if opens[row] > moment]
        )
        return [row for row in opens if opens[row] <= moment]

    def _hand_over(self, rows: Sequence[WaitingRow]) -> None:
        """Put the messages of rows into their queues, and remove their marks. An error of one row does not
        prevent the others. Never raises."""
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
        """Read the items of due messages from the mailbox again, and dispatch them. Returns the references of
        the rows to be tried again. If an item is missing soon after its `send_at`, its producer has deleted
        it, and the message is cancelled. If it is missing long after its `send_at`, the item may have expired
        because of a delay of Mailroom, so the message fails. An item with a later `send_at` waits again."""
        items = items_of(self.client, self.mailbox_table, (row.key for row in rows.values()))
        for row in rows.values():
            if row.key not in items:
                self._gone(row)
        rows = {reference: row for reference, row in rows.items() if row.key in items}
        # A message that waits was never queued. So even a restored item is dispatched, and `original` removes
        # the mark of a restored item.
        return self.dispatcher.dispatch(
            [(reference, original(items[row.key])) for reference, row in rows.items()],
            {reference: row.place for reference, row in rows.items()},
        )

    def _requeue(self, rows: Mapping[str, WaitingRow]) -> set[str]:
        """Put messages into their queues with their stored contents, and return the references of the rows to
        be tried again. Faxes never wait with a stored content, so each of these queues can delay a
        message."""
        bodies = self.contents.get(_name(row) for row in rows.values())
        entries: dict[str, list[Entry]] = defaultdict(list)
        for reference, row in rows.items():
            url = self.dispatcher.routes.get(row.key.event_type, {}).get(row.lane)
            if row.version not in bodies:
                expired = row.expires is not None and row.expires <= self.clock()
                self._lose(row, *((_EXPIRED, "expired") if expired else (_NO_CONTENT, "content_gone")))
            elif url is None:
                self._without_lane(row)
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

    def _without_lane(self, row: WaitingRow) -> None:
        self._lose(row, _NO_LANE.format(row.lane, row.key.event_type), "invalid")

    def _gone(self, row: WaitingRow) -> None:
        since = self.clock() - _LATE_SECONDS
        if self.ledger.cancel(row.key, _TAKEN_BACK, since=since, version=row.version):
            logger.info("cancelled", extra=about(row.key))
            count("Cancelled")
        else:
            self._lose(row, _GONE)

    def _lose(self, row: WaitingRow, reason: str, code: str = "content_gone") -> None:
        if self.ledger.lose(row.key, row.version, reason, code):
            logger.error("the message cannot be released", extra=about(row.key), reason=reason)

    def _waiting(self, rows: Iterable[WaitingRow]) -> list[WaitingRow]:
        """Return the rows of messages that still wait, and whose runs go on. The messages of stopped runs are
        cancelled, so that they do not delay later messages. The messages of other runs that do not go on are
        moved to a separate list, and the marks of messages that do not wait any more are removed."""
        rows = [*rows]
        halted = self.runs.halted([row.start for row in rows if row.waits])
        states = {row: halted.get(row.start) if row.start else None for row in rows if row.waits}
        self._cancel([row for row, state in states.items() if state == STOPPED])
        self._finish([row for row in rows if not row.waits])
        of_runs = {row: state for row, state in states.items() if state in OF_RUNS}
        self._each(lambda row: self.waits.wait_for_run(row, of_runs[row]), [*of_runs])
        return [row for row, state in states.items() if state is None]

    def _cancel(self, rows: Sequence[WaitingRow]) -> None:
        if not rows:
            return
        cancelled = self.waits.cancel_together(rows, STOPPED, REASON)
        done = [row for row, is_cancelled in zip(rows, cancelled, strict=True) if is_cancelled]
        self._delete_contents(done)
        count("Cancelled", len(done))

    def _finish(self, rows: Sequence[WaitingRow]) -> None:
        """Remove the marks and the contents of messages that do not wait any more."""
        self._each(self.waits.hand_over, rows)
        self._delete_contents(rows)

    def _delete_contents(self, rows: Sequence[WaitingRow]) -> None:
        self.contents.delete([_name(row) for row in rows if row.reason != SEND_AT])

    def _each(self, change: Callable[[WaitingRow], object], rows: Sequence[WaitingRow]) -> None:
        """Call `change` for each row, in several threads."""
        if len(rows) < 2 or self.threads == 1:
            for row in rows:
                change(row)
            return
        with ThreadPoolExecutor(self.threads) as threads:
            for _ in threads.map(change, rows):
                pass


def _name_of(event: Mapping[str, Any]) -> str:
    """Return the name of the part of the work that a round handles, for its lease and the log."""
    if "line" in event:
        return f"line#{event['line']}"
    return f"removed#{event['removed']}#{event['shard']}" if "removed" in event else f"due#{event['shard']}"


def _opens(row: WaitingRow, moment: float) -> float:
    """Return the time when the row's window opens. Returns `moment` if the message lacks a window, or has an
    invalid one, which its worker reports."""
    try:
        return moment if row.window is None else row.window.opens(moment, None)
    except Invalid:
        return moment


def _due_at(row: WaitingRow, moment: float) -> int:
    """Return the time from which the delay of a message counts. The wait of a bulk message for the daily
    budget is intended and does not count."""
    return int(moment if row.lines_up else DELAYED_SINCE[row.reason](row, moment))


def _name(row: WaitingRow) -> Held:
    return Held(row.key, row.version)
