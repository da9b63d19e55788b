"""Dead-letter queues and the function that looks through them, in process."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mailroom.dead_letters.inspector import DeadLetterInspector
from mailroom.ledger.ledger import Ledger
from tests.support.unit.events import plenty
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import LEASE, LEDGER, TTL, Aws, FakeClock
from tests.support.unjudged import others

QUEUES = ("mail-dlq", "mail-bulk-dlq", "collect-dlq", "webhook-dlq", "feedback-dlq", "fax-dlq.fifo")
Call = Callable[..., Any]


@dataclass
class Office:
    """The dead-letter queues of a stage. `meddle` changes calls of the function's clients, by their names."""

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
        """The ledger of a worker."""
        return Ledger(self.aws.dynamodb, LEDGER, lease=LEASE, ttl=TTL, clock=self.clock)

    def look(self, *queues: str, remaining: Callable[[], int] = plenty) -> dict[str, int]:
        """Make one pass of a new process, over all queues or those. Returns the number of dead letters seen
        in each queue that has any."""
        database: Any = self.dynamodb
        sqs: Any = self.sqs
        inspector = DeadLetterInspector(
            {queue: self.urls[queue] for queue in queues or self.urls},
            Ledger(database, LEDGER, lease=0, ttl=TTL, clock=self.clock),
            sqs,
            long_poll=0,
        )
        return {queue: seen for queue, seen in inspector.handle(remaining).items() if seen}

    def put(self, queue: str, *bodies: Any, **arguments: Any) -> None:
        """Put dead letters into a queue, as SQS moves them there."""
        for at, body in enumerate(bodies):
            text = body if isinstance(body, str) else json.dumps(body)
            order = _order(queue, at)
            self.aws.sqs.send_message(QueueUrl=self.urls[queue], MessageBody=text, **order, **arguments)

    def put_claimed(self, queue: str, count: int) -> None:
        """Put dead letters whose messages the ledger knows."""
        for number in range(count):
            id_ = f"{queue}-{number}"
            self.aws.put(LEDGER, id=id_, event_type="mail", status="sending")
            self.put(queue, {"id": id_, "event_type": "mail"})

    def marked(self, queue: str) -> int:
        """Return the number of messages of `put_claimed` that the ledger has marked as dead letters."""
        items = self.aws.dynamodb.scan(TableName=LEDGER)["Items"]
        return sum("dead_lettered_at" in item for item in items if item["id"]["S"].startswith(f"{queue}-"))

    def visible(self, queue: str) -> int:
        """Return the number of dead letters that everybody could receive."""
        name: Any = "ApproximateNumberOfMessages"
        with others():
            response = self.aws.sqs.get_queue_attributes(QueueUrl=self.urls[queue], AttributeNames=[name])
        return int(response["Attributes"][name])


def _order(queue: str, at: int) -> dict[str, Any]:
    fifo = queue.endswith(".fifo")
    return {"MessageGroupId": f"+1617555123{at}", "MessageDeduplicationId": str(at)} if fifo else {}


def open_office(aws: Aws, clock: FakeClock) -> Office:
    """Create the empty queues."""
    urls = {}
    for name in QUEUES:
        fifo: Any = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        reply = aws.sqs.create_queue(QueueName=f"mailroom-test-{name}", Attributes=fifo)
        urls[name] = reply["QueueUrl"]
    return Office(aws, clock, urls)
