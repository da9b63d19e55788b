"""Reads a stage's settings out of the app's context and refuses what cannot work."""

import json
from collections.abc import Mapping

from pydantic import ValidationError

from stacks.rules import broken_rules
from stacks.sentences import SettingsError, sentence
from stacks.settings import Settings


def load(stages: object, stage: object) -> Settings:
    """The settings of `stage` among `stages`, the context's `mailroom`. Raises SettingsError."""
    if not isinstance(stages, Mapping) or not stages:
        raise SettingsError("mailroom: is missing from cdk.json's context; add a section for each stage.")
    if stage not in stages:
        raise SettingsError(
            f"stage: {stage!r} is unknown; use one of {', '.join(stages)}, as in -c stage=dev."
        )
    settings = _validated(stages[stage], str(stage))
    for broken in broken_rules(settings):
        raise SettingsError(f"mailroom.{stage}.{broken}")
    return settings


def _validated(section: object, stage: str) -> Settings:
    if not isinstance(section, Mapping):
        raise SettingsError(f"mailroom.{stage}: {section!r} is of the wrong kind; use a section in braces.")
    if "stage" in section:
        raise SettingsError(
            f"mailroom.{stage}.stage: is not a setting; the section's own key names the stage."
        )
    try:
        # As JSON, for that is what it was: a list is then a tuple, and still no text a number.
        return Settings.model_validate_json(json.dumps({**section, "stage": stage}))
    except ValidationError as error:
        raise SettingsError(sentence(error, Settings, f"mailroom.{stage}")) from error
