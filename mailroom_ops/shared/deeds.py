"""Record of deeds: who has changed something by a command or in the console, when, why and by which way.

A deed is recorded before it is done, and if it cannot be recorded, it is not done. So no deed is missing. If
the command ends or fails in between, the record has a deed that was only asked for; if the command is run
again, the record has it twice.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from secrets import token_hex
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, convert

from mailroom.aws.dynamo_batches import batch_put
from mailroom.aws.dynamo_values import image_of, plain
from mailroom.clock import Clock, iso, milliseconds
from mailroom.errors import quantity
from mailroom.ledger.items import MessageKey
from mailroom.message.address import forms_of
from mailroom.search.rows import TO
from mailroom.telemetry import impersonal
from mailroom_ops.shared.deployed_stage import name, search_of

if TYPE_CHECKING:
    import boto3

LIST = "list"
"""Thing that has the row of each deed. One partition is enough, because people do few deeds a second."""
SOMEBODY = "person"
"""Thing of any person of a stage without search."""
_OPERATOR = re.compile(
    r"arn:aws[\w-]*:(?:iam|sts)::\d*:(?:(root)\b|(?:federated-)?user/(?:[\w+=,.@/-]*/)?([\w+=,.@-]+)"
    r"|assumed-role/(?:AWSReservedSSO_)?([\w+=,.@-]+?)(?:_[0-9a-f]{16})?/([\w+=,.@-]+))"
)
"""ARN of an operator, as STS returns it: of the root user, a user, or a role's session."""


def with_names(text: str) -> str:
    """Return a text with the name of each operator in place of the ARN: of the user, or of the role and its
    session."""
    return _OPERATOR.sub(
        lambda arn: "the account's root user" if arn[1] else arn[2] or f"{arn[3]} / {arn[4]}", text
    )


def thing_of(key: MessageKey) -> str:
    """Return the thing of a message."""
    return f"message#{key.event_type}#{key.id}"


class Deed(Struct, frozen=True):
    """Deed that an operator did, or at least asked for."""

    at: str
    """Time (ISO 8601, UTC)."""
    verb: str
    thing: str
    """Kind and name of the thing, such as `message#mail#order-42`, or the number of messages."""
    by: str
    """ARN of the operator."""
    way: Literal["command", "console"]
    why: str
    cursor: str
    """Position of this deed in the record."""

    @property
    def words(self) -> str:
        """Operator, way and reason for people."""
        return f"by {with_names(self.by)} ({self.way}){': ' if self.why else ''}{self.why}"


class Deeds:
    """Reads and writes the record of one stage."""

    def __init__(self, session: "boto3.Session", stage: str, clock: Clock = time.time) -> None:
        self._client, self._table, self._clock = session.client("dynamodb"), name(stage, "deeds"), clock
        # Only the console's session has a way.
        self.way: Literal["command", "console"] = getattr(session, "way", "command")
        self.by: Callable[[], str] = cache(lambda: session.client("sts").get_caller_identity()["Arn"])
        self.search = cache(partial(search_of, session, stage))

    def record(self, verb: str, things: Iterable[str], reason: str = "") -> None:
        """Record a deed before it is done: a row in the list, and a row for each of the `things`, which are
        messages if there are several. Addresses and numbers in the reason are masked. Returns at once if
        `things` is empty.

        Raises UnprocessedKeys, NotDeployed and botocore's errors; then the deed must not be done."""
        moment, names = self._clock(), [*dict.fromkeys(things)]
        fields = {"verb": verb, "by": self.by(), "way": self.way, "why": impersonal(reason.strip()[:500])}
        times = {
            "asked_at": f"{milliseconds(moment):013d}#{token_hex(8)}",
            "ttl": int(moment + self.search()[0].ledger_ttl_seconds),
        }
        places = {name: name for name in names if name != SOMEBODY}
        places[LIST] = names[0] if len(names) == 1 else quantity(len(names), "message")
        rows = [{"found_by": place, "thing": places[place], **fields, **times} for place in places]
        batch_put(self._client, self._table, [*map(image_of, rows)] if names else [])

    def person(self, typed: str) -> str:
        """Return the thing of a person: with a keyed hash, as in the table `search`. Raises InvalidSecret."""
        facts, rows = self.search()
        form = forms_of(typed, facts.default_region)[0]
        return f"{SOMEBODY}#{rows.partition(form).removeprefix(TO)[:16]}" if rows else SOMEBODY

    def of(self, thing: str, cursor: str = "~", since: float = 0) -> Iterator[Deed]:
        """Yield the deeds on a thing, the newest first, from a cursor on and since a time in epoch
        seconds."""
        end = cursor[:40]  # a cursor from a URL may be any text
        values = {":thing": thing, ":since": min(f"{milliseconds(since):013d}", end), ":cursor": end}
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="found_by = :thing AND asked_at BETWEEN :since AND :cursor",
            ExpressionAttributeValues=image_of(values),
            ScanIndexForward=False,
            ConsistentRead=True,
            PaginationConfig={"PageSize": 100},
        )
        for row in (plain(image) for page in pages for image in page["Items"]):
            yield convert(
                row | {"at": iso(int(row["asked_at"][:13]) / 1000), "cursor": row["asked_at"]}, Deed
            )
