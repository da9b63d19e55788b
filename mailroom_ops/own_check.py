"""Names that the checks of your own channel for `doctor` may import."""

from mailroom_ops.doctor.examined_stage import ExaminedStage
from mailroom_ops.doctor.report import CheckFinding, failed, ok, skipped, warning

__all__ = ["CheckFinding", "ExaminedStage", "failed", "ok", "skipped", "warning"]
