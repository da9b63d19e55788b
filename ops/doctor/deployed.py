"""What of a stage is deployed, as Lambda tells it."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from mailroom import environment

T = TypeVar("T", bound=Struct)


class Function(Struct, frozen=True):
    """A function: `name` is its short one."""

    name: str
    arn: str
    memory_mb: int
    environment: dict[str, str]

    def settings(self, kind: type[T]) -> T:
        """Its environment as one of `mailroom.environment`'s. Raises msgspec.ValidationError."""
        return environment.read(kind, self.environment)


class Mapped(Struct, frozen=True):
    """What hands records to a function. `source` is the short name of a queue, without a FIFO queue's
    ending, or of a table; `concurrency` is None where nothing bounds it."""

    id: str
    function: str
    source: str
    stream: bool
    state: str
    batch: int
    concurrency: int | None
    last_result: str


def json_of(text: str) -> Any:
    """A list or a map in an environment. Raises msgspec.ValidationError where it is no JSON."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise msgspec.ValidationError(f"not JSON: {error}") from None


def function_of(prefix: str, found: Mapping[str, Any]) -> Function:
    """One of list_functions' entries; `prefix` is what the stage's names begin with."""
    return Function(
        found["FunctionName"].removeprefix(prefix),
        found["FunctionArn"],
        found.get("MemorySize", 0),
        found.get("Environment", {}).get("Variables", {}),
    )


def mapped_of(prefix: str, found: Mapping[str, Any]) -> Mapped:
    """One of list_event_source_mappings' entries."""
    # arn:aws:lambda:region:account:function:name, and :alias at times
    function = found["FunctionArn"].split(":")[6].removeprefix(prefix)
    source = found.get("EventSourceArn", "")
    stream = ":dynamodb:" in source
    name = source.split("/")[1] if stream else source.rpartition(":")[2]
    return Mapped(
        found["UUID"],
        function,
        name.removeprefix(prefix).removesuffix(".fifo"),
        stream,
        found.get("State", ""),
        found.get("BatchSize", 0),
        found.get("ScalingConfig", {}).get("MaximumConcurrency"),
        found.get("LastProcessingResult", ""),
    )
