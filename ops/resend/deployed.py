"""A stage as its own functions know it: which queue a message goes to, and how the ledger is kept."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3

from mailroom.channels.contracts import contracts_of
from mailroom.clock import Clock
from mailroom.environment import Dispatch
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Message
from ops.clients import config_for_invocations
from ops.stage import function_settings
from ops.stage import name as stage_name

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_lambda import LambdaClient
    from types_boto3_sqs import SQSClient


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
        functions = session.client("lambda", config=config_for_invocations())
        dispatch = function_settings(functions, stage_name(stage, "dispatch"), Dispatch)
        contracts = contracts_of(dispatch.default_region)
        return cls(stage, session.client("dynamodb"), session.client("sqs"), functions, dispatch, contracts)

    @property
    def mailbox(self) -> str:
        """The mailbox's table."""
        return self.name("mailbox")

    def name(self, short: str) -> str:
        """The physical name of a table, a queue or a function."""
        return stage_name(self.stage, short)

    def ledger(self, new_token: Callable[[], str]) -> Ledger:
        """The verbs, for who claims nothing."""
        table, ttl = self.dispatch.ledger_table, self.dispatch.ledger_ttl_seconds
        return Ledger(self.dynamodb, table, lease=0, ttl=ttl, clock=self.clock, new_token=new_token)
