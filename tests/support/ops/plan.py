"""A stage whose mails are planned."""

import json
from collections.abc import Mapping
from typing import Any

from mailroom_ops.estimates.forecast import Forecast, Sending
from mailroom_ops.estimates.lanes import Assumed, Stages
from mailroom_ops.estimates.quotas import NEW_TABLE_WRITES
from mailroom_ops.plan.answer import PlanOutput, plan_output

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
NOW = 1_795_269_634.0  # 2026-11-21T14:00:34Z


def context(**mail: Any) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(CONTEXT))
    bulk = mail.pop("bulk", {})
    changed["dev"]["channels"]["mail"].update(mail)
    changed["dev"]["channels"]["mail"]["lanes"]["bulk"].update(bulk)
    return changed


def planned(
    messages: int = 100_000,
    assumed: Assumed = USUAL,
    *,
    lane: str = "bulk",
    changes: Mapping[str, Any] | None = None,
    warm: int = NEW_TABLE_WRITES.value,
    stages: Stages | None = None,
) -> PlanOutput:
    """The plan for so many mails of dev, with other values of settings, by their keys."""
    there = stages or Stages(CONTEXT)
    for key, value in (changes or {}).items():
        there = there.changed("dev", key, value)
    sending = Sending(there.lane("dev", "mail", lane), assumed)
    return plan_output(there, Forecast.of(there, "dev", sending, messages, warm), NOW)
