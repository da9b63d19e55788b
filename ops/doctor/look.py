"""The stage that is looked at: clients, and what several checks ask for, asked once."""

import threading
import time
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

from mailroom.clock import Clock
from ops.doctor.deployed import Function, Mapped, function_of, mapped_of
from ops.doctor.written import Written
from ops.stage import prefix

CONNECT_SECONDS, READ_SECONDS = 3, 10
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


class Look:
    """One stage in one account and region. Checks share it, each in a thread of its own."""

    def __init__(
        self,
        session: boto3.Session,
        stage: str,
        written: Written | None = None,
        clock: Clock = time.time,
    ) -> None:
        """`written` is what cdk.json says of the stage. Asks AWS nothing."""
        self.stage = stage
        self.written = written or Written()
        self.clock = clock
        self._session = session
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.region = str(self.client("sts").meta.region_name)
        self.local = urlsplit(self.endpoint).hostname in _LOOPBACK

    @cached_property
    def _caller(self) -> dict[str, str]:
        found: dict[str, str] = self.client("sts").get_caller_identity()
        return found

    @property
    def account(self) -> str:
        """Whose credentials these are. The first time AWS is asked: raises botocore's errors."""
        return self._caller["Account"]

    @property
    def partition(self) -> str:
        """What ARNs there begin with, such as aws or aws-us-gov."""
        return self._caller["Arn"].split(":")[1]

    @property
    def prefix(self) -> str:
        """What the stage's physical names begin with."""
        return prefix(self.stage)

    @property
    def endpoint(self) -> str:
        """Where AWS is."""
        return str(self.client("sts").meta.endpoint_url)

    @property
    def deploy(self) -> str:
        """What deploys the stage as it is written. The Makefile has the version of the CDK's command line."""
        return "make down up" if self.local else f"make deploy STAGE={self.stage}"

    @property
    def protected(self) -> bool:
        """Whether the settings protect the stage as they do in production."""
        settings = self.written.settings
        return settings is not None and settings.deployment.deletion_protection

    def client(self, service: str) -> Any:
        """The client of a service. Sessions are not made for threads, clients are."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._session.client(
                    service,  # type: ignore[call-overload] # it wants the name of one service, not any
                    config=_PATIENT,
                )
            return self._clients[service]

    def arn(self, service: str, resource: str) -> str:
        """The ARN of a resource of this account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"

    def pages(self, service: str, operation: str, key: str, **arguments: Any) -> list[Any]:
        """Everything that a list call has, page by page."""
        pages = self.client(service).get_paginator(operation).paginate(**arguments)
        return [each for page in pages for each in page.get(key, [])]

    @cached_property
    def functions(self) -> dict[str, Function]:
        """The stage's functions by their short names."""
        found = self.pages("lambda", "list_functions", "Functions")
        ours = (each for each in found if each["FunctionName"].startswith(self.prefix))
        return {each.name: each for each in (function_of(self.prefix, one) for one in ours)}

    @cached_property
    def mappings(self) -> list[Mapped]:
        """What hands records to them."""
        found = self.pages("lambda", "list_event_source_mappings", "EventSourceMappings")
        ours = f":function:{self.prefix}"
        return [mapped_of(self.prefix, each) for each in found if ours in each["FunctionArn"]]

    @cached_property
    def queues(self) -> dict[str, str]:
        """The URLs of the stage's queues by their short names, such as fax-dlq.fifo."""
        urls = self.pages("sqs", "list_queues", "QueueUrls", QueueNamePrefix=self.prefix)
        return {url.rpartition("/")[2].removeprefix(self.prefix): url for url in sorted(urls)}

    @cached_property
    def alarms(self) -> list[dict[str, Any]]:
        """The stage's alarms, as CloudWatch describes them."""
        return self.pages("cloudwatch", "describe_alarms", "MetricAlarms", AlarmNamePrefix=self.prefix)

    def senders(self, channel: str) -> list[Function]:
        """The deployed functions that send a channel's messages, a lane each."""
        found = self.functions.values()
        return [each for each in found if each.environment.get("CHANNEL") == channel]


_PATIENT = Config(
    connect_timeout=CONNECT_SECONDS,
    read_timeout=READ_SECONDS,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=20,
    user_agent="mailroom-doctor",
)
