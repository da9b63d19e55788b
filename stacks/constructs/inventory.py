"""What a stage has that is watched. What is made puts itself here, so the dashboard cannot forget it."""

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from constructs import IConstruct


@dataclass(frozen=True)
class WatchedQueue:
    """A queue with its dead-letter queue. Names without "short" are whole, the stage's included."""

    short: str
    """Such as mail-bulk, fax."""
    name: str
    dead_letters: str
    function: str
    """The short name of the function that reads it."""
    channel: str
    """The event type whose messages that function sends; "": it sends none."""
    waiting_seconds: int
    """From this age of the oldest message on, an alarm rings."""


@dataclass(frozen=True)
class WatchedFunction:
    """A function."""

    short: str
    name: str
    timeout_seconds: int
    slow_seconds: float
    """From this duration on, an alarm rings."""


@dataclass(frozen=True)
class WatchedApi:
    """An HTTP API; its metrics go by an id that only its own stack knows."""

    name: str
    log_group: str
    """Where each request has its line."""


@dataclass(frozen=True)
class WatchedAlarm:
    """An alarm."""

    name: str
    kind: str
    """Such as dlq-not-empty: the end of its name, and what its page is called."""


@dataclass
class Inventory:
    """Everything of one app."""

    queues: list[WatchedQueue] = field(default_factory=list)
    functions: list[WatchedFunction] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    """Short names of the functions that read a table's stream."""
    apis: list[WatchedApi] = field(default_factory=list)
    alarms: list[WatchedAlarm] = field(default_factory=list)


# Not found by walking the tree: jsii hands out a construct that Python no longer holds as one of its base
# class, which would then be missing without a word.
_inventories: WeakKeyDictionary[IConstruct, Inventory] = WeakKeyDictionary()


def inventory(scope: IConstruct) -> Inventory:
    """The inventory of the app that `scope` belongs to."""
    return _inventories.setdefault(scope.node.root, Inventory())
