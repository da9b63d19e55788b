"""An operator in a crash test: `resend` and `repair` with the world's tables, queues and functions.

A test can stop the command at each of its calls, because an operator's process can end at any of them too.
"""

import io
import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar

from mailroom.aws.dynamo_values import plain
from mailroom.channels.contracts import CONTRACTS
from mailroom.environment import DispatchSettings, OutcomesSettings
from mailroom.message.message import Reference
from mailroom.outcomes import Outcomes
from mailroom_ops.messages.sets import MessageResult
from mailroom_ops.repair.again import SendAgain
from mailroom_ops.repair.judge import Judge, Memory
from mailroom_ops.repair.repairs import Repairs
from mailroom_ops.repair.resender import Resender
from mailroom_ops.shared.deeds import Deeds
from mailroom_ops.shared.deployed_stage import SearchFacts
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.stage_queues import DeployedStage
from tests.support.faults import fax_world
from tests.support.faults.fax_world import FaxWorld
from tests.support.faults.outside import Outside, Stopped
from tests.support.faults.world import BULK, MAIL, World
from tests.support.ops.shared import Session
from tests.support.tables import create_table

OLDER_THAN = 900.0
LONGEST_FAX = float(fax_world.TIMES.longest_fax)
Handler = Callable[[dict[str, Any]], dict[str, Any]]


class Here(DeployedStage):
    """A stage whose tables and functions have only their short names."""

    def name(self, short: str) -> str:
        return short


W = TypeVar("W", World, FaxWorld)


class Staged(NamedTuple, Generic[W]):
    """A world, and its stage as the operator's commands use it."""

    world: W
    stage: Here

    @property
    def outside(self) -> Outside:
        return self.world.outside


class Functions:
    """A stand-in for the Lambda client."""

    def __init__(self, handlers: dict[str, Handler]) -> None:
        self._handlers = handlers
        self.invoked: list[str] = []

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        self.invoked.append(FunctionName)
        answer = self._handlers[FunctionName](json.loads(Payload))
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode())}


def of_mail(world: World) -> Here:
    """Return the stage of a world of mail."""

    def dispatch(event: dict[str, Any]) -> dict[str, Any]:
        records = [each["dynamodb"] for each in event["Records"]]
        items = [(each["SequenceNumber"], plain(each["NewImage"])) for each in records]
        failed = world.dispatcher().dispatch(items)
        return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}

    routes = {"mail": {"normal": MAIL, "bulk": BULK}}
    handlers: dict[str, Handler] = {"dispatch": dispatch}
    return _stage_of(world.outside, world.dynamodb, world.sqs, handlers, routes, world.clock)


def sends(world: World) -> Counter[str]:
    """Return how often SES accepted each message, over all attempts."""
    headers = (
        {each["Name"]: each["Value"] for each in request["Content"]["Simple"]["Headers"]}
        for request in world.ses.accepted
    )
    return Counter(Reference.read(each["X-Correlation-ID"]).id for each in headers)


def of_fax(world: FaxWorld) -> Here:
    """Return the stage of a fax gateway."""
    settings = OutcomesSettings(
        webhook_queue_url=fax_world.WEBHOOK,
        retry_queue_url=fax_world.RETRY,
        max_attempts=world.max_attempts,
        retry_delay_seconds=fax_world.RETRY_SECONDS,
        channels=["fax"],
    )

    def outcomes(event: dict[str, Any]) -> dict[str, Any]:
        failed = Outcomes(settings, world.sqs, world.clock).handle(event["Records"])
        return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}

    routes = {"fax": {"normal": fax_world.FAX}}
    return _stage_of(world.outside, world.stream, world.sqs, {"outcomes": outcomes}, routes, world.clock)


def _stage_of(
    outside: Outside,
    dynamodb: Any,
    sqs: Any,
    handlers: dict[str, Handler],
    routes: dict[str, dict[str, str]],
    clock: Callable[[], float],
) -> Here:
    for table in dynamodb.tables.values():
        table.about["CreationDateTime"] = datetime.fromtimestamp(clock(), UTC)
    settings = DispatchSettings(
        ledger_table="ledger",
        ledger_ttl_seconds=1e9,
        payload_bucket="payloads",
        routes=routes,
        delayed_routes={},
        callback_schemes=["https"],
        callback_ports=[443],
    )
    watched = outside.watch(dynamodb, "update_item", "scan", "batch_get_item")
    functions: Any = outside.watch(Functions(handlers), "invoke")
    if "mailroom-dev-deeds" not in dynamodb.tables:
        create_table(dynamodb, "mailroom-dev-deeds", "found_by", "asked_at")
    deeds = Deeds(Session({"dynamodb": outside.watch(dynamodb, "batch_write_item")}), "dev", clock)
    vars(deeds).update(by=lambda: "ada", search=lambda: (SearchFacts(ledger_ttl_seconds=1e9), None))
    return Here("dev", watched, sqs, functions, settings, CONTRACTS, deeds, clock)


def resend(stage: Here, *ids: str, event_type: str = "mail", force: bool = False) -> list[MessageResult]:
    """Run `resend` once. Returns [] if the command was stopped."""
    with suppress(Stopped):
        resender = Resender(stage, lambda _message: None, force=force)
        looked = [resender.look(MessageRef(id_, event_type))[0] for id_ in ids]
        ready = [each for each in looked if each.result == "ready"]
        return [*resender.send(ready), *(each for each in looked if each.result != "ready")]
    return []


def repairs_of(stage: Here, *, confirmed: bool = False) -> Repairs:
    """Return the repair command of a stage. The longest fax occupies its line for a quarter of an hour."""
    mailbox, ledger = (
        stage.dynamodb.describe_table(TableName=name)["Table"] for name in ("mailbox", "ledger")
    )
    memory = Memory.of(mailbox, ledger, stage.clock(), confirmed=confirmed)
    return Repairs(stage, Judge(memory, OLDER_THAN, LONGEST_FAX, fax_world.LEASE))


def scan(stage: Here, sleep: Callable[[float], None]) -> tuple[int, int] | None:
    """Run the command once.

    Returns how many messages were repaired and how many were not, or None if it was stopped.
    """

    with suppress(Stopped):
        repairs = repairs_of(stage)
        candidates = repairs.scan()
        sleep(repairs.second_look_in(candidates))
        answer = repairs.repair(candidates, repairs.look(candidates, dry_run=False))
        return sum(answer.repaired.values()), answer.failed
    return None


def scanned(staged: Staged[Any]) -> tuple[int, int] | None:
    """Run `scan` on the world's clock."""
    return scan(staged.stage, staged.world.clock.sleep)


def send_again(stage: Here, *ids: str) -> tuple[int, int] | None:
    """Send named mails again, in whatever state they are.

    Returns how many were sent again and how many could not be queued, or None if the command was stopped.
    """
    with suppress(Stopped):
        resender = Resender(stage, lambda _message: None, force=False)
        act = SendAgain(stage, resender, lambda: repairs_of(stage, confirmed=True))
        looked = act.evaluate([MessageRef(id_, "mail") for id_ in ids])
        done = Counter(each.result for each in act.send([each for each in looked if each.result == "ready"]))
        return done["resent"], done["unqueued"]
    return None
