"""Access to a deployed stage for commands that repair messages: AWS clients, the settings of the function
`dispatch`, and reads of the mailbox and the ledger."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from mailroom.aws.dynamo_values import plain, string
from mailroom.channels.contracts import contracts_of
from mailroom.clock import Clock
from mailroom.environment import DispatchSettings
from mailroom.ledger.batch import items_of
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Key, Message
from mailroom_ops.shared.deeds import Deeds
from mailroom_ops.shared.deployed_stage import config_for_invocations, function_settings
from mailroom_ops.shared.deployed_stage import name as stage_name
from mailroom_ops.shared.selected_messages import MessageRef

if TYPE_CHECKING:
    import boto3
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_lambda import LambdaClient
    from types_boto3_sqs import SQSClient

    from mailroom.content.versions import CurrentVersions


Item = Mapping[str, Any]
Table = Literal["mailbox", "ledger"]
Route = Literal["dispatch", "outcomes", "queue"]
"""Way to requeue a message: by the function `dispatch` or `outcomes`, or directly into its queue. See
Requeuer."""


class StoredMessage(Struct, frozen=True):
    """Items of a message in the ledger and the mailbox, each None if missing."""

    key: Key
    ledger: Item | None
    mailbox: Item | None


def awaits_queuing(item: Item) -> bool:
    """Return whether a message was reopened, or prepared for a later start of its campaign's run, and its new
    attempt has not started, so that its queue message may be missing. Always false for faxes, which the
    function `outcomes` queues after the ledger's change."""
    return item.get("status") == "retrying" and "startedAt" not in item and item["event_type"] != "fax"


@dataclass(frozen=True)
class DeployedStage:
    """Deployed stage: AWS clients, the settings of its function `dispatch`, and the contracts of its
    channels."""

    stage: str
    dynamodb: "DynamoDBClient"
    sqs: "SQSClient"
    functions: "LambdaClient"
    dispatch: DispatchSettings
    contracts: Mapping[str, type[Message]]
    deeds: Deeds
    """Record of what operators do."""
    clock: Clock = time.time
    versions: "CurrentVersions | None" = None
    """Current template versions; None for a stage without published templates."""

    @classmethod
    def of(cls, session: "boto3.Session", stage: str) -> "DeployedStage":
        """Return the stage in the session's account. Raises Refused if the stage is not deployed, or if its
        version has other settings."""
        functions = session.client("lambda", config=config_for_invocations())
        dispatch = function_settings(functions, stage_name(stage, "dispatch"), DispatchSettings)
        contracts = contracts_of(dispatch.default_region)
        dynamodb, sqs = session.client("dynamodb"), session.client("sqs")
        # Imported here, because what only reads the stage does not need it.
        from mailroom.content.versions import CurrentVersions

        bucket = dispatch.templates_bucket
        versions = CurrentVersions(session.client("s3"), bucket) if bucket else None
        deeds = Deeds(session, stage)
        return cls(stage, dynamodb, sqs, functions, dispatch, contracts, deeds, versions=versions)

    def name(self, short: str) -> str:
        """Return the physical name of a table, a queue or a function."""
        return stage_name(self.stage, short)

    def ledger(self, new_token: Callable[[], str]) -> Ledger:
        """Return the ledger, for callers that do not claim messages."""
        ttl = self.dispatch.ledger_ttl_seconds
        return Ledger(
            self.dynamodb, self.name("ledger"), lease=0, ttl=ttl, clock=self.clock, new_token=new_token
        )

    def items(self, table: Table, ref: MessageRef | Key) -> list[dict[str, Any]]:
        """Return a table's items with the id of `ref`, of all channels if `ref` is without a channel."""
        condition, values = "id = :id", {":id": string(ref.id)}
        if ref.event_type:
            condition += " AND event_type = :event_type"
            values[":event_type"] = string(ref.event_type)
        reply = self.dynamodb.query(
            TableName=self.name(table),
            KeyConditionExpression=condition,
            ExpressionAttributeValues=values,
            ConsistentRead=True,
        )
        return [plain(item) for item in reply["Items"]]

    def written(self, key: Key, token: str) -> dict[str, Any] | None:
        """Return the ledger's item if it has this claim token, which shows that our write succeeded: if a
        response is lost, the SDK repeats the write, and the repeated one is refused."""
        return next((item for item in self.items("ledger", key) if item.get("claim_token") == token), None)

    def read(self, table: Table, keys: Iterable[Key]) -> dict[Key, dict[str, Any]]:
        """Return the existing items of keys. Raises UnprocessedKeys."""
        return items_of(self.dynamodb, self.name(table), keys)
