"""`lane`: list the lanes of a stage, pause one, resume it."""

from typing import Annotated

import typer
from msgspec import Struct

from mailroom_ops.lanes.deployed import DeployedLanes, Lane
from mailroom_ops.options import AsJson, Stage
from mailroom_ops.requeue.stage import DeployedStage
from mailroom_ops.screen import aws_faults, fold, print_answer, print_line, right, screen, table_of, whole
from mailroom_ops.stage import aws_session

app = typer.Typer(no_args_is_help=True, help="List the lanes of a stage, pause one and resume it.")

Channel = Annotated[str, typer.Argument(help="The channel, such as mail.")]
LaneName = Annotated[str, typer.Argument(help="The channel's lane: normal or bulk.")]
Reason = Annotated[str, typer.Option("--why", help="Reason, for everybody who looks at the stage.")]


class LanesAnswer(Struct, frozen=True):
    """Answer of `lane list`."""

    stage: str
    lanes: list[Lane]


@app.command("list")
def list_(stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """List the lanes: how many messages wait in each, and since when, by whom and why it is paused.

    Example: mailroom lane list --stage prod
    """
    with aws_faults(stage):
        answer = LanesAnswer(stage, _lanes(stage).read())
    print_answer(answer, _print_all, as_json=as_json)


@app.command()
def pause(
    channel: Channel,
    lane: LaneName = "normal",
    *,
    reason: Reason,
    stage: Stage = "dev",
    as_json: AsJson = False,
) -> None:
    """Pause a lane: it stops sending within about a minute, and its messages wait in its queue.

    SQS deletes what waits in a queue for too long: the command says before which time to resume the lane.

    Example: mailroom lane pause mail bulk --why "provider is down" --stage prod
    """
    with aws_faults(stage):
        paused = _lanes(stage).pause(channel, lane, reason)
    print_answer(paused, _print, as_json=as_json)


@app.command()
def resume(
    channel: Channel, lane: LaneName = "normal", *, stage: Stage = "dev", as_json: AsJson = False
) -> None:
    """Let a paused lane go on: within about a minute its senders begin with the messages that wait.

    Example: mailroom lane resume mail bulk --stage prod
    """
    with aws_faults(stage):
        resumed = _lanes(stage).resume(channel, lane)
    print_answer(resumed, _print, as_json=as_json)


def _lanes(stage: str) -> DeployedLanes:
    return DeployedLanes(DeployedStage.of(aws_session(), stage))


def _print(lane: Lane) -> None:
    state = f"is paused {lane.paused}" if lane.paused else "goes on"
    print_line(f"Lane {lane.lane} of {lane.channel} {state}. Messages that wait: {lane.waiting:,}.")
    if lane.paused:
        print_line("SQS deletes messages that wait past that time, and reports nothing.")


def _print_all(answer: LanesAnswer) -> None:
    rows = ((lane.channel, lane.lane, f"{lane.waiting:,}", lane.paused) for lane in answer.lanes)
    columns = (whole("channel"), whole("lane"), right("waiting"), fold("paused", ratio=1))
    screen.print(table_of(*columns, rows=rows))
