"""An operator in a world of faults: `resend` and `reconcile` with its tables, queues and functions.

The command's own calls are places to stop as a function's are: whoever runs it may be cut off at any of them.
"""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mailroom.aws.dynamo import plain
from mailroom.channels.contracts import CONTRACTS
from mailroom.environment import Dispatch
from mailroom.environment import Outcomes as OutcomesSettings
from mailroom.message.message import Reference
from mailroom.outcomes.outcomes import Outcomes, Schedule
from ops.reconcile.following import Following
from ops.reconcile.patience import Patience
from ops.reconcile.reconciling import Reconciling
from ops.resend import following as resend_following
from ops.resend.deployed import Deployed
from ops.resend.ids import Asked
from ops.resend.resending import Resending
from ops.resend.resent import Resent
from tests.faults import fax_world
from tests.faults.fax_world import FaxWorld
from tests.faults.outside import Outside, Stopped
from tests.faults.world import BULK, LEASE, MAIL, SCHEDULED, VISIBILITY, World

OLDER_THAN = 900.0
KEPT_SECONDS = 14 * 86_400
"""How long a dead-letter queue keeps a letter."""
Handler = Callable[[dict[str, Any]], dict[str, Any]]


class Here(Deployed):
    """A stage whose tables and functions have short names alone."""

    def name(self, short: str) -> str:
        return short


class Functions:
    """The Lambda client."""

    def __init__(self, handlers: dict[str, Handler]) -> None:
        self._handlers = handlers
        self.invoked: list[str] = []

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        self.invoked.append(FunctionName)
        answer = self._handlers[FunctionName](json.loads(Payload))
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(answer).encode())}


class Sqs:
    """The SQS client: the world's own, the names of its queues, and what lies in dead-letter queues."""

    def __init__(self, sqs: Any, letters: Mapping[str, int]) -> None:
        self._sqs = sqs
        self._letters = letters

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sqs, name)

    def get_queue_url(self, *, QueueName: str) -> dict[str, str]:  # noqa: N803
        return {"QueueUrl": f"https://sqs/{QueueName}"}

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Iterable[str]) -> dict[str, Any]:  # noqa: N803
        name = QueueUrl.rpartition("/")[2]
        attributes = {
            "RedrivePolicy": json.dumps({"deadLetterTargetArn": f"arn:aws:sqs:us-east-1:1:{name}-dlq"}),
            "MessageRetentionPeriod": str(KEPT_SECONDS),
            "ApproximateNumberOfMessages": str(self._letters.get(name, 0)),
        }
        return {"Attributes": {each: attributes[each] for each in AttributeNames if each in attributes}}


def of_mail(world: World, letters: Mapping[str, int] = MappingProxyType({})) -> Here:
    """The stage of a world of mail; `letters` lie in its dead-letter queues, by the queue's name."""

    def dispatch(event: dict[str, Any]) -> dict[str, Any]:
        records = [each["dynamodb"] for each in event["Records"]]
        items = [(each["SequenceNumber"], plain(each["NewImage"])) for each in records]
        failed = world.dispatcher().dispatch(items)
        return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}

    routes = {"mail": {"normal": MAIL, "bulk": BULK}}
    handlers: dict[str, Handler] = {"dispatch": dispatch}
    return _stage(world.outside, world.dynamodb, world._sqs, handlers, routes, world.clock, letters)


def sends(world: World) -> Counter[str]:
    """How often SES accepted each message, whatever the attempt."""
    headers = (
        {each["Name"]: each["Value"] for each in request["Content"]["Simple"]["Headers"]}
        for request in world.ses.accepted
    )
    return Counter(Reference.read(each["X-Correlation-ID"]).id for each in headers)


def of_fax(world: FaxWorld) -> Here:
    """The stage of a fax gateway."""
    settings = OutcomesSettings(
        webhook_queue_url=fax_world.WEBHOOK,
        retry_queue_url=fax_world.RETRY,
        max_attempts=world.max_attempts,
        retry_delay_seconds=fax_world.RETRY_SECONDS,
        retry_growth=1,
        retry_delay_cap_seconds=900,
    )

    def outcomes(event: dict[str, Any]) -> dict[str, Any]:
        failed = Outcomes(settings, world._sqs, world.clock).handle(event["Records"])
        return {"batchItemFailures": [{"itemIdentifier": each} for each in failed]}

    routes = {"fax": {"normal": fax_world.FAX}}
    return _stage(world.outside, world._stream, world._sqs, {"outcomes": outcomes}, routes, world.clock)


def _stage(
    outside: Outside,
    dynamodb: Any,
    sqs: Any,
    handlers: dict[str, Handler],
    routes: dict[str, dict[str, str]],
    clock: Callable[[], float],
    letters: Mapping[str, int] = MappingProxyType({}),
) -> Here:
    for table in dynamodb.tables.values():
        table.about["CreationDateTime"] = datetime.fromtimestamp(clock(), UTC)
    settings = Dispatch(
        ledger_table="ledger",
        ledger_ttl_seconds=1e9,
        payload_bucket="payloads",
        routes=routes,
        delayed_routes={},
        callback_schemes=["https"],
        callback_ports=[443],
        schedule_group="mailroom",
        schedule_role_arn="role",
        schedule_target_arn=f"arn:aws:sqs:us-east-1:123456789012:{SCHEDULED.rpartition('/')[2]}",
        schedule_dead_letter_arn="dead",
    )
    watched = outside.watch(dynamodb, "update_item", "scan", "batch_get_item")
    functions: Any = outside.watch(Functions(handlers), "invoke")
    return Here("dev", watched, Sqs(sqs, letters), functions, settings, CONTRACTS, clock)  # type: ignore[arg-type]


def resend(stage: Here, *ids: str, event_type: str = "mail", force: bool = False) -> list[Resent]:
    """One run of the command, as far as it comes: []: it was stopped."""
    with suppress(Stopped):
        asked = [Asked(id_, event_type) for id_ in ids]
        return Resending(stage, force=force).run(asked, resend_following.Following(), dry_run=False)
    return []


def reconcile(stage: Here, folder: Path, sleep: Callable[[float], None]) -> tuple[int, int] | None:
    """One run of the command: how many were put back, and how many could not be. None: it was stopped."""
    working = Reconciling.of_stage(stage, _patience(), folder, sleep, vouched=False)
    return _gone_through(working)


def reconcile_messages(stage: Here, *ids: str, event_type: str = "mail") -> tuple[int, int] | None:
    """The same of messages that are named."""
    return _gone_through(
        Reconciling.of_messages(stage, _patience(), [Asked(each, event_type) for each in ids])
    )


def _gone_through(working: Reconciling) -> tuple[int, int] | None:
    with suppress(Stopped):
        answer = working.go(Following(), dry_run=False)
        return sum(answer.put_back.values()), answer.failed
    return None


def _patience() -> Patience:
    longest = {"mail": max(VISIBILITY, LEASE), "fax": fax_world.VISIBILITY}
    return Patience(OLDER_THAN, longest, Schedule(fax_world.RETRY_SECONDS, 1, 900))
