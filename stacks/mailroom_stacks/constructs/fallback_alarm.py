"""Alarm that rings if messages move to a channel's second provider. They do not become dead letters, so
the alarms of dead-letter queues do not report the failure of the first provider."""

from dataclasses import replace

from constructs import Construct

from mailroom_stacks.constructs.stage_alarm import AlarmText, counted, read_log, stage_alarm
from mailroom_stacks.settings.settings import Settings

PERIODS, AT_LEAST = 12, 3
"""Number of latest periods of five minutes that the alarm looks at, and number of these periods in which
messages must move to the second provider. The alarm does not ring for a short throttling, but also rings for
a stage with few messages."""


def watch_fallbacks(scope: Construct, settings: Settings) -> None:
    """Create the alarm of each lane that has a second provider."""
    for row in settings.lane_rows():
        if not row.fallback:
            continue
        first = replace(row, fallback="")
        text = AlarmText(
            subject=first.queue,
            kind="fallback-used-warning",
            meaning=f"In {AT_LEAST} of the last {PERIODS} periods of five minutes, messages of {first.queue} "
            f"have gone to {row.fallback}, because their first provider did not send them. They arrive late.",
            next_step=f"mailroom doctor --stage {settings.stage}, then "
            f"{read_log(settings, first.function)} (why?)",
        )
        moves = counted(settings, first.function, "ToOtherProvider")
        stage_alarm(scope, first.queue, settings, text, moves, 1, periods=PERIODS, at_least=AT_LEAST)
