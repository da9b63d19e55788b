"""The command `messages cancel`: cancels messages that wait to be sent, in the same way as the HTTP API."""

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from mailroom.api.answers import ApiError
from mailroom.api.messages import States
from mailroom.clock import Clock
from mailroom.ledger import cancellation
from mailroom.ledger.table import LedgerTable
from mailroom.mailbox import in_order
from mailroom_ops.messages.sets import WORKERS, DryRun, Ids, IdsFile, MessageResult, Why, act_on
from mailroom_ops.messages.status import ChannelOfId
from mailroom_ops.messages.views import reader_of
from mailroom_ops.shared.deeds import Deeds, thing_of
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.stage_queues import DeployedStage

if TYPE_CHECKING:
    import boto3


def cancel(
    ids: Ids = None,
    stage: Stage = "dev",
    *,
    ids_file: IdsFile = None,
    channel: ChannelOfId = None,
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Cancel messages that wait to be sent.

    If a message has a callback URL, a callback is sent to it. Running the command twice is harmless. To send
    a message after all, put it under a new id. The command asks as mailroom messages resend does. Exit code
    1: some messages do not exist, or do not wait. 2: the command could not do its work.

    Example: mailroom messages cancel reminder-42 --stage prod
    """

    def act_of(session: "boto3.Session", deployed: DeployedStage) -> Canceller:
        return Canceller(states_of(session, deployed), time.time, deployed.deeds)

    selection = (ids, ids_file, channel)
    act_on(selection, stage, act_of, "Cancel {}", dry_run=dry_run, yes=yes, as_json=as_json, reason=reason)


class Canceller:
    """Cancels waiting messages."""

    def __init__(self, states: States, clock: Clock, deeds: Deeds) -> None:
        self._states = states
        self._deeds = deeds
        self._clock = clock

    def evaluate(self, refs: Iterable[MessageRef]) -> list[MessageResult]:
        """Return for each message whether it waits, without a change."""
        return [*in_order(self._evaluate, refs, WORKERS)]

    def send(self, ready: Sequence[MessageResult], reason: str = "") -> list[MessageResult]:
        """Cancel the ready messages, for a reason or for none."""
        self._deeds.record("cancel", map(thing_of, ready), reason)
        return [*in_order(self._cancel, ready, WORKERS)]

    def _evaluate(self, ref: MessageRef) -> MessageResult:
        try:
            message = self._states.of(ref.id, ref.event_type)
        except ApiError as refusal:
            return MessageResult(ref.id, ref.event_type or "", "", "refused", refusal.detail)
        result = MessageResult(message.id, message.event_type, message.status, "ready", "it waits to be sent")
        if message.status == "cancelled":
            return structs.replace(result, result="cancelled", why="it is cancelled")
        if cancellation.waits(message, self._clock()):
            return result
        return result.refused(
            f"the message is {message.status} and does not wait; only a waiting one can be cancelled"
        )

    def _cancel(self, ready: MessageResult) -> MessageResult:
        try:
            self._states.cancel(ready.id, ready.event_type)
        except ApiError as refusal:
            return ready.refused(refusal.detail)
        return structs.replace(ready, result="cancelled")


def states_of(session: "boto3.Session", deployed: DeployedStage, clock: Clock = time.time) -> States:
    """Return the object that cancels a stage's messages, which the HTTP API uses too."""
    ttl = deployed.dispatch.ledger_ttl_seconds
    ledger = LedgerTable(deployed.dynamodb, deployed.name("ledger"), ttl, clock)
    return States(reader_of(session, deployed.stage), ledger, clock)
