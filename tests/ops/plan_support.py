"""A stage whose mails are planned."""

import json
from typing import Any

from ops.plan.answer import Answer, answer
from ops.plan.lanes import Stages
from ops.plan.model import Assumed

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
USUAL = Assumed(latency=0.1, between=0.1)


def context(**mail: Any) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(CONTEXT))
    bulk = mail.pop("bulk", {})
    changed["dev"]["channels"]["mail"].update(mail)
    changed["dev"]["channels"]["mail"]["lanes"]["bulk"].update(bulk)
    return changed


def answered(messages: int = 100_000, assumed: Assumed = USUAL, **mail: Any) -> Answer:
    stages = Stages(context(**mail))
    return answer(stages, "dev", stages.lane("dev", "mail", "bulk"), assumed, messages)
