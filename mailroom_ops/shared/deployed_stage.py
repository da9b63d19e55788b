"""A deployed stage: names, clients, how full queues are, and what its stack has set for its functions.

The stage may be of another version than this command.
"""

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from mailroom import environment
from mailroom_ops.shared.screen import NotDeployed, Refused

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config
    from types_boto3_lambda import LambdaClient
    from types_boto3_sqs import SQSClient

T = TypeVar("T", bound=Struct)

_FUNCTION_SECONDS = 930
"""The longest that a function runs, and some: an invocation that was given up would go on all the same."""
_COUNTS: Any = tuple(f"ApproximateNumberOfMessages{of}" for of in ("", "NotVisible", "Delayed"))


def aws_session() -> "boto3.Session":
    """By the environment's credentials and region. boto3 is imported here: that takes as long as all else
    that a command needs to start, and `--help` or `plan` need none of it."""
    import boto3

    return boto3.Session()


class Depth(Struct, frozen=True):
    """How many messages a queue holds: that wait, that somebody has received, that wait for their delay.
    All are SQS's own numbers, approximate ones."""

    visible: int
    in_flight: int
    delayed: int

    @property
    def all(self) -> int:
        """Number of messages, in whatever state."""
        return self.visible + self.in_flight + self.delayed


def prefix(stage: str) -> str:
    """Prefix of the names of a stage's resources."""
    return f"mailroom-{stage}-"


def name(stage: str, part: str) -> str:
    """The name of a table, a queue or a function, such as mailroom-dev-ledger."""
    return f"{prefix(stage)}{part}"


def unprocessed_bucket(stage: str, account: str, region: str) -> str:
    """The name of the bucket where Lambda leaves what the streams gave up on."""
    return name(stage, f"unprocessed-{account}-{region}")


def caller(session: "boto3.Session") -> str:
    """Operator's identity: the ARN that STS has for the credentials, kept in what somebody starts, stops,
    sends again or erases."""
    return str(session.client("sts").get_caller_identity()["Arn"])


def queue_urls(sqs: "SQSClient", stage: str) -> dict[str, str]:
    """The URLs of a stage's queues by their short names, such as fax-dlq.fifo."""
    pages = sqs.get_paginator("list_queues").paginate(
        QueueNamePrefix=prefix(stage), PaginationConfig={"PageSize": 1000}
    )
    urls = sorted(url for page in pages for url in page.get("QueueUrls", ()))
    return {url.rpartition("/")[2].removeprefix(prefix(stage)): url for url in urls}


def is_dead(queue: str) -> bool:
    """Whether a queue of that short name is a dead-letter queue."""
    return queue.removesuffix(".fifo").endswith("-dlq")


def source_url(url: str) -> str:
    """The URL of the queue that a dead-letter queue belongs to: the names differ only by -dlq."""
    ending = ".fifo" if url.endswith(".fifo") else ""
    return url.removesuffix(f"-dlq{ending}") + ending


def depth(sqs: "SQSClient", url: str) -> Depth:
    """How full a queue is."""
    found: dict[Any, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(_COUNTS)).get(
        "Attributes", {}
    )
    return Depth(*(int(found.get(each, 0)) for each in _COUNTS))


def function_variables(functions: "LambdaClient", name: str) -> dict[str, str]:
    """Return a deployed function's environment: lists and maps are JSON. Raises NotDeployed if there
    is no such function."""
    try:
        reply = functions.get_function_configuration(FunctionName=name)
    except functions.exceptions.ResourceNotFoundException:
        raise NotDeployed(f"function {name}") from None
    return dict(reply.get("Environment", {}).get("Variables", {}))


def function_settings(functions: "LambdaClient", name: str, kind: type[T]) -> T:
    """A function's settings, as it reads them itself. Raises Refused if there is no such function, or
    where it is of a version that sets others."""
    try:
        return environment.read(kind, function_variables(functions, name))
    except msgspec.ValidationError as error:
        raise Refused(
            f"The settings of {name} are not as this version knows them: {error}. Deploy this version, or "
            "use the command of the version that is deployed."
        ) from None


def config_for_puts(workers: int) -> "Config":
    """For many puts at once. A retried put finds the item that the first one wrote."""
    from botocore.config import Config

    return Config(
        connect_timeout=5,
        read_timeout=20,
        max_pool_connections=workers,
        retries={"mode": "standard", "total_max_attempts": 3},
        # Both are a third of what a put costs this machine, and items are checked before.
        parameter_validation=False,
        user_agent="mailroom",
    )


def config_for_invocations() -> "Config":
    """For invocations that take as long as a function may, and are not repeated in secret."""
    from botocore.config import Config

    return Config(read_timeout=_FUNCTION_SECONDS, retries={"total_max_attempts": 1})
