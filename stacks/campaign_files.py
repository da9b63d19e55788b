"""The campaigns that a stage has, read from their folders."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stacks.merging import merged
from stacks.paths import CAMPAIGN_FILE as FILE
from stacks.paths import CAMPAIGNS
from stacks.sentences import SettingsError, path_of, sentence
from stacks.settings import Campaign, Settings

MODULE = "campaign.py"
LANE = "bulk"
"""Of every campaign's messages, so that they never delay what somebody waits for."""


@dataclass(frozen=True)
class EnabledCampaign:
    """One campaign as one stage has it."""

    name: str
    folder: Path
    stage: str
    overrides: Mapping[str, Any]
    chosen: Campaign

    @property
    def module(self) -> str | None:
        """Where its own Python file lies in a bundle; None where it has none."""
        return f"campaigns/{self.name}/{MODULE}" if (self.folder / MODULE).is_file() else None

    @property
    def collected(self) -> tuple[str, ...]:
        """The databases that collecting its audience asks."""
        audience = self.chosen.audience
        if audience.kind == "module":
            return self.chosen.databases
        return (audience.database,) if audience.database else ()

    @property
    def composed(self) -> tuple[str, ...]:
        """The databases that composing its messages may ask: none without code of its own."""
        audiences = (self.chosen.audience.database,) if self.chosen.audience.database else ()
        return (*audiences, *self.chosen.databases) if self.module else ()

    def key(self, path: str) -> str:
        """Where the setting `path` was set: in its file, or over that in cdk.json."""
        return f"{_place(self.name, self.stage, self.overrides, path.split('.'))}{path}"

    def sources(self) -> dict[str, Path]:
        """Its Python files, by their paths in a bundle."""
        return {
            f"campaigns/{self.name}/{file.relative_to(self.folder).as_posix()}": file
            for file in sorted(self.folder.rglob("*.py"))
        }

    def definition(self) -> dict[str, Any]:
        """What its functions are told of it, in JSON's types."""
        chosen = self.chosen
        template = {"template": chosen.template} if chosen.template else {}
        return {
            "name": self.name,
            "lane": LANE,
            "module": self.module,
            "attributes": {**template, **chosen.attributes},
            "audience": self.audience(),
            **{
                each: getattr(chosen, each)
                for each in ("channel", "topic", "page_size", "recipients_per_message", "max_pages")
            },
            "expires_after_hours": chosen.expires_after_hours,
        }

    def audience(self) -> dict[str, Any]:
        """Its audience, with the stage's name where {stage} stands."""
        told = self.chosen.audience.model_dump(mode="json", exclude_none=True)
        for name in ("location", "table"):
            if name in told:
                told[name] = told[name].replace("{stage}", self.stage)
        return told


def read_campaigns(settings: Settings, folder: Path = CAMPAIGNS) -> tuple[EnabledCampaign, ...]:
    """The campaigns that a stage enables, of those in `folder`. Raises SettingsError."""
    section = settings.campaigns
    key = f"mailroom.{settings.stage}.campaigns"
    for at, name in enumerate(section.enabled):
        if name in section.enabled[:at]:
            raise SettingsError(f"{key}.enabled.{at}: {name!r} stands there twice; remove one.")
    for name in section.overrides:
        if name not in section.enabled:
            raise SettingsError(f"{key}.overrides.{name}: is not enabled; enable it, or remove this.")
    return tuple(_read(name, folder, settings) for name in section.enabled)


def _read(name: str, folder: Path, settings: Settings) -> EnabledCampaign:
    overrides = settings.campaigns.overrides.get(name, {})
    whole = merged(_toml(name, folder, settings.stage), overrides)
    try:
        # As JSON, as the stage's own settings: a list is then a tuple, and still no text a number.
        chosen = Campaign.model_validate_json(_json(whole, name))
    except ValidationError as error:
        place = _place(name, settings.stage, overrides, path_of(error))
        raise SettingsError(sentence(error, Campaign, place)) from error
    return EnabledCampaign(name, folder / name, settings.stage, overrides, chosen)


def _toml(name: str, folder: Path, stage: str) -> dict[str, Any]:
    file = folder / name / FILE
    if not file.is_file():
        there = ", ".join(sorted(each.parent.name for each in folder.glob(f"*/{FILE}"))) or "none yet"
        raise SettingsError(
            f"mailroom.{stage}.campaigns.enabled: {name!r} has no file campaigns/{name}/{FILE}; add it, or "
            f"name one that is there: {there}."
        )
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"campaigns/{name}/{FILE}: is no TOML: {error}.") from None


def _json(whole: dict[str, Any], name: str) -> str:
    """TOML's dates and times as text; its numbers without end are none in JSON."""
    try:
        return json.dumps(whole, default=str, allow_nan=False)
    except ValueError:
        raise SettingsError(
            f"campaigns/{name}/{FILE}: holds inf or nan, which no item can; remove it."
        ) from None


def _place(name: str, stage: str, overrides: Mapping[str, Any], path: list[str]) -> str:
    inside: Any = overrides
    for part in path:
        if not isinstance(inside, Mapping) or part not in inside:
            return f"campaigns/{name}/{FILE}: "
        inside = inside[part]
    return f"mailroom.{stage}.campaigns.overrides.{name}."
