"""Reads the campaigns of a stage from their folders, and checks their rules."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import structs
from pydantic import ValidationError

from mailroom.campaigns.definition import LANE, AudienceDefinition, Definition
from mailroom_stacks.merging import merged
from mailroom_stacks.paths import CAMPAIGN_FILE as FILE
from mailroom_stacks.paths import CAMPAIGNS, TEMPLATES
from mailroom_stacks.settings.campaign import Campaign
from mailroom_stacks.settings.databases import RDS_BUNDLE
from mailroom_stacks.settings.sentences import SettingsError, path_of, sentence
from mailroom_stacks.settings.settings import Settings

MODULE = "campaign.py"
DEFINED = {
    "channel",
    "topic",
    "page_size",
    "recipients_per_message",
    "max_pages",
    "expires_after_hours",
    "window",
    "unless",
}
"""Settings that the functions of campaigns get unchanged."""


@dataclass(frozen=True)
class EnabledCampaign:
    """Campaign with the overrides of one stage."""

    name: str
    folder: Path
    stage: str
    overrides: Mapping[str, Any]
    """Settings of the campaign that the stage overrides in cdk.json."""
    chosen: Campaign
    """Settings of campaign.toml, with `overrides` applied."""

    @property
    def module(self) -> str | None:
        """Path of the campaign's Python file in a bundle, or None if the file does not exist."""
        return f"campaigns/{self.name}/{MODULE}" if (self.folder / MODULE).is_file() else None

    @property
    def collected(self) -> tuple[str, ...]:
        """Names of the databases that `collect` queries for the campaign's audience."""
        audience = self.chosen.audience
        if audience.kind == "module":
            return self.chosen.databases
        return (audience.database,) if audience.database else ()

    @property
    def composed(self) -> tuple[str, ...]:
        """Names of the databases that `compose` may query for the campaign's messages. A campaign without a
        Python file needs none."""
        audiences = (self.chosen.audience.database,) if self.chosen.audience.database else ()
        return (*audiences, *self.chosen.databases) if self.module else ()

    def key(self, path: str) -> str:
        """Return the source of a setting for error messages: the campaign's file and the path, or the key in
        cdk.json if the setting is overridden there."""
        return f"{_place(self.name, self.stage, self.overrides, path.split('.'))}{path}"

    def sources(self) -> dict[str, Path]:
        """Return the campaign's Python files, by their paths in a bundle."""
        return {
            f"campaigns/{self.name}/{file.relative_to(self.folder).as_posix()}": file
            for file in sorted(self.folder.rglob("*.py"))
        }

    def definition(self) -> Definition:
        """Return the campaign in the form that the functions read. In the location of its audience, {stage}
        is replaced by the stage's name."""
        template = {"template": self.chosen.template} if self.chosen.template else {}
        audience = self.chosen.audience.model_dump(mode="json", exclude_none=True)
        if "location" in audience:
            audience["location"] = audience["location"].replace("{stage}", self.stage)
        fields = {
            "name": self.name,
            "module": self.module,
            "attributes": {**template, **self.chosen.attributes},
            "audience": audience,
            **self.chosen.model_dump(include=DEFINED),
        }
        return msgspec.convert(fields, Definition)


def read_campaigns(settings: Settings, folder: Path = CAMPAIGNS) -> tuple[EnabledCampaign, ...]:
    """Return the campaigns that a stage enables, read from `folder`. Raises SettingsError."""
    section = settings.campaigns
    key = f"mailroom.{settings.stage}.campaigns"
    for name in section.overrides:
        if name not in section.enabled:
            raise SettingsError(f"{key}.overrides.{name}: is not enabled; enable it, or remove this key.")
    return tuple(_read(name, folder, settings) for name in dict.fromkeys(section.enabled))


def _read(name: str, folder: Path, settings: Settings) -> EnabledCampaign:
    overrides = settings.campaigns.overrides.get(name, {})
    whole = merged(_toml(name, folder, settings.stage), overrides)
    try:
        # Validation as JSON, as for the stage's own settings, converts a list to a tuple, but never a string
        # to a number. TOML's dates become strings. Its inf and nan are rejected, because no item can contain
        # them.
        campaign = Campaign.model_validate_json(json.dumps(whole, default=str, allow_nan=False))
    except ValidationError as error:
        place = _place(name, settings.stage, overrides, path_of(error))
        raise SettingsError(sentence(error, place)) from error
    except ValueError as error:
        raise SettingsError(f"campaigns/{name}/{FILE}: {error}.") from None
    return EnabledCampaign(name, folder / name, settings.stage, overrides, campaign)


def _toml(name: str, folder: Path, stage: str) -> dict[str, Any]:
    file = folder / name / FILE
    if not file.is_file():
        names = ", ".join(sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))) or "none yet"
        raise SettingsError(
            f"mailroom.{stage}.campaigns.enabled: {name!r} has no file campaigns/{name}/{FILE}; add it, or "
            f"use one of: {names}."
        )
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"campaigns/{name}/{FILE}: is not TOML: {error}.") from None


def _place(name: str, stage: str, overrides: Mapping[str, Any], path: list[str]) -> str:
    inside: Any = overrides
    for part in path:
        if not isinstance(inside, Mapping) or part not in inside:
            return f"campaigns/{name}/{FILE}: "
        inside = inside[part]
    return f"mailroom.{stage}.campaigns.overrides.{name}."


UNTOPICAL = ("sms", "push")
"""Channels with their own ways to stop messages, such as STOP for SMS, so that a campaign on them does not
need a topic."""


def campaigns_faults(settings: Settings, campaigns: Sequence[EnabledCampaign]) -> Iterator[str]:
    """Yield a sentence for each rule that the enabled campaigns break, beginning with the whole key."""
    for campaign in campaigns:
        yield from _channel(settings, campaign)
        yield from audience_faults(settings, campaign)


def _channel(settings: Settings, campaign: EnabledCampaign) -> Iterator[str]:
    options = campaign.chosen
    row = settings.channels.get(options.channel)
    if row is None:
        yield (
            f"{campaign.key('channel')}: {options.channel!r} is not a channel that campaigns of the stage "
            f"can use; use {' or '.join(settings.channels)}."
        )
        return
    if LANE not in row.lanes:
        yield (
            f"{campaign.key('channel')}: {options.channel!r} has no lane for campaigns; add "
            f"mailroom.{settings.stage}.channels.{options.channel}.lanes.{LANE}."
        )
    if options.window and "zone" not in options.window and "time_zone" not in options.audience.columns:
        yield (
            f"{campaign.key('window')}: has no zone; add one such as Europe/Berlin, or add time_zone to "
            "audience.columns for the zone of each recipient."
        )
    if options.unless is not None and options.unless.event_type not in settings.channels:
        yield (
            f"{campaign.key('unless.event_type')}: {options.unless.event_type!r} is not a channel of the "
            f"stage; use {' or '.join(settings.channels)}."
        )
    if options.topic is None and options.channel not in UNTOPICAL:
        yield f"{campaign.key('topic')}: is missing; {options.channel} needs a topic to opt out of."
    if options.template is not None:
        yield from _template(campaign, options.template)


def _template(campaign: EnabledCampaign, template: str) -> Iterator[str]:
    folder = f"templates/{campaign.chosen.channel}"
    templates = sorted(file.parent.name for file in (TEMPLATES.parent / folder).glob("[!_]*/body.*"))
    if template not in templates:
        choice = ", ".join(dict.fromkeys(templates)) or "none"
        yield (
            f"{campaign.key('template')}: {template!r} is not a template in {folder}/; add it, or use one "
            f"of: {choice}."
        )


def databases_faults(settings: Settings, campaigns: Sequence[EnabledCampaign], root: Path) -> Iterator[str]:
    """Yield a sentence for each database of enabled campaigns whose `ca_file`, a path below `root`, does not
    exist."""
    used = {name for campaign in campaigns for name in (*campaign.collected, *campaign.composed)}
    for name, database in settings.databases.items():
        if name in used and database.ca_file is not None and not (root / database.ca_file).is_file():
            yield (
                f"mailroom.{settings.stage}.databases.{name}.ca_file: {database.ca_file!r} does not exist; "
                f"add it (for RDS: {RDS_BUNDLE}), or use null for the CA certificates of the system."
            )


def compose_concurrency(campaigns: Sequence[EnabledCampaign]) -> int:
    """Return the lowest `concurrency` of the campaigns, because all campaigns share the queue of
    `compose`."""
    return min(campaign.chosen.concurrency for campaign in campaigns)


KINDS = {kind.__struct_config__.tag: structs.fields(kind) for kind in get_args(AudienceDefinition)}
"""Fields of each kind of audience."""


def audience_faults(settings: Settings, campaign: EnabledCampaign) -> Iterator[str]:
    """Yield violations of the rules of the section `audience`, and databases of the campaign that the stage
    does not have."""
    audience = campaign.chosen.audience
    for field in KINDS[audience.kind]:
        if field.required and getattr(audience, field.name) is None:
            yield f"{campaign.key(f'audience.{field.name}')}: is missing; the kind {audience.kind} needs it."
    if audience.kind == "module" and campaign.module is None:
        yield (
            f"{campaign.key('audience.kind')}: 'module' needs campaigns/{campaign.name}/{MODULE} with "
            "recipients(page); add it, or use another kind."
        )
    references = [("audience.database", audience.database)]
    references += [("databases", database) for database in campaign.chosen.databases]
    for path, name in references:
        if name is not None and name not in settings.databases:
            choice = ", ".join(settings.databases) or "none yet"
            yield (
                f"{campaign.key(path)}: {name!r} is not in mailroom.{settings.stage}.databases; add it "
                f"there, or use one of: {choice}."
            )
