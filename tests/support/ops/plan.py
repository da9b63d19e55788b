"""A stage whose mails are planned."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ops.estimates.lanes import Assumed, SendingPlan, Stages, dollars
from ops.estimates.stations import Forecast, Load
from ops.plan.answer import PlanOutput, plan_output

CONTEXT: dict[str, Any] = {
    "dev": {
        "channels": {
            "mail": {
                "handler": "send_mail",
                "messages_per_second": 14,
                "lanes": {
                    "normal": {"share": 0.5},
                    "bulk": {"share": 0.5, "maximum_concurrency": 4},
                },
            }
        },
        "mail": {"senders": ["post@mailroom.example"]},
    }
}
USUAL = Assumed.of("mail")


def context(**mail: Any) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(CONTEXT))
    bulk = mail.pop("bulk", {})
    changed["dev"]["channels"]["mail"].update(mail)
    changed["dev"]["channels"]["mail"]["lanes"]["bulk"].update(bulk)
    return changed


def answered(
    messages: int = 100_000, assumed: Assumed = USUAL, lane: str = "bulk", **mail: Any
) -> PlanOutput:
    return plan_of(Stages(context(**mail)), Load(messages), assumed, lane)


def stages_with(changes: Mapping[str, Any]) -> Stages:
    """CONTEXT with other values of settings of dev, by their keys."""
    stages = Stages(CONTEXT)
    for key, value in changes.items():
        stages = stages.changed("dev", key, value)
    return stages


def plan_of(stages: Stages, load: Load, assumed: Assumed = USUAL, lane: str = "bulk") -> PlanOutput:
    """The answer for a load of a lane of dev."""
    return plan_output(stages, Forecast.of(stages, "dev", [stages.lane("dev", "mail", lane)], load, assumed))


def planned(messages: int = 100_000, **mail: Any) -> SendingPlan:
    """The model behind `answered`, whose numbers are not rounded."""
    return SendingPlan(Stages(context(**mail)).lane("dev", "mail", "bulk").senders, USUAL, messages)


def dollars_of(messages: int = 100_000, lane: str = "bulk", **mail: Any) -> dict[str, float]:
    """What `answered` costs, not rounded."""
    found = Stages(context(**mail)).lane("dev", "mail", lane)
    return dollars(found, SendingPlan(found.senders, USUAL, messages))


def dollars_unpaced(channel: str, batch: int = 10) -> dict[str, float]:
    """A million messages by a lane of prod, in batches of so many, from senders that keep to no rate and have
    a message for 0.1 s."""
    found = replace(Stages.of().lane("prod", channel, "normal"), batch=batch, allowed=None, memory_mb=256)
    return dollars(found, SendingPlan(replace(found.senders, at_once=1), Assumed(0.1, 0, 0), 1_000_000))
