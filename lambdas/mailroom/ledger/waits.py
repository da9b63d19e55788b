"""Waits of messages that have to be sent later. Such a message has a mark in its ledger item, and an index
contains the marked items.

A message waits while its status is `scheduled` and its ledger item has a mark. So a write that ends or claims
the message also ends the wait, because it changes the status. The function `release` removes the mark of such
a message later.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self
from zlib import crc32

import msgspec
from msgspec import Struct

from mailroom.aws import clients
from mailroom.aws.dynamo_batches import insert
from mailroom.aws.dynamo_updates import ConditionFailed, Update, try_update
from mailroom.aws.dynamo_values import Sets, image_of, number, plain, string
from mailroom.clock import Clock, iso
from mailroom.environment import Common
from mailroom.ledger.items import MARK, PAUSED, RUN_UNKNOWN, WAIT, about_of, where
from mailroom.ledger.table import FIRST, NEXT, STANDS, UNSENT, WAITS, LedgerTable, Write, waits_as
from mailroom.message import CAMPAIGN_START
from mailroom.message.message import MAX_AHEAD_SECONDS, CampaignStart, Key, Message
from mailroom.message.window import Window

INDEX = "waiting"
"""Name of the sparse index of messages that wait. Its partition key is the list (`waits_in`), and its sort
key is the position in the list (`waits_at`)."""
PROJECTED = ("status", "putAt", WAIT, CAMPAIGN_START)
"""Attributes of the ledger item that the index contains in addition to its keys."""
SHARDS = 8
"""Number of partitions (shards) of each list. A partition of DynamoDB allows 1,000 writes a second
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html)."""
PAGE = 250
"""Number of rows that one call reads."""
MOST_COUNTED = 10_000
"""Maximum number of messages that `before` counts."""
_POSITIONS = 10**11
"""Size of the range of positions of one run, in the list of the messages whose runs are paused. The positions
of a run begin at a multiple of this number, so that the next query can skip all messages of a run."""
AHEAD_SECONDS = 120
"""Seconds before the due time of a waiting message at which the message is put into its queue. SQS then
delays the message until that time. A message that is due sooner is put into the queue at once."""

SEND_AT, OUTSIDE_WINDOW = "send_at", "outside_window"
DAY_USED_UP, PROVIDER_REFUSES = "day_used_up", "provider_refuses"
REASONS = (SEND_AT, OUTSIDE_WINDOW, DAY_USED_UP, PROVIDER_REFUSES, PAUSED, RUN_UNKNOWN)
"""Reasons of a wait."""
OF_RUNS = (PAUSED, RUN_UNKNOWN)
"""Reasons of a wait for a campaign run, which are also the prefixes of the lists of these messages."""
LISTS_OF_CHANNEL = ("line", *OF_RUNS)
"""Prefixes of the lists of a channel's messages, each of which has SHARDS partitions."""


class Wait(Struct, frozen=True):
    """Wait of a message that may not be sent yet."""

    message: Message
    reason: str
    """Reason of the wait, an entry of REASONS."""
    due: float
    """Time in epoch seconds before which the message is not sent."""
    version: str
    """Id of this wait: a message that has to wait once more gets a new id."""
    put_at: float | None = None
    """Time in epoch seconds when the message was put into the mailbox, if that time is known."""
    window: Window | None = None
    """Window of the message, with the message's `time_zone` if it has one."""
    lines_up: bool = False
    """Whether the message needs capacity of the daily budget before it is sent. Such a message waits for its
    channel's budget as soon as its window is open. Messages that were put first are sent first."""
    new: bool = False
    """Whether the ledger probably lacks an item of the message."""

    @property
    def ends(self) -> float:
        """Time in epoch seconds by which the wait has certainly ended. A wait for the daily budget or for a
        run may be long, unless the message expires."""
        expiry = self.message.expiry()
        may_be_long = self.lines_up or self.message.campaign_start is not None
        latest = self.due + (MAX_AHEAD_SECONDS if may_be_long else 0)
        return latest if expiry is None else min(expiry, latest)


class WaitingRow(Struct, frozen=True):
    """Row of the index: the mark of a message, without the message's content."""

    key: Key
    version: str
    lane: str
    reason: str
    at: int
    """Position in the list: the due time in epoch seconds, the time when the message was put, or the position
    from `_of_run` if the message waits for its run."""
    place: int
    """Time in epoch seconds when the message was put into the mailbox."""
    recipients: int
    window: Window | None
    lines_up: bool
    start: CampaignStart | None
    """Start of the campaign's run that composed the message."""
    expires: float | None
    """Time in epoch seconds after which sending is pointless; None if it never becomes pointless."""
    waits: bool
    """Whether the message waits; false if it was claimed or has ended, so that the mark must be removed."""


class Waits(LedgerTable):
    """Writes and reads the marks of waiting messages in ledger items."""

    @classmethod
    def of(cls, settings: Common, clock: Clock) -> Self:
        """Create the object from a function's settings."""
        return cls(clients.dynamodb(), settings.ledger_table, settings.ledger_ttl_seconds, clock)

    def hold(
        self, waits: Sequence[Wait], on_replaced: Callable[[Key, str], object] = lambda _key, _version: None
    ) -> list[bool]:
        """Mark messages that may not be sent yet. Messages that are not in the ledger yet are inserted by one
        call for every 25; each other message takes one call.

        A mark replaces an earlier mark of the message. So the DynamoDB client must not retry: a late retry
        could replace a newer mark by an older one, whose content is already deleted.

        Returns for each message whether it waits now. It does not wait if it has ended, if it is claimed, if
        it may have been sent, or if it is a copy of an earlier attempt. `on_replaced` is called with the key
        of each message whose earlier mark was replaced, and with that mark's version. Raises the client's
        errors; then some of the messages may wait.
        """
        # DynamoDB refuses a batch that contains a key twice, so only the first wait of each message is
        # inserted.
        first = {wait.message.key: wait for wait in reversed(waits)}
        new = [wait for wait in waits if wait.new and first[wait.message.key] is wait]
        codes = insert(self._client, self._table, [self._item(wait) for wait in new])
        written = {wait.version for wait, code in zip(new, codes, strict=True) if code is None}
        return [wait.version in written or self._hold(wait, on_replaced) for wait in waits]

    def _hold(self, wait: Wait, on_replaced: Callable[[Key, str], object]) -> bool:
        attempt = wait.message.attempt
        changes = Update(self._mark(wait), self.first_values(about_of(wait.message), wait.put_at))
        condition = f"{UNSENT} AND {FIRST if attempt == 1 else NEXT}"
        try:
            values = {":ended": number(attempt - 1)}
            before = self.write(wait.message.key, changes, condition, values, returns="ALL_OLD")
        except ConditionFailed:
            return False
        # `insert` may have written the mark of this wait although it returned an error code.
        if WAIT in before and before[WAIT]["version"] != wait.version:
            on_replaced(wait.message.key, before[WAIT]["version"])
        return True

    def _item(self, wait: Wait) -> Sets:
        first = self.first_values(about_of(wait.message), wait.put_at)
        dates = self.dates(self._clock())
        return {**where(wait.message.key), **dates, **first, **self._mark(wait)}

    def _mark(self, wait: Wait) -> Sets:
        message, moment = wait.message, self._clock()
        mark = {
            "version": wait.version,
            "reason": wait.reason,
            "lane": message.lane,
            "recipients": message.recipient_count,
            "window": msgspec.to_builtins(wait.window),
            "lines_up": wait.lines_up,
            "expires": message.expiry(),
        }
        place = int(moment if wait.put_at is None else min(wait.put_at, moment))
        position = _due(message.key, wait.due, wait.lines_up)
        if wait.lines_up and wait.reason == DAY_USED_UP:
            position = _in_line(message.key, place)
        elif wait.reason in OF_RUNS:
            position = _of_run(wait.reason, message.key, message.campaign_start, place)
        return {
            "status": string("scheduled"),
            "scheduledFor": string(iso(wait.due)),
            # The item must not expire before the wait ends, even if the wait is extended.
            "ttl": self.ttl_after(max(wait.due, moment) + MAX_AHEAD_SECONDS),
            **image_of({WAIT: mark}),
            **position,
            **about_of(message),
        }

    def due(
        self, shard: int, until: float, *, lines_up: bool = False, page: int = PAGE
    ) -> Iterator[WaitingRow]:
        """Yield the messages of a shard that are due at `until` (epoch seconds) or before, in the order of
        their due times. Messages that have to wait for the daily budget once they are due are in separate
        lists, which `lines_up` selects: millions of them may have a window that opens in the same minute, and
        must not delay other messages. Pages of `page` rows are read on demand."""
        name = "lines_up" if lines_up else "due"
        return self._rows(f"{name}#{shard}", "waits_at <= :at", math.floor(until), page)

    def line(self, channel: str) -> Iterator[WaitingRow]:
        """Yield the messages that wait for the channel's daily budget, in the order in which they were put.
        Pages are read on demand, but at least one page of each shard."""
        shards = [self._rows(f"line#{channel}#{shard}", "waits_at >= :at", 0) for shard in range(SHARDS)]
        return heapq.merge(*shards, key=lambda row: row.at)

    def of_runs(self, channel: str, skip: Callable[[WaitingRow, str], bool]) -> Iterator[WaitingRow]:
        """Yield the messages that wait for their runs, except those of runs for which `skip` is true, which
        is called with a message and the reason of its wait. Messages are grouped by run, in the order in
        which they were put. Each run that is skipped costs one page of each shard."""

        def rows(reason: str, shard: int) -> Iterator[WaitingRow]:
            return self._of_runs(f"{reason}#{channel}#{shard}", lambda row: skip(row, reason))

        lists = [rows(reason, shard) for reason in OF_RUNS for shard in range(SHARDS)]
        return heapq.merge(*lists, key=lambda row: row.at)

    def _of_runs(self, name: str, skip: Callable[[WaitingRow], bool], start: int = 0) -> Iterator[WaitingRow]:
        for row in self._rows(name, "waits_at >= :at", start):
            if skip(row):
                yield from self._of_runs(name, skip, (row.at // _POSITIONS + 1) * _POSITIONS)
                return
            yield row

    def all_of(self, channel: str, shard: int, page: int = PAGE) -> Iterator[WaitingRow]:
        """Yield the messages of a shard that wait for the channel's daily budget, or for their runs. Pages of
        `page` rows are read on demand."""
        for name in LISTS_OF_CHANNEL:
            yield from self._rows(f"{name}#{channel}#{shard}", "waits_at >= :at", 0, page)

    def before(self, channel: str, place: int) -> int:
        """Return how many messages that wait for the channel's daily budget were put before `place` (epoch
        seconds), at most MOST_COUNTED."""
        count = 0
        for shard in range(SHARDS):
            for page in self._pages(f"line#{channel}#{shard}", "waits_at < :at", place, Select="COUNT"):
                count += page["Count"]
                if count >= MOST_COUNTED:
                    return MOST_COUNTED
        return count

    def hand_over(self, row: WaitingRow) -> bool:
        """Remove the mark of a message that was put into its queue, or that does not wait any more. Returns
        False if a later hold has replaced the mark."""
        return self._change(row, Update(self.dates(self._clock()) if row.waits else {}, removes=MARK))

    def move(self, row: WaitingRow, due: float | None) -> bool:
        """Let a message wait until `due` (epoch seconds), or for the daily budget if `due` is None. Returns
        False if a later hold has replaced the mark."""
        position = _in_line(row.key, row.place) if due is None else _due(row.key, due, row.lines_up)
        moment = iso(self._clock() if due is None else due)
        return self._change(row, Update({**position, "scheduledFor": string(moment)}))

    def wait_for_run(self, row: WaitingRow, reason: str) -> bool:
        """Let a message wait until its run goes on; `reason` is an entry of OF_RUNS. Returns False if a later
        hold has replaced the mark."""
        return self._change(row, Update(_of_run(reason, row.key, row.start, row.place)))

    def cancel_together(self, rows: Sequence[WaitingRow], code: str, reason: str) -> list[bool]:
        """Cancel waiting messages, and remove their marks, in one call for every 100 messages. `reason` is a
        sentence for people. Returns for each message whether it was cancelled."""
        changes = self.cancelled(reason, code, {})
        changes = changes._replace(removes=(*changes.removes, *MARK))
        condition = f"{UNSENT} AND {WAITS}"
        return self.write_together(
            [Write(row.key, changes, condition, waits_as(row.version), "cancelled", code) for row in rows]
        )

    def _change(self, row: WaitingRow, changes: Update) -> bool:
        values = {**changes.values, ":version": string(row.version)}
        expression = changes.expression
        return try_update(self._client, self._table, where(row.key), expression, STANDS, values)[0]

    def _rows(self, name: str, range_: str, moment: int, size: int = PAGE) -> Iterator[WaitingRow]:
        for page in self._pages(name, range_, moment, size):
            yield from (_row(plain(item)) for item in page["Items"])

    def _pages(
        self, name: str, range_: str, moment: int, size: int = PAGE, **options: Any
    ) -> Iterator[Mapping[str, Any]]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=INDEX,
            KeyConditionExpression=f"waits_in = :list AND {range_}",
            ExpressionAttributeValues={":list": string(name), ":at": number(moment)},
            PaginationConfig={"PageSize": size},
            **options,
        )
        return iter(pages)


def _due(key: Key, due: float, lines_up: bool) -> Sets:
    return _position(key, "lines_up" if lines_up else "due", math.ceil(due))


def _in_line(key: Key, place: int) -> Sets:
    return _position(key, f"line#{key.event_type}", place)


def _of_run(reason: str, key: Key, start: CampaignStart | None, place: int) -> Sets:
    run = 0 if start is None else crc32(f"{start.campaign}#{start.run}".encode())
    return _position(key, f"{reason}#{key.event_type}", run * _POSITIONS + place)


def _position(key: Key, name: str, position: int) -> Sets:
    shard = crc32(key.id.encode()) % SHARDS
    return {"waits_in": string(f"{name}#{shard}"), "waits_at": number(position)}


def _row(item: Mapping[str, Any]) -> WaitingRow:
    mark = item[WAIT]
    return WaitingRow(
        key=Key(item["id"], item["event_type"]),
        version=mark["version"],
        lane=mark["lane"],
        reason=mark["reason"],
        at=int(item["waits_at"]),
        place=int(item["putAt"]) // 1000,
        recipients=int(mark["recipients"]),
        window=msgspec.convert(mark["window"], Window | None),
        lines_up=mark["lines_up"],
        expires=mark.get("expires"),
        start=msgspec.convert(item.get(CAMPAIGN_START), CampaignStart | None),
        waits=item["status"] == "scheduled",
    )
