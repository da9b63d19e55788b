"""Puts one message into the mailbox, and waits for what becomes of it."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import boto3
from msgspec import Struct

from mailroom.errors import Invalid, Malformed
from mailroom.ledger.reader import READY, LedgerReader, MessageStatus
from ops.clients import config_for_puts
from ops.messages.rules import rules_of
from ops.screen import Refused
from ops.stage import name

if TYPE_CHECKING:
    from mailroom.client import State

UNDER_WAY = (READY, "scheduled", "sending", "retrying")
"""Without an outcome."""
GOOD = ("sent", "delivered")
_FIRST_POLL, _LONGEST_POLL = 0.2, 2.0


class Sent(Struct, frozen=True, kw_only=True):
    """The answer of `send`. `result` is accepted, existed (the very same was there) or conflict (the id is
    another message's, which stays). `status` and `error` are the ledger's, where it was waited for."""

    id: str
    event_type: str
    stage: str
    result: str
    status: str | None = None
    error: str | None = None
    provider_id: str | None = None


class Post:
    """One stage's mailbox and ledger."""

    def __init__(self, session: boto3.Session, stage: str) -> None:
        self._stage = stage
        rules = rules_of(session, stage)
        dynamodb, s3 = session.client("dynamodb", config=config_for_puts(1)), session.client("s3")
        self._validator = rules.validator(s3)
        self._writer = rules.writer(dynamodb, s3)
        self._reader = reader_of(session, stage)

    def put(self, item: Mapping[str, Any]) -> Sent:
        """Judge it and put it. Raises Refused, which names the attribute, and where AWS did not take it."""
        try:
            self._validator.validate(item)
        except (Invalid, Malformed) as fault:
            raise Refused(f"Not put: {fault}.") from None
        written = self._writer.put(item)
        if written.state in ("refused", "failed"):
            raise Refused(f"Not put: {written.error}.")
        result: State = "accepted"
        if written.state == "existed":
            result = "existed" if written.same else "conflict"
        return Sent(id=item["id"], event_type=item["event_type"], stage=self._stage, result=result)

    def wait(
        self,
        sent: Sent,
        seconds: float,
        *,
        seen: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Sent:
        """The same with its status, once it has an outcome, or when the time is over."""
        deadline, pause = now() + seconds, _FIRST_POLL
        while True:
            found = next(iter(self._reader.find(sent.id, sent.event_type)), None)
            seen(found.status if found else "gone")
            if found is None or found.status not in UNDER_WAY or now() + pause > deadline:
                return _with(sent, found)
            sleep(pause)
            pause = min(_LONGEST_POLL, pause * 1.5)


def reader_of(session: boto3.Session, stage: str) -> LedgerReader:
    """Reads a stage's ledger and mailbox."""
    tables = name(stage, "ledger"), name(stage, "mailbox")
    return LedgerReader(session.client("dynamodb"), *tables)


def _with(sent: Sent, found: MessageStatus | None) -> Sent:
    if found is None:
        return sent
    error = found.error["message"] if found.error else None
    return Sent(
        id=sent.id,
        event_type=sent.event_type,
        stage=sent.stage,
        result=sent.result,
        status=found.status,
        error=error,
        provider_id=found.provider_id,
    )
