"""Campaigns for tests: folders as they lie below campaigns/, and stages that have them."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mailroom_stacks.settings.enabled_campaigns import EnabledCampaign
from mailroom_stacks.settings.load import load, load_campaigns
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.refusals import REMOVED, with_settings
from tests.support.stacks.templates import Template
from tests.support.stacks.variants import AWS, NEWS, PAGE, PUSH, PUSH_ROW, TOLD, WORDS, up_to

SECRET = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:{}-AbCdEf"
DATABASES: dict[str, Any] = {name: {"secret_arn": SECRET.format(name)} for name in ("app", "shop")}
NETWORK = {"subnet_ids": ["subnet-0a1b2c3d", "subnet-4e5f6a7b"], "security_group_ids": ["sg-01234567"]}
WEEKLY: dict[str, Any] = {
    "channel": "mail",
    "topic": "followers",
    "template": "default",
    "schedule": {"cron": "0 13 ? * WED *", "time_zone": "Europe/Berlin"},
    "audience": {
        "kind": "postgresql",
        "database": "app",
        "key": "user_id",
        "columns": ["email"],
        "query": "SELECT user_id, email FROM users WHERE created_at < %(scheduled_at)s",
    },
}
AUDIENCES: dict[str, dict[str, Any]] = {
    "postgresql": WEEKLY["audience"],
    "csv": {"kind": "file", "location": "s3://people-{stage}/coupons.csv", "key": "customer"},
    "jsonl": {"kind": "file", "location": "s3://people/all/of-them.jsonl", "key": "id"},
    "module": {"kind": "module"},
}
MODULE = "def recipients(page):\n    return None\n"


def put_campaign(root: Path, name: str = "weekly", module: str = "", **changes: Any) -> Path:
    """The folder of campaigns below `root`, with WEEKLY in it under `name`; changes are keys with __ for a
    dot."""
    settings = copy.deepcopy(WEEKLY)
    for key, value in changes.items():
        section, (*path, last) = settings, key.split("__")
        for part in path:
            section = section[part]
        if value is REMOVED:
            section.pop(last, None)
        else:
            section[last] = value
    folder = root / "campaigns" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "campaign.toml").write_text(_toml(settings))
    if module:
        (folder / "campaign.py").write_text(module)
    return root / "campaigns"


def of_each_kind(root: Path) -> Path:
    """Folders of four campaigns, each named by its audience; two of them have code of their own."""
    for kind, audience in AUDIENCES.items():
        own = {"module": MODULE, "csv": MODULE}.get(kind, "")
        databases = {"databases": ["shop"]} if kind == "module" else {}
        put_campaign(root, kind, own, audience=audience, concurrency=4, **databases)
    return root / "campaigns"


def changes_for(*names: str, **changes: Any) -> dict[str, Any]:
    """Return the settings of a stage with these campaigns, and with further keys, which have __ for a dot."""
    others = {key.replace("__", "."): value for key, value in changes.items()}
    return {"campaigns.enabled": list(names), "databases": copy.deepcopy(DATABASES), **others}


EVERYTHING: dict[str, Any] = {
    "console": {
        "issuer": "https://sign-in.example.com",
        "client_id": "mailroom",
        "roles": {"read": ["desk"], "contents": ["@example.com"]},
    },
    "sms": {**AWS, **WORDS},
    "push": PUSH,
    "channels.push": PUSH_ROW,
    "monitoring": TOLD,
    "outcomes.event_bus": "orders",
    "api.unsubscribe": PAGE,
    "recipients": {"only": ["example.com"], "redirect_to": {"mail": "testers@example.com", "push": NEWS}},
    "deployment.second_copy": {"bucket": "acme-second-copies", "account": "444455556666"},
    **changes_for(*AUDIENCES, campaigns__network=NETWORK),
}
"""Settings with every optional part, with campaigns `of_each_kind`."""


def with_campaigns(folder: Path, *names: str, **changes: Any) -> Template:
    """The campaigns of stage dev, out of `folder`."""
    return up_to("campaigns", changes_for(*names, **changes), folder)["campaigns"]


def enabled(folder: Path, *names: str, **changes: Any) -> tuple[EnabledCampaign, ...]:
    """The campaigns of stage dev, as synth reads them."""
    return load_campaigns(load(with_settings(changes_for(*names, **changes)), "dev"), folder)


def refusal_of_campaigns(folder: Path, *names: str, **changes: Any) -> str:
    """Return synth's error about those campaigns."""
    with pytest.raises(SettingsError) as refusal:
        enabled(folder, *names, **changes)
    return str(refusal.value)


def _toml(settings: Mapping[str, Any]) -> str:
    """Values first, then sections: JSON's strings, numbers and lists are TOML's too."""
    plain = {key: value for key, value in settings.items() if not isinstance(value, Mapping)}
    lines = [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key, section in settings.items():
        if isinstance(section, Mapping):
            lines += [f"[{key}]", _toml(section)]
    return "\n".join(lines) + "\n"
