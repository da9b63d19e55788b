"""A stage whose mails are planned."""

from collections.abc import Mapping
from typing import Any

from mailroom_ops.costs.configured_lanes import lane_of
from mailroom_ops.costs.plan import PlanOutput, plan_output
from mailroom_stacks.settings.load import load
from tests.support.stacks.refusals import with_settings

NOW = 1_795_269_634.0  # 2026-11-21T14:00:34Z
CHANNEL = "channels.mail"
UNLIMITED = {f"{CHANNEL}.per_day": None, f"{CHANNEL}.lanes.normal.reserve": 0}


def planned(
    messages: int = 100_000,
    changes: Mapping[str, Any] = UNLIMITED,
    *,
    lane: str = "bulk",
) -> PlanOutput:
    """Return the plan of prod for so many mails, with `changes` of settings by their paths."""
    settings = load(with_settings(changes, "prod"), "prod")
    return plan_output(settings, lane_of(settings, "mail", lane), messages, NOW)
