"""A stage as its own functions know it: which queue a message goes to, and how the ledger is kept."""

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import boto3
import msgspec
from msgspec import Struct

from mailroom.channels.contracts import contracts_of
from mailroom.clock import Clock
from mailroom.environment import Dispatch
from mailroom.ledger import Ledger
from mailroom.message import Message
from mailroom.telemetry import logger
from ops.campaigns import patient
from ops.screen import Refused

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_lambda import LambdaClient
    from types_boto3_sqs import SQSClient

T = TypeVar("T", bound=Struct)


@dataclass(frozen=True)
class Deployed:
    """One stage: its clients, the settings of its dispatch, and what its channels take."""

    stage: str
    dynamodb: "DynamoDBClient"
    sqs: "SQSClient"
    functions: "LambdaClient"
    dispatch: Dispatch
    contracts: Mapping[str, type[Message]]
    clock: Clock = time.time

    @classmethod
    def of(cls, session: boto3.Session, stage: str) -> "Deployed":
        """The stage in the session's account. Raises Refused where it is not deployed, or not by a version
        that can be read here."""
        functions = session.client("lambda", config=patient())
        dispatch = settings_of(functions, f"mailroom-{stage}-dispatch", Dispatch)
        contracts = contracts_of(dispatch.default_region)
        return cls(stage, session.client("dynamodb"), session.client("sqs"), functions, dispatch, contracts)

    @property
    def mailbox(self) -> str:
        """The mailbox's table."""
        return self.name("mailbox")

    def name(self, short: str) -> str:
        """The physical name of a table, a queue or a function."""
        return f"mailroom-{self.stage}-{short}"

    def ledger(self, new_token: Callable[[], str]) -> Ledger:
        """The verbs, for who claims nothing."""
        table, ttl = self.dispatch.ledger_table, self.dispatch.ledger_ttl_seconds
        return Ledger(self.dynamodb, table, lease=0, ttl=ttl, clock=self.clock, new_token=new_token)


def variables_of(functions: "LambdaClient", name: str) -> dict[str, Any]:
    """A function's environment; lists and maps stand there as JSON. Raises Refused."""
    try:
        reply = functions.get_function_configuration(FunctionName=name)
    except functions.exceptions.ResourceNotFoundException:
        raise Refused(
            f"There is no function {name} in this account and region; deploy the stage, or check the "
            "credentials and the region."
        ) from None
    texts = reply.get("Environment", {}).get("Variables", {})
    return {each: _value(text) for each, text in texts.items()}


def settings_of(functions: "LambdaClient", name: str, kind: type[T]) -> T:
    """A function's settings, as it reads them itself. Raises Refused."""
    try:
        return msgspec.convert(variables_of(functions, name), kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(
            f"The settings of {name} are not as this version knows them: {error}. Deploy this version, or "
            "use the command of the version that is deployed."
        ) from None


def _value(text: str) -> Any:
    if not text.startswith(("[", "{")):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


@contextmanager
def complaints_on_stderr() -> Iterator[None]:
    """What the library logs of calls that fail goes beside the answer, not into it."""
    handlers = [each for each in logger.handlers if isinstance(each, logging.StreamHandler)]
    streams = [each.stream for each in handlers]
    for handler in handlers:
        handler.setStream(sys.stderr)
    try:
        yield
    finally:
        for handler, stream in zip(handlers, streams, strict=True):
            handler.setStream(stream)
