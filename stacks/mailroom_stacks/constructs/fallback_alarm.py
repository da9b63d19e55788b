"""Alarm that rings if a channel's second provider sends messages. The failure of the first provider makes no
dead letters then, whose alarm would ring."""

from dataclasses import replace

from constructs import Construct

from mailroom_stacks.constructs.stage_alarm import AlarmText, counted, read_log, stage_alarm
from mailroom_stacks.settings.settings import Settings

PERIODS = 3
"""Number of consecutive periods of five minutes in which messages must move: a short throttling rings no
alarm."""


def watch_fallbacks(scope: Construct, settings: Settings) -> None:
    """Create the alarm of each lane that has a second provider."""
    for row in settings.lane_rows():
        if not row.fallback:
            continue
        first = replace(row, fallback="")
        text = AlarmText(
            subject=first.queue,
            kind="fallback-used-warning",
            meaning=f"For {5 * PERIODS} minutes, messages of {first.queue} have gone to {row.fallback}, "
            "because their first provider did not send them. They arrive late; none of them is lost.",
            next_step=f"mailroom doctor --stage {settings.stage}, then "
            f"{read_log(settings, first.function)} (reasons)",
        )
        moves = counted(settings, first.function, "ToOtherProvider")
        stage_alarm(scope, first.queue, settings, text, moves, 1, periods=PERIODS)
