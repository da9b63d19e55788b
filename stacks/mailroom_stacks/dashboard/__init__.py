"""The stage's two dashboards, and the metrics and alarms of a stage for the dashboards of others."""

from mailroom_stacks.dashboard.metrics import StageMetrics, dead_letter_alarms

__all__ = ["StageMetrics", "dead_letter_alarms"]
