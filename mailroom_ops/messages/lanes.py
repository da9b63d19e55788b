"""The commands `lane`: list the lanes of a stage, pause one, resume it."""

from typing import Annotated

import typer

from mailroom_ops.messages.deployed_lanes import DeployedLanes, Lane
from mailroom_ops.shared.deeds import with_names
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import aws_faults, fold, print_answer, right, screen, table_of, whole
from mailroom_ops.shared.stage_queues import DeployedStage

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="List the lanes of a stage, pause one and resume it."
)

Channel = Annotated[str, typer.Argument(help="The channel, such as mail.")]
LaneName = Annotated[str, typer.Argument(help="The channel's lane: normal or bulk.")]
Reason = Annotated[str, typer.Option("--why", help="The reason, which mailroom lane list shows.")]


@app.command("list")
def list_(stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """List the lanes, with the number of waiting messages in each. For a paused lane, it prints when, by whom
    and why it was paused.

    Example: mailroom lane list --stage prod
    """
    with aws_faults(stage):
        lanes = _lanes(stage).read()
    print_answer(lanes, _print, as_json=as_json)


@app.command()
def pause(
    channel: Channel,
    reason: Reason,
    lane: LaneName = "normal",
    stage: Stage = "dev",
    *,
    as_json: AsJson = False,
) -> None:
    """Pause a lane: it stops sending within about a minute, and its messages wait in its queue.

    SQS deletes messages that wait in a queue for too long. The command prints the time before which you must
    resume the lane.

    Example: mailroom lane pause mail bulk --why "provider is down" --stage prod
    """
    with aws_faults(stage):
        _lanes(stage).pause(channel, lane, reason)
    list_(stage, as_json=as_json)


@app.command()
def resume(
    channel: Channel, lane: LaneName = "normal", stage: Stage = "dev", *, as_json: AsJson = False
) -> None:
    """Resume a paused lane: within about a minute, its senders begin to send the waiting messages.

    Example: mailroom lane resume mail bulk --stage prod
    """
    with aws_faults(stage):
        _lanes(stage).pause(channel, lane, None)
    list_(stage, as_json=as_json)


def _lanes(stage: str) -> DeployedLanes:
    return DeployedLanes(DeployedStage.of(aws_session(), stage))


def _print(lanes: list[Lane]) -> None:
    columns = (whole("channel"), whole("lane"), right("waiting"), fold("paused", ratio=1))
    rows = ((lane.channel, lane.lane, f"{lane.waiting:,}", with_names(lane.paused)) for lane in lanes)
    screen.print(table_of(*columns, rows=rows))
