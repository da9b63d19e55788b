"""Reads and validates the settings of a stage from the app's context."""

import json
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from mailroom.providers import provider, providers_of
from mailroom_stacks.paths import CAMPAIGNS
from mailroom_stacks.settings.concurrency import concurrency_faults
from mailroom_stacks.settings.enabled_campaigns import (
    EnabledCampaign,
    campaigns_faults,
    databases_faults,
    read_campaigns,
)
from mailroom_stacks.settings.local_profile import with_local_defaults
from mailroom_stacks.settings.sections import PROVIDERS_AT_SYNTH, HttpProvider, Section
from mailroom_stacks.settings.sentences import SettingsError, sentence
from mailroom_stacks.settings.settings import Settings, settings_faults

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?")


def load(stages: object, stage: object) -> Settings:
    """Return the validated settings of `stage`. `stages` is the value of `mailroom` in the context. Raises
    SettingsError."""
    if not isinstance(stages, Mapping) or not stages:
        raise SettingsError("mailroom: is missing from cdk.json's context; add a section for each stage.")
    if stage not in stages:
        raise SettingsError(
            f"stage: {stage!r} is unknown; use one of {', '.join(stages)}, as in -c stage=dev."
        )
    settings = _validated(stages[stage], str(stage))
    for broken in chain(settings_faults(settings), concurrency_faults(settings)):
        raise SettingsError(f"mailroom.{stage}.{broken}")
    return settings


def load_campaigns(settings: Settings, folder: Path = CAMPAIGNS) -> tuple[EnabledCampaign, ...]:
    """Return the validated campaigns of a stage, read from `folder`. Raises SettingsError."""
    campaigns = read_campaigns(settings, folder)
    databases = databases_faults(settings, campaigns, folder.parent)
    for broken in chain(campaigns_faults(settings, campaigns), databases):
        raise SettingsError(broken)
    return campaigns


def with_providers(settings: Settings, providers: object) -> Settings:
    """Return `settings` with the URLs that are only set when the app runs. Each placeholder
    PROVIDERS_AT_SYNTH is replaced by the URL `providers`, followed by the name of the provider, by the name
    of the channel if it names no provider, or by `api` for the API's URL. Raises SettingsError if there is a
    placeholder and `providers` is not a URL."""

    def placed(path: str, section: Section, setting: str, name: str) -> Section:
        if getattr(section, setting) != PROVIDERS_AT_SYNTH:
            return section
        if not (isinstance(providers, str) and _ORIGIN.fullmatch(providers)):
            raise SettingsError(
                f"mailroom.{settings.stage}.{path}.{setting}: is {PROVIDERS_AT_SYNTH!r}, which needs a URL "
                f"in the context key {PROVIDERS_AT_SYNTH}, not {providers!r}; run the app with -c "
                f"{PROVIDERS_AT_SYNTH}=http://HOST:PORT."
            )
        return section.model_copy(update={setting: f"{providers}/{name}"})

    changed: dict[str, object] = {
        key: placed(key, section, "base_url", _with_url(settings, key))
        for key, section in settings
        if isinstance(section, HttpProvider)
    }
    changed["channels"] = {
        key: placed(f"channels.{key}", row, "base_url", _with_url(settings, key))
        for key, row in settings.channels.items()
    }
    changed["api"] = placed("api", settings.api, "public_url", "api")
    return settings.model_copy(update=changed)


def _with_url(settings: Settings, channel: str) -> str:
    """Return the channel's first provider that has a URL, or the channel's name if none has."""
    names = (*settings.providers(channel), *providers_of(channel))
    return next((name for name in names if provider(name).url), channel)


def _validated(section: object, stage: str) -> Settings:
    if not isinstance(section, Mapping):
        raise SettingsError(f"mailroom.{stage}: {section!r} is not a JSON object; use a section in braces.")
    if "stage" in section:
        raise SettingsError(
            f"mailroom.{stage}.stage: is not a setting; the section's own key names the stage."
        )
    values = with_local_defaults(section) if section.get("profile") == "local" else section
    try:
        # Validation as JSON, the form of cdk.json, converts a list to a tuple, but never a string to a
        # number.
        return Settings.model_validate_json(json.dumps({**values, "stage": stage}))
    except ValidationError as error:
        raise SettingsError(sentence(error, f"mailroom.{stage}.")) from error
