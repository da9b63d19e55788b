"""A deployed stage: names, how full queues are, and what its stack has set for its functions.

The stage may be of another version than this command.
"""

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from mailroom import environment
from ops.screen import NotDeployed, Refused

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient
    from types_boto3_sqs import SQSClient

T = TypeVar("T", bound=Struct)

_COUNTS: Any = tuple(f"ApproximateNumberOfMessages{of}" for of in ("", "NotVisible", "Delayed"))


class Depth(Struct, frozen=True):
    """How many messages a queue holds: that wait, that somebody has received, that wait for their delay.
    All are SQS's own numbers, approximate ones."""

    visible: int
    in_flight: int
    delayed: int

    @property
    def all(self) -> int:
        """All of them."""
        return self.visible + self.in_flight + self.delayed


def prefix(stage: str) -> str:
    """What the names of all things of a stage begin with."""
    return f"mailroom-{stage}-"


def name(stage: str, part: str) -> str:
    """The name of a table, a queue or a function, such as mailroom-dev-ledger."""
    return f"{prefix(stage)}{part}"


def depth(sqs: "SQSClient", url: str) -> Depth:
    """How full a queue is."""
    found: dict[Any, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(_COUNTS)).get(
        "Attributes", {}
    )
    return Depth(*(int(found.get(each, 0)) for each in _COUNTS))


def function_variables(functions: "LambdaClient", name: str) -> dict[str, str]:
    """A function's environment, as it stands there: lists and maps are JSON. Raises NotDeployed where there
    is no such function."""
    try:
        reply = functions.get_function_configuration(FunctionName=name)
    except functions.exceptions.ResourceNotFoundException:
        raise NotDeployed(f"function {name}") from None
    return dict(reply.get("Environment", {}).get("Variables", {}))


def function_settings(functions: "LambdaClient", name: str, kind: type[T]) -> T:
    """A function's settings, as it reads them itself. Raises Refused where there is no such function, or
    where it is of a version that sets others."""
    try:
        return environment.read(kind, function_variables(functions, name))
    except msgspec.ValidationError as error:
        raise Refused(
            f"The settings of {name} are not as this version knows them: {error}. Deploy this version, or "
            "use the command of the version that is deployed."
        ) from None
