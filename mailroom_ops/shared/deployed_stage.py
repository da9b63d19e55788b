"""A deployed stage: the names of its resources, the depths of its queues, and the settings of its functions.

The stage may have been deployed by another version of Mailroom than this command.
"""

import time
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from mailroom import environment
from mailroom.aws.secret import CachedSecret
from mailroom.search.rows import Rows
from mailroom_ops.shared.refusals import NotDeployed, Refused

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config
    from types_boto3_lambda import LambdaClient
    from types_boto3_sqs import SQSClient

T = TypeVar("T", bound=Struct)

_FUNCTION_SECONDS = 930
"""Time-out of an invocation in seconds: Lambda's maximum for a function, 15 minutes, and a margin. A shorter
time-out would not stop the function."""
_COUNTS: Any = tuple(f"ApproximateNumberOfMessages{of}" for of in ("", "NotVisible", "Delayed"))


def aws_session() -> "boto3.Session":
    """Return a session with the environment's credentials and region. boto3 is imported only here: the import
    takes as long as the rest of a command's start, and `--help` does not need it."""
    import boto3

    return boto3.Session()


class SearchFacts(Struct, frozen=True, kw_only=True, rename="upper"):
    """Environment variables of the HTTP API's function that the search and the record of deeds read."""

    ledger_table: str = ""
    search_table: str = ""
    search_key_name: str = ""
    default_region: str = ""
    ledger_ttl_seconds: float = 0.0


class Depth(Struct, frozen=True):
    """Approximate numbers of messages in a queue, as SQS reports them."""

    visible: int
    """Messages that consumers can receive."""
    in_flight: int
    """Messages that a consumer has received and not yet deleted."""
    delayed: int
    """Messages whose delay has not ended yet."""

    @property
    def all(self) -> int:
        """Number of messages in all three states."""
        return self.visible + self.in_flight + self.delayed


def prefix(stage: str) -> str:
    """Return the prefix of the names of a stage's resources."""
    return f"mailroom-{stage}-"


def name(stage: str, part: str) -> str:
    """Return the name of a table, a queue or a function, such as mailroom-dev-ledger."""
    return f"{prefix(stage)}{part}"


def unprocessed_bucket(stage: str, account: str, region: str) -> str:
    """Return the name of the bucket for stream records that Lambda gave up on, because their function failed
    repeatedly."""
    return name(stage, f"unprocessed-{account}-{region}")


def queue_urls(sqs: "SQSClient", stage: str) -> dict[str, str]:
    """Return the URLs of a stage's queues by short name, such as fax-dlq.fifo."""
    pages = sqs.get_paginator("list_queues").paginate(
        QueueNamePrefix=prefix(stage), PaginationConfig={"PageSize": 1000}
    )
    urls = sorted(url for page in pages for url in page.get("QueueUrls", ()))
    return {url.rpartition("/")[2].removeprefix(prefix(stage)): url for url in urls}


def is_dead(queue: str) -> bool:
    """Return whether the queue with this short name is a dead-letter queue."""
    return queue.removesuffix(".fifo").endswith("-dlq")


def source_url(url: str) -> str:
    """Return the URL of the queue that a dead-letter queue belongs to. The names differ only by -dlq."""
    ending = ".fifo" if url.endswith(".fifo") else ""
    return url.removesuffix(f"-dlq{ending}") + ending


def depth(sqs: "SQSClient", url: str) -> Depth:
    """Return the depth of a queue."""
    attributes: dict[Any, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(_COUNTS)).get(
        "Attributes", {}
    )
    return Depth(*(int(attributes.get(count, 0)) for count in _COUNTS))


def function_variables(functions: "LambdaClient", name: str) -> dict[str, str]:
    """Return a deployed function's environment variables. Lists and maps in them are JSON. Raises NotDeployed
    if the function does not exist."""
    try:
        reply = functions.get_function_configuration(FunctionName=name)
    except functions.exceptions.ResourceNotFoundException:
        raise NotDeployed(f"function {name}") from None
    return dict(reply.get("Environment", {}).get("Variables", {}))


def function_settings(functions: "LambdaClient", name: str, kind: type[T]) -> T:
    """Read a function's settings from its environment variables, like the function itself. Raises Refused if
    the function does not exist, or if its version has other settings."""
    try:
        return environment.read(kind, function_variables(functions, name))
    except msgspec.ValidationError as error:
        raise Refused(
            f"The settings of {name} are those of another version: {error}. Deploy this version, or use the "
            "command of the version that is deployed."
        ) from None


def search_of(session: "boto3.Session", stage: str) -> tuple[SearchFacts, Rows | None]:
    """Return the settings of a stage's search, and the object that makes the keys of its rows, which is None
    for a stage without search. Raises NotDeployed."""
    facts = function_settings(session.client("lambda"), name(stage, "messages-api"), SearchFacts)
    if not facts.search_table:
        return facts, None
    return facts, Rows(CachedSecret(session.client("secretsmanager"), facts.search_key_name, time.time))


def config_for_puts(workers: int) -> "Config":
    """Return a configuration for many parallel puts. Retries are safe: a retried put finds the item that the
    first one wrote."""
    from botocore.config import Config

    return Config(
        connect_timeout=5,
        read_timeout=20,
        max_pool_connections=workers,
        retries={"mode": "standard", "total_max_attempts": 3},
        # Parameter validation and boto3's own user agent take a third of the CPU time of a put, and items are
        # validated before.
        parameter_validation=False,
        user_agent="mailroom",
    )


def config_for_invocations() -> "Config":
    """Return a configuration for invocations: they may take as long as a function may run, and are not
    retried by the SDK."""
    from botocore.config import Config

    return Config(read_timeout=_FUNCTION_SECONDS, retries={"total_max_attempts": 1})
