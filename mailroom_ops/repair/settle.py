"""The command `messages settle`: records the outcome of messages whose outcome no worker can find out."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from mailroom_ops.messages.sets import DryRun, Ids, IdsFile, MessageResult, Why, act_on
from mailroom_ops.repair.judge import PATIENCE_SECONDS
from mailroom_ops.repair.repairs import Judged, Repairs, Word
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.stage_queues import DeployedStage

if TYPE_CHECKING:
    import boto3

FOLLOWS: dict[Word, str] = {
    "sent": "It is never sent again without mailroom messages resend --force.",
    "failed": "Callbacks are sent, and mailroom messages resend can send it again.",
}
"""Consequences of an outcome that an operator records."""


class Settler:
    """Act that records an operator's word as the outcome of messages."""

    def __init__(self, repairs: Repairs, word: Word) -> None:
        self._repairs = repairs
        self._word = word
        self._shown: dict[MessageRef, Judged] = {}

    def evaluate(self, refs: Iterable[MessageRef]) -> list[MessageResult]:
        """Return the state of each message and whether its outcome can be recorded, without a change. Raises
        Refused if messages of several channels have an id."""
        results = []
        for batch in self._repairs.judged(self._repairs.keys_of([*refs])):
            for diagnosis, message in batch:
                key, item = message.key, message.ledger or {}
                status, obstacle = str(item.get("status", "")), diagnosis.not_ended
                provider = " ".join(str(item[name]) for name in ("provider", "provider_id") if name in item)
                reason = obstacle or f"{status}: {provider}".removesuffix(": ")
                results.append(
                    MessageResult(key.id, key.event_type, status, "refused" if obstacle else "ready", reason)
                )
                self._shown[MessageRef(key.id, key.event_type)] = (diagnosis, message)
        return results

    def send(self, ready: Sequence[MessageResult], reason: str = "") -> list[MessageResult]:
        """Record the outcome of the ready messages, unless one has changed since it was evaluated."""
        results = []
        for result in ready:
            candidate = self._shown[MessageRef(result.id, result.event_type)]
            obstacle = self._repairs.end(candidate, self._word, reason)
            done = structs.replace(result, result="recorded")
            results.append(result.refused(obstacle) if obstacle else done)
        return results


def settle(
    ids: Ids = None,
    stage: Stage = "dev",
    *,
    word: Annotated[Word, typer.Option("--as", help="The outcome: sent or failed.")],
    ids_file: IdsFile = None,
    channel: Annotated[str | None, typer.Option(help="Only messages of this channel.")] = None,
    reason: Why = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Record the outcome of a message that stays sending.

    Use it if no worker can find the outcome out, as after a crash. First ask the provider or the recipient. A
    message that you record as sent, although it was not sent, is never sent. One that you record as failed
    gets its callbacks, and mailroom messages resend can send it again. Exit code 1: some outcomes were not
    recorded. 2: the command could not do its work.

    Example: mailroom messages settle fax-7 --as failed --stage prod
    """

    def act_of(_session: "boto3.Session", deployed: DeployedStage) -> Settler:
        return Settler(Repairs.of(deployed, older_than=PATIENCE_SECONDS, confirmed=True), word)

    act_on(
        (ids, ids_file, channel),
        stage,
        act_of,
        f"Record {{}} as {word}? {FOLLOWS[word]} Go on",
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
        always_ask=True,
        reason=reason,
    )
