"""What a worker is to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stacks.constructs.grants import Grant
from stacks.settings.campaigns import Network
from stacks.settings.queues import QueueRules
from stacks.settings.sections import Function, Polling


@dataclass(frozen=True)
class Work:
    """Which queue a worker reads, what runs for it, and the numbers of both."""

    queue: str
    """Short name, such as mail-bulk; a FIFO queue's is without the ending that AWS wants."""
    function: str
    """Short name, such as send-mail-bulk."""
    handler: str
    """The file in lambdas/, without its ending."""
    limits: Function
    polling: Polling
    rules: QueueRules
    grants: Sequence[Grant]
    environment: Mapping[str, str]
    templates: str = ""
    """The folder in templates/ that the function takes along; "" for none."""
    extras: Mapping[str, bytes] = field(default_factory=dict)
    """Further files of the function's bundle, by their paths in it."""
    recursive: bool = False
    """Whether the function feeds its own queue."""
    network: Network | None = None
    """Where in a VPC the function stands; None: in none."""
    channel: str = ""
    """The event type whose messages the function sends; "": it sends none."""
    kept_back_seconds: float = 0
    """How much of its time-out an invocation keeps to finish in; until then it may run by design."""
    fifo: bool = False
    """In order within a message group, and one of a group at a time."""

    @property
    def queue_name(self) -> str:
        """The queue's name, still without the stage's."""
        return f"{self.queue}.fifo" if self.fifo else self.queue

    @property
    def dead_letter_name(self) -> str:
        """The dead-letter queue's: a FIFO queue's has to be FIFO as well."""
        return f"{self.queue}-dlq.fifo" if self.fifo else f"{self.queue}-dlq"
