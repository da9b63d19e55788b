"""Dead-letter queues and the function that looks through them, in process."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mailroom.aws.dynamo_values import plain
from mailroom.dead_letters.passes import DeadLetterInspector, DeadLetterLog
from mailroom.ledger.ledger import Ledger
from tests.support.tables import create_table
from tests.support.unit.events import plenty
from tests.support.unit.fakes import Meddler
from tests.support.unit.rights import others
from tests.support.unit.shared import LEASE, LEDGER, TTL, Aws, FakeClock

TABLE = "mailroom-test-dead-letters"
QUEUES = ("mail-dlq", "mail-bulk-dlq", "collect-dlq", "webhook-dlq", "feedback-dlq", "fax-dlq.fifo")
Call = Callable[..., Any]


@dataclass
class Office:
    """One stage's dead-letter queues. `meddle` changes a client's calls, by their names."""

    aws: Aws
    clock: FakeClock
    urls: dict[str, str]
    sqs: Meddler = field(init=False)
    dynamodb: Meddler = field(init=False)

    def __post_init__(self) -> None:
        self.meddle()

    def meddle(self, **changes: Call) -> None:
        self.sqs = Meddler(self.aws.sqs, **changes)
        self.dynamodb = Meddler(self.aws.dynamodb, **changes)

    @property
    def ledger(self) -> Ledger:
        """A worker's, whose calls nobody watches."""
        return Ledger(self.aws.dynamodb, LEDGER, lease=LEASE, ttl=TTL, clock=self.clock)

    def inspector(self, *queues: str) -> DeadLetterInspector:
        """As a cold start makes it; `queues`: of a stage that has no others."""
        database: Any = self.dynamodb
        sqs: Any = self.sqs
        return DeadLetterInspector(
            {each: self.urls[each] for each in queues or self.urls},
            ledger=Ledger(database, LEDGER, lease=0, ttl=TTL, clock=self.clock),
            log=DeadLetterLog(database, TABLE, self.clock),
            sqs=sqs,
            long_poll=0,
        )

    def look(self, *queues: str, remaining: Callable[[], int] = plenty) -> dict[str, Any]:
        """One pass of a new process: what it saw, of the queues that have dead letters."""
        found = self.inspector(*queues).handle(remaining)
        return {queue: counts for queue, counts in found.items() if counts["seen"]}

    def put(self, queue: str, *bodies: Any, **arguments: Any) -> None:
        """Dead letters, as SQS moves them there."""
        for at, body in enumerate(bodies):
            text = body if isinstance(body, str) else json.dumps(body)
            order = _order(queue, at)
            self.aws.sqs.send_message(QueueUrl=self.urls[queue], MessageBody=text, **order, **arguments)

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of the table of dead letters."""
        return [plain(row) for row in self.aws.dynamodb.scan(TableName=TABLE)["Items"]]

    def visible(self, queue: str) -> int:
        """How many letters anybody could receive now."""
        name: Any = "ApproximateNumberOfMessages"
        url = self.urls[queue]
        with others():
            found = self.aws.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
        return int(found["Attributes"][name])


def _order(queue: str, at: int) -> dict[str, Any]:
    fifo = queue.endswith(".fifo")
    return {"MessageGroupId": f"+1617555123{at}", "MessageDeduplicationId": str(at)} if fifo else {}


def open_office(aws: Aws, clock: FakeClock) -> Office:
    """The queues and the table, empty; made once for all tests of a module."""
    urls = {}
    for name in QUEUES:
        fifo: Any = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        reply = aws.sqs.create_queue(QueueName=f"mailroom-test-{name}", Attributes=fifo)
        urls[name] = reply["QueueUrl"]
    if TABLE not in aws.dynamodb.list_tables()["TableNames"]:
        create_table(aws.dynamodb, TABLE, "message_id", None)
    return Office(aws, clock, urls)
