"""Alarms of the latency objective: the time in which 99 % of a normal lane's messages must be accepted."""

from constructs import Construct

from mailroom_stacks.constructs.stage_alarm import AlarmText, counted, read_log, stage_alarm
from mailroom_stacks.settings.constants import SLOW_SECONDS
from mailroom_stacks.settings.settings import Settings

PAGE = "codes-late"
WINDOWS = {"": (3, 3), "-warning": (12, 72)}
"""Number of periods of five minutes in which the objective must be missed, and number of latest periods that
the alarm looks at, by the suffix of the alarm's kind. Many slow messages must notify somebody within a
quarter of an hour; few slow messages only if they add up to an hour in six."""


def watch_objective(scope: Construct, settings: Settings) -> None:
    """Create both alarms of each normal lane. Lanes of second providers are left out: a message that has
    moved to a second provider is always late, and the alarm `fallback-used-warning` reports it."""
    for row in settings.lane_rows():
        if row.queue != row.event_type:
            continue
        delay, slow_ms = counted(settings, row.function, "PutToAccepted", "p99"), SLOW_SECONDS * 1000
        for suffix, (at_least, periods) in WINDOWS.items():
            text = AlarmText(
                subject=row.queue,
                kind=f"{PAGE}{suffix}",
                meaning=f"In {at_least} of the last {periods} periods of five minutes, 1 % or more of the "
                f"messages of {row.queue} took over {SLOW_SECONDS} s from the put, or from their "
                "send_at, until the provider accepted them. They arrive late; none of them is lost.",
                next_step=f"mailroom doctor --stage {settings.stage}, then "
                f"{read_log(settings, row.function)}",
            )
            id_ = f"{row.queue}{suffix}"
            stage_alarm(scope, id_, settings, text, delay, slow_ms, periods=periods, at_least=at_least)
