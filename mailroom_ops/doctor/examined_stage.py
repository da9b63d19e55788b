"""The stage that `doctor` examines: its deployed resources, and its settings in cdk.json."""

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from email.utils import parseaddr
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import ClientError
from msgspec import Struct

from mailroom.budget import limit_of
from mailroom.clock import Clock
from mailroom_ops.costs.configured_lanes import read_settings
from mailroom_ops.doctor.report import CheckFinding, failed, warning
from mailroom_ops.shared.deployed_stage import prefix, queue_urls
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.settings import Settings

if TYPE_CHECKING:
    import boto3

READ_SECONDS = 10
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_CONFIG = Config(
    connect_timeout=3,
    read_timeout=READ_SECONDS,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=20,
    user_agent="mailroom-doctor",
)
_SENDER = re.compile(r"mailroom-([a-z][a-z0-9]*)-send-")
_MISSING = {"NotFoundException", "NotFound", "ResourceNotFoundException", "NoSuchBucket"}
"""Error codes of AWS for a resource that does not exist."""


Variables = dict[str, str]
"""Environment variables of a function."""


def settings_or_trouble(stage: str) -> Settings | str:
    """Return a stage's settings in cdk.json, or the reason why they cannot be read: a stage can also be
    examined from a machine without its cdk.json."""
    try:
        return read_settings(stage)
    except SettingsError as error:
        return f"{error}"
    except (OSError, ValueError, KeyError) as error:
        return f"cdk.json could not be read: {type(error).__name__}."


class EventSource(Struct, frozen=True):
    """Event source mapping of a function."""

    id: str
    function: str
    source: str
    """Short name of a table, or of a queue without `.fifo`."""
    stream: bool
    state: str
    concurrency: int | None
    """MaximumConcurrency of the mapping; None if it is unlimited."""
    last_result: str


class ExaminedStage:
    """Stage in an account and region. The checks share it in their threads, and its properties cache the
    responses."""

    def __init__(
        self,
        session: "boto3.Session",
        name: str,
        settings: Settings | str = "No settings were read.",
        clock: Clock = time.time,
    ) -> None:
        """Make a stage from its settings, or the reason why they could not be read, without a request to
        AWS."""
        self.name = name
        self.settings = settings if isinstance(settings, Settings) else None
        self.trouble = f"{settings}" if self.settings is None else ""
        self.clock = clock
        self.prefix = prefix(name)
        self._session = session
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        sts = self.client("sts").meta
        self.region = str(sts.region_name)
        self.local = urlsplit(str(sts.endpoint_url)).hostname in _LOOPBACK

    @cached_property
    def _caller(self) -> dict[str, str]:
        identity: dict[str, str] = self.client("sts").get_caller_identity()
        return identity

    @property
    def account(self) -> str:
        """Account of the credentials. The first use makes a request to AWS, and raises botocore's errors."""
        return self._caller["Account"]

    @property
    def deploy(self) -> str:
        """Command that deploys the stage."""
        return "mailroom down; mailroom up" if self.local else f"mailroom deploy --stage {self.name}"

    @property
    def protected(self) -> bool:
        """Whether the settings protect the stage from deletion, as in production."""
        return self.settings is not None and self.settings.deployment.deletion_protection

    @property
    def failed_if_protected(self) -> Callable[..., CheckFinding]:
        """Function `failed` if the stage is protected, or else `warning`, because other stages are for
        tests."""
        return failed if self.protected else warning

    def client(self, service: str) -> Any:
        """Return the client of a service. Clients may be shared by threads, sessions may not."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._session.client(
                    service,  # type: ignore[call-overload] # boto3's overloads take literal names only
                    config=_CONFIG,
                )
            return self._clients[service]

    def call(self, service: str, operation: str, **arguments: Any) -> dict[str, Any] | None:
        """Call AWS. Return the response, or None if the resource does not exist. Raises botocore's other
        errors."""
        try:
            answer: dict[str, Any] = getattr(self.client(service), operation)(**arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                return None
            raise
        return answer

    def arn(self, service: str, resource: str) -> str:
        partition = self._caller["Arn"].split(":")[1]  # such as aws or aws-us-gov
        return f"arn:{partition}:{service}:{self.region}:{self.account}:{resource}"

    def pages(self, service: str, operation: str, key: str, **arguments: Any) -> list[Any]:
        pages = self.client(service).get_paginator(operation).paginate(**arguments)
        return [entry for page in pages for entry in page.get(key, [])]

    @cached_property
    def _every_function(self) -> dict[str, Variables]:
        functions = self.pages("lambda", "list_functions", "Functions")
        return {
            function["FunctionName"]: function.get("Environment", {}).get("Variables", {})
            for function in functions
        }

    @cached_property
    def functions(self) -> dict[str, Variables]:
        """Environment variables of the stage's functions, by short name of the function."""
        functions = self._every_function.items()
        return {
            name[len(self.prefix) :]: variables
            for name, variables in functions
            if name.startswith(self.prefix)
        }

    def days(self, channel: str, variable: str = "") -> dict[str, int]:
        """Return today's limits of recipients, by stage, for the stages in this account and region that have
        a daily limit of the channel. With `variable`, only senders count that have this environment
        variable."""
        limits = {}
        for function, variables in self._every_function.items():
            name = _SENDER.match(function)
            if name and _sends(variables, channel, variable) and "PER_DAY" in variables:
                limits[name[1]] = limit_of(json.loads(variables["PER_DAY"]), self.clock())
        return limits

    @cached_property
    def sources(self) -> list[EventSource]:
        mappings = self.pages("lambda", "list_event_source_mappings", "EventSourceMappings")
        ours = f":function:{self.prefix}"
        return [self._source(mapping) for mapping in mappings if ours in mapping["FunctionArn"]]

    def _source(self, mapping: Mapping[str, Any]) -> EventSource:
        # arn:aws:lambda:region:account:function:name
        function = mapping["FunctionArn"].split(":")[6].removeprefix(self.prefix)
        source = mapping.get("EventSourceArn", "")
        stream = ":dynamodb:" in source
        name = source.split("/")[1] if stream else source.rpartition(":")[2]
        return EventSource(
            mapping["UUID"],
            function,
            name.removeprefix(self.prefix).removesuffix(".fifo"),
            stream,
            mapping.get("State", ""),
            mapping.get("ScalingConfig", {}).get("MaximumConcurrency"),
            mapping.get("LastProcessingResult", ""),
        )

    @cached_property
    def queues(self) -> dict[str, str]:
        """URLs of the stage's queues, by short name, such as fax-dlq.fifo."""
        return queue_urls(self.client("sqs"), self.name)

    @cached_property
    def alarms(self) -> list[dict[str, Any]]:
        """The stage's alarms, as CloudWatch describes them."""
        return self.pages("cloudwatch", "describe_alarms", "MetricAlarms", AlarmNamePrefix=self.prefix)

    @property
    def mail_addresses(self) -> list[str]:
        """Sender addresses of the stage's mails."""
        senders = (variables.get("MAIL_SENDERS", "[]") for variables in self.senders("mail").values())
        addresses = (parseaddr(sender)[1] for text in senders for sender in json.loads(text))
        return list(dict.fromkeys(addresses))

    def senders(self, channel: str, variable: str = "") -> dict[str, Variables]:
        """Return the environment variables of a channel's senders by short name; each lane has a sender. With
        `variable`, return only senders that have this environment variable."""
        functions = self.functions.items()
        return {name: variables for name, variables in functions if _sends(variables, channel, variable)}

    def sender(self, channel: str, variable: str) -> Variables:
        """Return the environment variables of one of the senders that have `variable`: the lanes of a
        provider have the same account."""
        return next(iter(self.senders(channel, variable).values()))


def _sends(variables: Variables, channel: str, variable: str) -> bool:
    return variables.get("CHANNEL") == channel and (not variable or bool(variables.get(variable)))
