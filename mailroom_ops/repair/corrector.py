"""Corrections of messages: each is a new message, made of the old one's item with changed attributes.

A correction has the id `<id>~<name>`, where `name` is the name of the set, and is put on the condition that
this id is new. So the same correction can be put any number of times, also after a crash, and is sent once.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from mailroom.channels.preview import Preview
from mailroom.errors import Invalid, Malformed
from mailroom.ledger.items import ERASED_AT
from mailroom.mailbox import MailboxWriter, in_order, original
from mailroom.message import CAMPAIGN_START
from mailroom.message.message import Key
from mailroom_ops.messages.items import set_values
from mailroom_ops.messages.sets import WORKERS, MessageResult, found
from mailroom_ops.shared.deeds import thing_of
from mailroom_ops.shared.refusals import Refused
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.stage_queues import DeployedStage

Item = Mapping[str, Any]
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
OF_THE_OLD = frozenset(
    ("attempt", "ttl", "send_at", "expires_at", "unless", "template_version", CAMPAIGN_START)
)
"""Attributes that a correction does not take from the old item: its times and conditions have passed, and its
template is used in the present version."""
FIXED = frozenset(("id", "event_type", "to", "email", "cc", "bcc", "url", "attempt", "ttl", CAMPAIGN_START))
"""Attributes that a correction cannot change. One change is for all messages of a set, so a changed recipient
would get all of them."""


class Corrector:
    """Puts corrections of messages into the mailbox. `changes` are texts `name=value`, as for `--set`.
    `check` validates and renders an item as the stage would, and raises Invalid or Malformed. Raises Refused
    for an invalid name, and for a change of an attribute in FIXED."""

    def __init__(
        self,
        stage: DeployedStage,
        writer: MailboxWriter,
        check: Callable[[Item], Preview],
        name: str,
        changes: Sequence[str],
    ) -> None:
        if not _NAME.fullmatch(name):
            raise Refused(
                f"{name!r:.60} cannot be the name of a correction: use up to 40 of a-z, 0-9 and hyphens."
            )
        names = {change.partition("=")[0].strip() for change in changes}
        if fixed := sorted(names & FIXED):
            raise Refused(
                f"A correction cannot change {fixed[0]}; put other messages with mailroom messages import."
            )
        self._stage = stage
        self._writer = writer
        self._check = check
        self._name = name
        self._changes = changes

    def evaluate(self, refs: Iterable[MessageRef]) -> list[MessageResult]:
        """Return for each message whether it can be corrected, without a change."""
        return [result for result, _ in in_order(self._evaluate, refs, WORKERS)]

    def send(self, ready: Sequence[MessageResult], reason: str = "") -> list[MessageResult]:
        """Put the corrections of the ready messages, for a reason or for none. Each is evaluated once
        more."""
        self._stage.deeds.record(f"correct as {self._name}", map(thing_of, ready), reason)
        return [*in_order(self._put, ready, WORKERS)]

    def of(self, item: Item) -> dict[str, Any]:
        """Return the correction of a mailbox item. Raises Refused for a change that is not a pair, or whose
        value is invalid."""
        attributes = {name: value for name, value in original(item).items() if name not in OF_THE_OLD}
        changes = set_values(item["event_type"], self._changes, "The change")
        return attributes | changes | {"id": f"{item['id']}~{self._name}"}

    def preview(self, ready: MessageResult) -> Preview | None:
        """Return a message's correction as its recipient would receive it; None if it cannot be corrected any
        more."""
        _, correction = self._evaluate(MessageRef(ready.id, ready.event_type))
        return self._check(correction) if correction else None

    def _evaluate(self, ref: MessageRef) -> tuple[MessageResult, Item]:
        ledger = found(self._stage, ref)
        if isinstance(ledger, str):
            return MessageResult(ref.id, ref.event_type or "", "", "refused", ledger), {}
        key, status = Key(ledger["id"], ledger["event_type"]), str(ledger["status"])
        result = MessageResult(key.id, key.event_type, status, "ready", "")
        if ERASED_AT in ledger:
            return result.refused("its recipient was erased"), {}
        if "completedAt" not in ledger:
            # The old message would still be sent, too.
            return result.refused(f"{status}: it has no outcome yet"), {}
        if status == "cancelled":
            # Its producer, its `unless` or a stop decided that the recipient gets no message.
            return result.refused("cancelled: it was not meant to be sent; put another message instead"), {}
        item = next(iter(self._stage.items("mailbox", key)), None)
        if item is None:
            return result.refused("its item is no longer in the mailbox"), {}
        correction = self.of(item)
        try:
            self._check(correction)
        except (Invalid, Malformed) as fault:
            return result.refused(f"its correction would fail: {fault}"), {}
        put_before = next(iter(self._stage.items("mailbox", Key(correction["id"], key.event_type))), {})
        if {**put_before, "ttl": None} == {**correction, "ttl": None}:
            return structs.replace(result, result="corrected", why=f"{correction['id']} was put before"), {}
        return structs.replace(result, why=f"{status}: its correction is {correction['id']}"), correction

    def _put(self, ready: MessageResult) -> MessageResult:
        result, correction = self._evaluate(MessageRef(ready.id, ready.event_type))
        if not correction:
            return result
        put = self._writer.put(correction)
        if put.state in ("accepted", "existed"):
            return structs.replace(result, result="corrected")
        if put.state == "conflict":
            return result.refused(f"{correction['id']} exists with other content; use another name")
        return result.refused(f"its correction was not put: {put.error}")
