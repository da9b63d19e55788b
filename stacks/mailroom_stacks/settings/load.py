"""Reads a stage's settings out of the app's context and refuses what cannot work."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from mailroom_stacks.paths import CAMPAIGNS
from mailroom_stacks.settings.enabled_campaigns import (
    EnabledCampaign,
    campaigns_faults,
    databases_faults,
    read_campaigns,
)
from mailroom_stacks.settings.local_profile import LOCAL
from mailroom_stacks.settings.sections import FIXED, PROVIDERS_AT_SYNTH, HttpProvider, Section
from mailroom_stacks.settings.sentences import SettingsError, field_of, sentence
from mailroom_stacks.settings.stage import Settings, settings_faults

_OPTIONAL = ("channels", "fax", "databases")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?")


def load(stages: object, stage: object) -> Settings:
    """The settings of `stage` among `stages`, the context's `mailroom`. Raises SettingsError."""
    if not isinstance(stages, Mapping) or not stages:
        raise SettingsError("mailroom: is missing from cdk.json's context; add a section for each stage.")
    if stage not in stages:
        raise SettingsError(
            f"stage: {stage!r} is unknown; use one of {', '.join(stages)}, as in -c stage=dev."
        )
    settings = _validated(stages[stage], str(stage))
    for broken in settings_faults(settings):
        raise SettingsError(f"mailroom.{stage}.{broken}")
    return settings


def load_campaigns(settings: Settings, folder: Path = CAMPAIGNS) -> tuple[EnabledCampaign, ...]:
    """The campaigns of a stage, of those that lie in `folder`. Raises SettingsError."""
    campaigns = read_campaigns(settings, folder)
    for broken in campaigns_faults(settings, campaigns):
        raise SettingsError(broken)
    for broken in databases_faults(settings, campaigns, folder.parent):
        raise SettingsError(broken)
    return campaigns


def with_providers(settings: Settings, providers: object) -> Settings:
    """`settings` with each address that is known only now: below `providers`, under the name of the provider,
    or of the channel whose row names none; and the API's under api. Raises SettingsError where `providers` is
    no URL, and a setting needs it."""

    def placed(path: str, section: Section, setting: str, name: str) -> Section:
        if getattr(section, setting) != PROVIDERS_AT_SYNTH:
            return section
        if not (isinstance(providers, str) and _ORIGIN.fullmatch(providers)):
            raise SettingsError(
                f"mailroom.{settings.stage}.{path}.{setting}: is {PROVIDERS_AT_SYNTH!r}, and the context's "
                f"{PROVIDERS_AT_SYNTH} is {providers!r}; run the app with -c "
                f"{PROVIDERS_AT_SYNTH}=http://HOST:PORT."
            )
        return section.model_copy(update={setting: f"{providers}/{name}"})

    changed: dict[str, object] = {
        key: placed(key, section, "base_url", getattr(section, "provider", key))
        for key, section in settings
        if isinstance(section, HttpProvider)
    }
    providers_of = {"mail": settings.mail.provider}
    changed["channels"] = {
        key: placed(f"channels.{key}", row, "base_url", providers_of.get(key, key))
        for key, row in settings.channels.items()
    }
    changed["api"] = placed("api", settings.api, "public_url", "api")
    return settings.model_copy(update=changed)


def _fixed(section: Mapping[str, Any], model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[str]:
    """The keys of `section`, or of sections in it, that are no settings."""
    for key, value in section.items():
        field = field_of(model, [*path, key])
        if field is not None and field.json_schema_extra == FIXED:
            yield ".".join((*path, key))
        elif isinstance(value, Mapping):
            yield from _fixed(value, model, (*path, key))


def _beneath(section: Mapping[str, Any], profile: Mapping[str, Any]) -> dict[str, Any]:
    """The section, with what the profile says where the section says nothing. A row, or an optional section,
    that is not there is not made."""
    rows = dict.fromkeys(section, profile["*"]) if "*" in profile else profile
    merged = dict(section)
    for key, value in rows.items():
        own = section.get(key)
        if not isinstance(value, Mapping):
            merged.setdefault(key, value)
        elif isinstance(own, Mapping):
            merged[key] = _beneath(own, value)
        elif key not in _OPTIONAL and key not in section:
            merged[key] = _beneath({}, value)
    return merged


def _validated(section: object, stage: str) -> Settings:
    if not isinstance(section, Mapping):
        raise SettingsError(f"mailroom.{stage}: {section!r} is of the wrong kind; use a section in braces.")
    if "stage" in section:
        raise SettingsError(
            f"mailroom.{stage}.stage: is not a setting; the section's own key names the stage."
        )
    for path in _fixed(section, Settings):
        raise SettingsError(f"mailroom.{stage}.{path}: is fixed, and no setting; remove it.")
    given = _beneath(section, LOCAL) if section.get("profile") == "local" else section
    try:
        # As JSON, for that is what it was: a list is then a tuple, and still no text a number.
        return Settings.model_validate_json(json.dumps({**given, "stage": stage}))
    except ValidationError as error:
        raise SettingsError(sentence(error, Settings, f"mailroom.{stage}.")) from error
