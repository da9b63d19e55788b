"""Stages that differ from those of cdk.json in a few settings."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from stacks.assemblies import NO_BUNDLES, assembly
from stacks.paths import CAMPAIGNS
from tests.support.stacks.refusals import with_settings
from tests.support.stacks.templates import Template, Templates

TWILIO = {"provider": "twilio", "sender": "+12025550123"}
AWS = {"provider": "aws", "sender": "+12025550123"}
ROW = {"handler": "send_sms", "lanes": {"normal": {"share": 1}}}
PUSH_ROW = {"handler": "send_push", "lanes": {"normal": {"share": 1}}}
IOS = "arn:aws:sns:eu-central-1:111122223333:app/APNS/shop"
ANDROID = "arn:aws:sns:eu-central-1:111122223333:app/GCM/shop"
NEWS = "arn:aws:sns:eu-central-1:111122223333:news"
PUSH = {"platform_applications": {"ios": IOS, "android": ANDROID}, "topics": [NEWS]}

SLACK = {"workspace_id": "T0123456789", "channel_id": "C0123456789"}
TEAMS = {
    "tenant_id": "2ce5c1a1-4f0c-4e0a-9d3e-0123456789ab",
    "team_id": "9c1f1b1e-0a5c-4f0a-8f9e-0123456789ab",
    "channel_id": "19%3Aabcdef0123456789%40thread.tacv2",
}
TOLD = {
    "emails": ["ada@example.com", "on-call@example.com"],
    "urls": ["https://events.example.com/integration/abc/enqueue"],
    "slack": SLACK,
    "teams": TEAMS,
}
"""Everybody who can be told of alarms."""

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

SIMULATED = "http://127.0.0.1:4711"
AT_SIMULATORS = {
    "fax": {"provider": "signalwire", "base_url": "providers", "senders": ["+12025550123"]},
    "sms": {**TWILIO, "base_url": "providers"},
    "api.public_url": "providers",
}
"""All that is reached at an URL that the app's context has."""

JWT = {"issuer": "https://login.example.com/", "audience": ["mailroom"]}
SCOPES = {"send": "mailroom/send", "read": "mailroom/read", "cancel": "mailroom/cancel"}


@cache
def read(folder: Path, stage: str) -> Templates:
    """The templates of a stage's stacks, by short name, of the cloud assembly in `folder`."""
    ending = ".template.json"
    files = sorted(folder.glob(f"*{ending}"))
    names = [file.name.removeprefix(f"mailroom-{stage}-").removesuffix(ending) for file in files]
    return Templates(folder, dict(zip(names, map(Template.read, files), strict=True)))


def variant(
    changes: Mapping[str, object],
    stage: str = "dev",
    *,
    providers: str | None = None,
    campaigns: Path = CAMPAIGNS,
) -> Templates:
    """`stage` with its settings changed: full keys below the stage, such as channels.sms. `providers` is the
    app's context of that name, `campaigns` the folder that its campaigns lie in. Others get
    the same templates: nobody may change them."""
    context: dict[str, object] = {"stage": stage, "mailroom": with_settings(changes, stage)}
    context |= {"providers": providers} if providers else {}
    return read(assembly({**context, **NO_BUNDLES}, campaigns), stage)
