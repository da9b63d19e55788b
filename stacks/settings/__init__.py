"""What can be set for a stage, in `cdk.json` under context `mailroom`, then the stage's name."""

from stacks.settings.channels import Channel, Lane, LaneName, Mail
from stacks.settings.fax import PROVIDERS_AT_SYNTH, Fax, RetryMover
from stacks.settings.sections import Backoff, Function, Patience, Polling, Redelivery, Section
from stacks.settings.stage import Deployment, EventType, Retention, Scheduled, Settings, Stream
from stacks.settings.webhook import Webhook

__all__ = [
    "PROVIDERS_AT_SYNTH",
    "Backoff",
    "Channel",
    "Deployment",
    "EventType",
    "Fax",
    "Function",
    "Lane",
    "LaneName",
    "Mail",
    "Patience",
    "Polling",
    "Redelivery",
    "Retention",
    "RetryMover",
    "Scheduled",
    "Section",
    "Settings",
    "Stream",
    "Webhook",
]
