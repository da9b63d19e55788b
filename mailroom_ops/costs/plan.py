"""The command `plan`: estimates how long it takes to send a number of messages."""

import time
from typing import Annotated

import typer
from msgspec import Struct

from mailroom_ops.costs.configured_lanes import ConfiguredLane, lane_of, read_settings
from mailroom_ops.costs.days import DayShare, days, days_table, portions
from mailroom_ops.shared.options import AsJson, WrittenStage
from mailroom_ops.shared.screen import print_answer, print_line, refusals, screen
from mailroom_ops.shared.times import exactly, speed_of
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.settings import Settings


class PlanOutput(Struct, frozen=True, kw_only=True):
    """Output of the command `plan`. Times are in seconds."""

    stage: str
    channel: str
    lane: str
    provider: str
    """Name of the provider that sends the messages; empty if no setting names one."""
    messages: int
    seconds: float
    """Time until the provider has accepted the last message."""
    bound: str
    """Limit that determines the time: day, rate or workers."""
    setting: str
    """Setting of this limit."""
    speeds: dict[str, float]
    """Messages a second that the rate allows, and that the workers can send."""
    days: list[DayShare]
    """Days on which the messages are sent, if the channel has a daily limit."""
    note: str
    """Sentence about delays that the estimate does not include; empty if there are none."""
    warning: str
    """Reason why the queue cannot hold so many messages for long enough; empty if it can."""


def plan(
    channel: Annotated[str, typer.Option(help="The channel, such as mail, sms, push, fax or webhook.")],
    messages: Annotated[int, typer.Option(min=1, help="The number of messages.")],
    lane: Annotated[str, typer.Option(help="The lane; campaigns use bulk.")] = "normal",
    stage: WrittenStage = "dev",
    *,
    as_json: AsJson = False,
) -> None:
    """Estimate how long a stage takes to send a number of messages, and which setting limits its speed.

    The command reads the settings in cdk.json, and works without AWS credentials. The speed is the lower of
    the lane's rate and of the number of its workers divided by the time of a message. If the channel has a
    daily limit, the plan shows how many bulk messages are sent on each day, and how many recipients are left
    for codes. Latencies vary, and other messages take time too, so this is an estimate.

    Exit code 1: messages would wait for longer than the queue's retention. 2: the stage does not have the
    channel or lane, or its settings are invalid.

    Example: mailroom plan --channel mail --messages 100000 --lane bulk --stage prod
    """
    with refusals(SettingsError):
        settings = read_settings(stage)
        planned_lane = lane_of(settings, channel, lane)
    output = plan_output(settings, planned_lane, messages, time.time())
    print_answer(output, lambda output: _show(output, planned_lane), as_json=as_json)
    raise typer.Exit(1 if output.warning else 0)


def plan_output(settings: Settings, lane: ConfiguredLane, messages: int, start: float) -> PlanOutput:
    """Return the plan for messages that are put at `start`, in epoch seconds."""
    seconds = max(lane.seconds, messages / lane.speed)
    bound = next(iter(lane.speeds))
    shares, day_seconds = _days(lane, messages, start)
    if day_seconds > seconds + 1:
        seconds, bound = day_seconds, "day"
    day = f"{lane.rate_setting.rpartition('.')[0]}.per_day"
    paths = {"day": day, "rate": lane.rate_setting}
    return PlanOutput(
        stage=settings.stage,
        channel=lane.channel,
        lane=lane.name,
        provider=lane.provider,
        messages=messages,
        seconds=round(seconds, 1),
        bound=bound,
        setting=f"mailroom.{settings.stage}.{paths.get(bound, lane.workers_setting)}",
        speeds={name: round(speed, 3) for name, speed in lane.speeds.items()},
        days=shares,
        note=lane.estimate.note,
        warning=_warning(lane, messages),
    )


def _days(lane: ConfiguredLane, messages: int, start: float) -> tuple[list[DayShare], float]:
    """Return the days on which bulk messages are sent, and the seconds until the last message."""
    if not lane.per_day:
        return [], 0
    parts = [*portions(messages, lane.per_day, lane.reserve, start, speed=lane.speed)]
    return days(parts, lane.per_day, lane.reserve), parts[-1].begins + parts[-1].messages / lane.speed - start


def _warning(lane: ConfiguredLane, messages: int) -> str:
    seconds = messages / lane.speed
    if seconds <= lane.longest_wait:
        return ""
    return (
        f"Too many at once: the last message would wait for {seconds / 86_400:.1f} days in the "
        f"queue {lane.queue}, whose retention allows {lane.longest_wait / 86_400:.1f} days before retries; "
        f"then SQS deletes messages silently. Put at most {int(lane.longest_wait * lane.speed):,}."
    )


def _show(plan: PlanOutput, lane: ConfiguredLane) -> None:
    provider = f" ({plan.provider})" if plan.provider else ""
    messages = f"{plan.messages:,} messages by {plan.channel}{provider}, lane {plan.lane}"
    print_line(f"{messages}, of {plan.stage}: {exactly(plan.seconds)}", "bold")
    print_line(f"Limited by the {plan.bound}: {plan.setting}.")
    workers = f"{lane.workers} workers send {speed_of(lane.speeds['workers'])} a second"
    print_line(f"{workers}: {lane.seconds:.3g} s a message with {lane.memory_mb} MB.")
    if lane.rate:
        rate = f"The lane's rate of {speed_of(lane.rate)} a second"
        print_line(f"{rate} needs {lane.workers_for_rate:,} workers.")
    if len(plan.days) > 1:
        screen.print(days_table(plan.days))
    if plan.note:
        print_line(plan.note)
    if plan.warning:
        print_line(plan.warning, "red")
