"""Numbers that follow from the settings by the design's rules. All times are in seconds."""

from stacks.derived.campaigns import (
    FIRST_PAGE_QUERIES,
    PATIENCE_SECONDS,
    PUT_SECONDS,
    collect_polling,
    collect_rules,
    compose_polling,
    compose_rules,
)
from stacks.derived.fax import FaxRules, fax_rules, invocations_to_finish, mover_rules
from stacks.derived.lanes import LaneRow, lane_rows
from stacks.derived.queues import QueueRules, queue_rules, worker_rules
from stacks.derived.waiting import waiting_seconds
from stacks.derived.waits import DAY, RECEIVES_OVER, SHORTEST_JITTER, SQS_RECEIVES, Waits
from stacks.derived.webhook import webhook_rules

__all__ = [
    "DAY",
    "FIRST_PAGE_QUERIES",
    "PATIENCE_SECONDS",
    "PUT_SECONDS",
    "RECEIVES_OVER",
    "SHORTEST_JITTER",
    "SQS_RECEIVES",
    "FaxRules",
    "LaneRow",
    "QueueRules",
    "Waits",
    "collect_polling",
    "collect_rules",
    "compose_polling",
    "compose_rules",
    "fax_rules",
    "invocations_to_finish",
    "lane_rows",
    "mover_rules",
    "queue_rules",
    "waiting_seconds",
    "webhook_rules",
    "worker_rules",
]
