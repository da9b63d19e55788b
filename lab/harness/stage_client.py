"""Client of a running stage for the work of producers, operators and providers. Tests of the pipeline use it
too."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from boto3.dynamodb.types import TypeSerializer

from lab.harness.expected import Item, Key
from mailroom.aws.dynamo_values import plain
from mailroom.recipients.choices import Suppressions
from mailroom_local.aws import ACCOUNT, REGION, STAGE, LocalSession, fetch, patient
from mailroom_local.stage.workspace import LEDGER, MAILBOX, State
from mailroom_ops.shared.deployed_stage import depth

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_lambda import LambdaClient
    from types_boto3_s3 import S3Client
    from types_boto3_secretsmanager import SecretsManagerClient
    from types_boto3_sqs import SQSClient

UNPROCESSED = f"mailroom-{STAGE}-unprocessed-{ACCOUNT}-{REGION}"
BUDGETS = f"mailroom-{STAGE}-budgets"
SUPPRESSIONS = f"mailroom-{STAGE}-suppressions"
DEAD_LETTERS = ("-dlq", "-dlq.fifo")

_serialize = TypeSerializer().serialize


def typed(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item in DynamoDB's own form."""
    return {name: _serialize(value) for name, value in item.items()}


class StageClient:
    """AWS clients of a running stage, and methods that use them."""

    def __init__(self, running: State) -> None:
        session, url = LocalSession(), running.endpoints.aws
        self.running = running
        self.dynamodb: DynamoDBClient = session.client("dynamodb", endpoint_url=url, config=patient())
        self.sqs: SQSClient = session.client("sqs", endpoint_url=url, config=patient())
        self.s3: S3Client = session.client("s3", endpoint_url=url, config=patient())
        self.functions: LambdaClient = session.client("lambda", endpoint_url=url, config=patient())
        self.secrets: SecretsManagerClient = session.client(
            "secretsmanager", endpoint_url=url, config=patient()
        )
        self._accepted: list[Item] = []

    def output(self, name: str) -> str:
        return self.running.outputs[name]

    def variables(self, function: str) -> dict[str, str]:
        return self.functions.get_function_configuration(FunctionName=function)["Environment"]["Variables"]

    def close_day(self, channel: str, until: float) -> None:
        """Stop the bulk messages of a channel until `until` (epoch seconds), as if the provider's quota were
        used up."""
        self.dynamodb.update_item(
            TableName=BUDGETS,
            Key={"name": {"S": channel}},
            UpdateExpression="SET closed_until = :until",
            ExpressionAttributeValues={":until": {"N": str(int(until))}},
        )

    def open_day(self, channel: str) -> None:
        """Allow bulk messages of a channel again."""
        self.dynamodb.update_item(
            TableName=BUDGETS, Key={"name": {"S": channel}}, UpdateExpression="REMOVE closed_until"
        )

    def stop_release(self) -> None:
        """Prevent the function `release` from running, so that waiting messages continue to wait."""
        name = self.output("ReleaseFunctionName")
        self.functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)

    def start_release(self) -> None:
        """Allow the function `release` to run again."""
        self.functions.delete_function_concurrency(FunctionName=self.output("ReleaseFunctionName"))

    # Methods that write like a producer.

    def put(self, *items: Item) -> None:
        """Put items into the mailbox, one by one like a producer. Existing items are replaced."""
        for item in items:
            self.dynamodb.put_item(TableName=MAILBOX, Item=typed(item))

    def delete(self, id_: str, event_type: str = "mail") -> None:
        self.dynamodb.delete_item(TableName=MAILBOX, Key=typed({"id": id_, "event_type": event_type}))

    def queue_fax(self, body: str, group: str) -> None:
        """Send a message to the fax queue directly, without a deduplication id, like another application."""
        self.sqs.send_message(QueueUrl=self.output("FaxQueueUrl"), MessageBody=body, MessageGroupId=group)

    # Methods for the ledger and the suppression list.

    def ledger_items(self) -> dict[Key, Item]:
        """Return the ledger's items by key."""
        rows = [plain(image) for image in self.scan(LEDGER, ConsistentRead=True)]
        return {(row["id"], row["event_type"]): row for row in rows}

    def ended(self, keys: Sequence[Key]) -> set[Key]:
        """Return the keys of the messages that have ended, among at most 100 `keys`. A scan would take the
        emulator twenty times as much time."""
        requested = [typed({"id": id_, "event_type": event_type}) for id_, event_type in keys]
        answer = self.dynamodb.batch_get_item(
            RequestItems={LEDGER: {"Keys": requested, "ProjectionExpression": "id, event_type, completedAt"}}
        )
        rows = answer["Responses"][LEDGER]
        return {(row["id"]["S"], row["event_type"]["S"]) for row in rows if "completedAt" in row}

    def suppressed(self) -> dict[tuple[str, str], str]:
        """Return the suppression list: reasons by recipient and channel."""
        listed = Suppressions(self.dynamodb, SUPPRESSIONS).listed()
        return {(entry.recipient, entry.channel): entry.reason for entry in listed}

    def scan(self, table: str, **options: Any) -> Iterator[dict[str, Any]]:
        """Yield the items of a table, in DynamoDB's own form."""
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=table, **options)
        return (image for page in pages for image in page["Items"])

    # Methods for the providers' simulators.

    def accepted(self) -> list[Item]:
        """Return the messages that the providers of mail, SMS, push and fax accepted, newest last."""
        self._accepted += fetch(f"{self.running.endpoints.inbox}?after={len(self._accepted)}")
        return list(self._accepted)

    def faxes(self) -> list[Item]:
        """Return the faxes that the providers accepted, with their end."""
        return list(fetch(f"{self.running.endpoints.providers}/faxes"))

    def requests(self) -> list[Item]:
        """Return the requests that the webhook receiver got, oldest first."""
        return list(fetch(self.running.endpoints.received))

    def events(self) -> Item:
        """Return the number of waiting reports of each provider, and whether they are paused."""
        return dict(fetch(f"{self.running.endpoints.providers}/events"))

    def pause_events(self) -> None:
        """Stop the providers' events and callbacks until they are resumed."""
        fetch(f"{self.running.endpoints.providers}/events/pause", "POST")

    def resume_events(self) -> None:
        """Resume the providers' events and callbacks."""
        fetch(f"{self.running.endpoints.providers}/events/resume", "POST")

    def disorder_events(self, spread_seconds: float, doubled: float) -> None:
        """Deliver each report about a message at a random time within `spread_seconds`, and the share
        `doubled` of them twice."""
        body = {"spread_seconds": spread_seconds, "doubled": doubled}
        fetch(f"{self.running.endpoints.providers}/events/disorder", "POST", body)

    def trouble(self, provider: str, shares: Mapping[str, float]) -> None:
        """Set the faults of a provider; without shares it has none. The names of the faults are in
        mailroom_local/providers/trouble.py."""
        body = {"provider": provider, "shares": dict(shares)}
        fetch(f"{self.running.endpoints.providers}/trouble", "POST", body)

    def troubles(self) -> dict[str, dict[str, int]]:
        """Return how often each fault has occurred, by provider."""
        return dict(fetch(f"{self.running.endpoints.providers}/trouble")["had"])

    # Methods that return what is left in queues and tables.

    def depth(self, url: str) -> int:
        """Return the number of messages in a queue, given by its URL: visible, in flight and delayed."""
        return depth(self.sqs, url).all

    def depths(self, *, dead: bool = False) -> dict[str, int]:
        """Return the number of messages in each queue, or in each dead-letter queue."""
        urls = [url for url in self._queues if url.endswith(DEAD_LETTERS) == dead]
        return {url.rpartition("/")[2]: self.depth(url) for url in urls}

    @cached_property
    def _queues(self) -> list[str]:
        return self.sqs.list_queues(QueueNamePrefix=f"mailroom-{STAGE}-").get("QueueUrls", [])

    def given_up(self) -> int:
        """Return the number of objects in the bucket of records on which streams gave up."""
        return int(self.s3.list_objects_v2(Bucket=UNPROCESSED).get("KeyCount", 0))

    def held(self) -> str:
        """Return a sentence about the messages and records that are left in the pipeline."""
        waiting = {name: depth for name, depth in (self.depths() | self.depths(dead=True)).items() if depth}
        return f"Queues: {waiting or 'all empty'}; objects that streams gave up on: {self.given_up()}."
