"""The command `cancel`: cancels a message that waits to be sent, in the same way as the HTTP API."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from mailroom.api.answers import ApiError
from mailroom.api.messages import States
from mailroom.clock import Clock
from mailroom.ledger.table import LedgerTable
from mailroom_ops.messages.status import ChannelOfId, reader_of, show, view_of
from mailroom_ops.shared.deeds import thing_of
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import Refused, aws_faults, print_answer
from mailroom_ops.shared.stage_queues import DeployedStage

if TYPE_CHECKING:
    import boto3


def cancel(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The message's id.")],
    stage: Stage = "dev",
    *,
    channel: ChannelOfId = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a message that waits to be sent. If the message has a callback URL, a callback is sent to it.

    Running the command twice is harmless. To send the message after all, put it under a new id. Exit code 2:
    the message does not exist, or does not wait.

    Example: mailroom cancel reminder-42 --stage prod
    """
    with aws_faults(stage):
        session = aws_session()
        states = states_of(session, DeployedStage.of(session, stage))
        try:
            message = states.cancel(id_, channel)
        except ApiError as refusal:
            raise Refused(f"{id_} is not cancelled: {refusal.detail}.") from None
    now_s = time.time()
    print_answer(view_of(message, stage, now_s), lambda view: show(message, view, now_s), as_json=as_json)


def states_of(
    session: "boto3.Session", deployed: DeployedStage, clock: Clock = time.time, reason: str = ""
) -> States:
    """Return the object that cancels a stage's messages, which the HTTP API uses too, for a reason or for
    none."""
    ttl = deployed.dispatch.ledger_ttl_seconds
    ledger = LedgerTable(deployed.dynamodb, deployed.name("ledger"), ttl, clock)
    return States(
        reader_of(session, deployed.stage),
        ledger,
        clock,
        lambda message: deployed.deeds.record("cancel", [thing_of(message)], reason),
    )
