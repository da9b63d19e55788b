"""Looks through both tables, several segments at once, a page of each at a time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mailroom.aws.dynamo import plain
from mailroom.message.message import Key
from ops.reconcile.judge import JUDGED_BY, overdue
from ops.reconcile.look import Look, Page, Segment, Table
from ops.reconcile.patience import Patience
from ops.reconcile.reading import Reading, projected
from ops.resend.deployed import Deployed

MOST_SEGMENTS = 8
_ITEMS = 50_000
"""Of one segment: a smaller table is not worth a second one."""


def segments_of(items: int) -> int:
    """Into how many segments a table of so many items is cut."""
    return min(MOST_SEGMENTS, 1 + items // _ITEMS)


class Looking:
    """Finds what the ledger does not know, and what is overdue; writes nothing but the look's own file."""

    def __init__(self, deployed: Deployed, look: Look, patience: Patience) -> None:
        self._deployed = deployed
        self._look = look
        self._patience = patience
        self._reading = Reading(deployed.dynamodb)

    def go(self) -> Iterator[int]:
        """Look through what is left; how many items were seen, page by page."""
        with ThreadPoolExecutor(MOST_SEGMENTS) as pool:
            while left := self._look.left():
                for page in pool.map(self._page, left.keys(), left.values()):
                    self._look.add(page)
                    yield page.seen

    def _page(self, segment: Segment, start: dict[str, Any] | None) -> Page:
        table, number = segment
        fields = () if table == "mailbox" else JUDGED_BY
        total = self._look.head.segments[table]
        asked: dict[str, Any] = projected(("id", *fields))
        if table == "ledger":
            asked["FilterExpression"] = "attribute_not_exists(completedAt)"
        if start:
            asked["ExclusiveStartKey"] = start
        at = self._deployed.clock()
        reply = self._deployed.dynamodb.scan(
            TableName=self._name(table), Segment=number, TotalSegments=total, **asked
        )
        items = [plain(each) for each in reply["Items"]]
        found = self._missing(items) if table == "mailbox" else self._overdue(items, at)
        keys = [(key.id, key.event_type) for key in found]
        return Page(table, number, at, reply["ScannedCount"], keys, reply.get("LastEvaluatedKey"))

    def _missing(self, items: list[dict[str, Any]]) -> list[Key]:
        keys = [_key(each) for each in items]
        known = self._reading.images(self._deployed.dispatch.ledger_table, keys, ("id",))
        return [key for key in keys if key not in known]

    def _overdue(self, items: list[dict[str, Any]], now: float) -> list[Key]:
        return [_key(each) for each in items if overdue(each, now, self._patience)]

    def _name(self, table: Table) -> str:
        return self._deployed.mailbox if table == "mailbox" else self._deployed.dispatch.ledger_table


def _key(item: dict[str, Any]) -> Key:
    return Key(item["id"], item["event_type"])
