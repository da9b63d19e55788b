"""The dashboard of a stage, and the stage's metrics and alarms for dashboards of other apps."""

from mailroom_stacks.dashboard.metrics import StageMetrics, dead_letter_alarms

__all__ = ["StageMetrics", "dead_letter_alarms"]
