"""What can be set for a stage, in `cdk.json` under context `mailroom`, then the stage's name."""

from stacks.settings.api import Api
from stacks.settings.campaign import Audience, Campaign, Schedule
from stacks.settings.campaigns import Campaigns, Network
from stacks.settings.channels import Channel, Lane, LaneName, Mail
from stacks.settings.databases import Database
from stacks.settings.deploy import Deploy, Deployment
from stacks.settings.fax import Fax, RetryMover
from stacks.settings.feedback import DeadLetters, Feedback
from stacks.settings.monitoring import NEARLY_ALL, Monitoring, SendingRates, Slack, Teams
from stacks.settings.push import Push
from stacks.settings.retention import Retention, Scheduled, Stream
from stacks.settings.sections import (
    Backoff,
    EventType,
    Function,
    Patience,
    Polling,
    QueueWorker,
    Redelivery,
    Section,
)
from stacks.settings.sms import Sms
from stacks.settings.stage import Settings
from stacks.settings.urls import PROVIDERS_AT_SYNTH
from stacks.settings.webhook import Webhook

__all__ = [
    "NEARLY_ALL",
    "PROVIDERS_AT_SYNTH",
    "Api",
    "Audience",
    "Backoff",
    "Campaign",
    "Campaigns",
    "Channel",
    "Database",
    "DeadLetters",
    "Deploy",
    "Deployment",
    "EventType",
    "Fax",
    "Feedback",
    "Function",
    "Lane",
    "LaneName",
    "Mail",
    "Monitoring",
    "Network",
    "Patience",
    "Polling",
    "Push",
    "QueueWorker",
    "Redelivery",
    "Retention",
    "RetryMover",
    "Schedule",
    "Scheduled",
    "Section",
    "SendingRates",
    "Settings",
    "Slack",
    "Sms",
    "Stream",
    "Teams",
    "Webhook",
]
