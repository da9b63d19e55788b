"""Stages that differ from those of cdk.json in a few settings."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import App

from mailroom_stacks.api import ApiStack
from mailroom_stacks.app.cache import NO_BUNDLES, assembly
from mailroom_stacks.campaigns import CampaignsStack
from mailroom_stacks.channels import ChannelsStack
from mailroom_stacks.fax import FaxStack
from mailroom_stacks.feedback import FeedbackStack
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.paths import CAMPAIGNS
from mailroom_stacks.settings.load import load, load_campaigns
from mailroom_stacks.settings.settings import Settings
from mailroom_stacks.webhook import WebhookStack
from tests.support import ROOT
from tests.support.stacks.refusals import REMOVED, with_settings
from tests.support.stacks.templates import Template, Templates, read_assembly

TWILIO = {"provider": "twilio", "sender": "+12025550123"}
AWS = {"provider": "aws", "sender": "+12025550123"}
PUSH_ROW = {"handler": "send_push", "lanes": {"normal": {"share": 1}}}
IOS = "arn:aws:sns:eu-central-1:111122223333:app/APNS/shop"
ANDROID = "arn:aws:sns:eu-central-1:111122223333:app/GCM/shop"
NEWS = "arn:aws:sns:eu-central-1:111122223333:news"
PUSH = {"platform_applications": {"ios": IOS, "android": ANDROID}, "topics": [NEWS]}

TOLD = {
    "level": "full",
    "emails": ["ada@example.com", "on-call@example.com"],
    "urls": ["https://events.example.com/integration/abc/enqueue"],
}
"""Everybody who can be told of alarms."""

EVERY_ALARM = {"monitoring.canary": True, "channels.mail.per_day": 1000}
"""Settings of the alarms that a stage has only if it names them."""

PAGE: dict[str, Any] = {
    "brand": "Example Books",
    "default_language": "de",
    "languages": {
        "en": {},
        "fr": {"asking_title": "Se désabonner de {topic} ?", "unsubscribe": "Se désabonner"},
    },
    "topics": {"news": {"titles": {"de": "Neues", "fr": "Nouvelles"}}, "deals": {"brand": "Shop B"}},
}
"""An unsubscribe page with words of its own."""

JWT = {"issuer": "https://login.example.com/", "audience": ["mailroom"]}
SCOPES = {"send": "mailroom/send", "read": "mailroom/read", "cancel": "mailroom/cancel"}
BUS = "arn:aws:events:eu-central-1:444455556666:event-bus/orders"
SERVICE = "MG" + "0" * 31 + "a"
WORDS = {"stop_words": ["ARRÊT", "no más"], "start_words": ["oui"]}
CHAT: dict[str, Any] = {
    "handler": "send_mail_resend",
    "lanes": {"normal": {"share": 0.5}, "bulk": {"share": 0.5}},
    "base_url": "https://slack.com/api",
    "secret": 'Slack\'s: {"token"}',
    "suppressible": True,
}
"""Row of a channel that names its provider. Which of the functions it has does not matter to the row."""

BY_RESEND = {"mail.provider": "resend", **EVERY_ALARM}
"""Settings of a stage whose mails Resend sends."""

TWO_PROVIDERS: dict[str, Any] = {
    "mail.fallback": "resend",
    "channels.mail.fallback": {"messages_per_second": 2, "per_day": 500, "when_day_used_up": True},
    **EVERY_ALARM,
    "sms": {**AWS, **WORDS, "fallback": "twilio", "fallback_sender": "+12025550199"},
}
"""Settings of a stage whose mails and texts have two providers."""

LEAN: dict[str, Any] = {
    "sms": None,
    "channels.sms": REMOVED,
    "channels.chat": {"handler": "send_push", "lanes": {"normal": {"share": 1}}},
    "channels.mail.per_day": None,
    "fax": None,
    "search": False,
    "monitoring": {"level": "minimal", "canary": True},
    "deployment.point_in_time_recovery": False,
}
"""Settings of a stage with little: without SMS, faxes, search, and all alarms but those of queues."""

OTHERWISE: dict[str, Any] = {
    "api": {
        "public_url": "https://mail.example.com",
        "jwt": {**JWT, "scopes": SCOPES, "caller_claim": "client_id"},
        "payload_prefixes": {"shop": "shop/", "trusted": ""},
    },
    "channels.chat": CHAT,
    "channels.mail.timeout_seconds": 900,
    "channels.mail.longest_throttling_seconds": 7_200,
    "channels.push": PUSH_ROW,
    "channels.sms": {"handler": "send_sms", "lanes": {"normal": {"share": 0.5}, "bulk": {"share": 0.5}}},
    "deploy": {
        "provider": "github",
        "subjects": ["repo:acme/mailroom:environment:dev"],
        "qualifier": "maildev",
    },
    "deployment.account": "111122223333",
    "deployment.region": "eu-central-1",
    "deployment.removal": "retain",
    "monitoring": {**TOLD, "waiting_minutes": {"sms": 3}, "concurrency_quota": 3_000},
    "outcomes.event_bus": BUS,
    "push": {"topics": [NEWS]},
    "recipients": {
        "only": ["corp.example", "+1202555"],
        "redirect_to": {"mail": "testers@example.com", "sms": "+12025550199"},
    },
    "retention.mailbox_days": 30,
    "retention.payload_days": 50,
    "sms": {"provider": "twilio", "messaging_service_sid": SERVICE, **WORDS},
    "webhook.delays_seconds": [39_600] * 3,
}
"""Settings that somebody may change at any time on a deployed stage, all of them changed."""


def variant(
    changes: Mapping[str, object],
    stage: str = "dev",
    *,
    campaigns: Path = CAMPAIGNS,
) -> Templates:
    """Return `stage` with its settings changed: full keys below the stage, such as channels.sms. `campaigns`
    is the folder of its campaigns. Other tests get the same templates, so never change them.

    cdk-nag has looked at each: an assembly with findings raises NagError.
    """
    context = {"stage": stage, "mailroom": with_settings(changes, stage), **NO_BUNDLES}
    return read_assembly(assembly(context, campaigns), stage)


def up_to(name: str, changes: Mapping[str, object], campaigns: Path = CAMPAIGNS) -> dict[str, Template]:
    """The templates of the stack `name` of stage dev, with its settings changed, and of the stacks that this
    one needs. That takes a tenth to a half of the time of a whole stage; cdk-nag does not look."""
    settings = load(with_settings(changes), "dev")
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    with tempfile.TemporaryDirectory() as folder:
        app = App(context={**context, **NO_BUNDLES}, outdir=folder, analytics_reporting=False)
        _build(app, settings, name, campaigns)
        app.synth()
        return read_assembly(Path(folder), "dev").stacks


def _build(app: App, settings: Settings, name: str, campaigns: Path) -> None:
    storage = MailboxStack(app, settings)
    if name == "campaigns":
        CampaignsStack(app, settings, storage, load_campaigns(settings, campaigns))
    elif name == "fax" and settings.fax:
        FaxStack(app, settings, settings.fax, storage)
    elif name == "webhook":
        WebhookStack(app, settings, storage)
    else:
        feedback = FeedbackStack(app, settings, storage)
        api = ApiStack(app, settings, storage, feedback)
        if name == "channels":
            ChannelsStack(app, settings, storage, feedback, api)
