"""The campaigns that a stage has, read from their folders, and the rules of each with the stage around it."""

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
from mailroom_stacks.settings.campaigns import COLLECTORS
from mailroom_stacks.settings.databases import database_faults
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
"""The settings of a campaign that its functions are told as they are."""


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
        """The campaign's Python files, by their paths in a bundle."""
        return {
            f"campaigns/{self.name}/{file.relative_to(self.folder).as_posix()}": file
            for file in sorted(self.folder.rglob("*.py"))
        }

    def definition(self) -> Definition:
        """The campaign as its functions read it; {stage} in its location is the stage's name."""
        chosen = self.chosen
        template = {"template": chosen.template} if chosen.template else {}
        audience = chosen.audience.model_dump(mode="json", exclude_none=True)
        if "location" in audience:
            audience["location"] = audience["location"].replace("{stage}", self.stage)
        told = {
            "name": self.name,
            "module": self.module,
            "attributes": {**template, **chosen.attributes},
            "audience": audience,
            **chosen.model_dump(include=DEFINED),
        }
        return msgspec.convert(told, Definition)


def read_campaigns(settings: Settings, folder: Path = CAMPAIGNS) -> tuple[EnabledCampaign, ...]:
    """The campaigns that a stage enables, of those in `folder`. Raises SettingsError."""
    section = settings.campaigns
    key = f"mailroom.{settings.stage}.campaigns"
    for name in section.overrides:
        if name not in section.enabled:
            raise SettingsError(f"{key}.overrides.{name}: is not enabled; enable it, or remove this.")
    return tuple(_read(name, folder, settings) for name in dict.fromkeys(section.enabled))


def _read(name: str, folder: Path, settings: Settings) -> EnabledCampaign:
    overrides = settings.campaigns.overrides.get(name, {})
    whole = merged(_toml(name, folder, settings.stage), overrides)
    try:
        # As JSON, as the stage's own settings: a list is then a tuple, and still no text a number. TOML's
        # dates become text; its inf and nan are refused, for no item can hold them.
        chosen = Campaign.model_validate_json(json.dumps(whole, default=str, allow_nan=False))
    except ValidationError as error:
        place = _place(name, settings.stage, overrides, path_of(error))
        raise SettingsError(sentence(error, place)) from error
    except ValueError as error:
        raise SettingsError(f"campaigns/{name}/{FILE}: {error}.") from None
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
        raise SettingsError(f"campaigns/{name}/{FILE}: is not TOML: {error}.") from None


def _place(name: str, stage: str, overrides: Mapping[str, Any], path: list[str]) -> str:
    inside: Any = overrides
    for part in path:
        if not isinstance(inside, Mapping) or part not in inside:
            return f"campaigns/{name}/{FILE}: "
        inside = inside[part]
    return f"mailroom.{stage}.campaigns.overrides.{name}."


UNTOPICAL = ("sms", "push")
"""Channels whose own programs let people stop messages: a campaign there may go without a topic."""


def campaigns_faults(settings: Settings, campaigns: Sequence[EnabledCampaign]) -> Iterator[str]:
    """A sentence for each rule that the enabled campaigns break, each starting with the whole key."""
    for campaign in campaigns:
        yield from _channel(settings, campaign)
        yield from audience_faults(settings, campaign)


def _channel(settings: Settings, campaign: EnabledCampaign) -> Iterator[str]:
    chosen = campaign.chosen
    row = settings.channels.get(chosen.channel)
    if row is None:
        yield (
            f"{campaign.key('channel')}: {chosen.channel!r} is no channel of the stage that campaigns may "
            f"use; use {' or '.join(settings.channels)}."
        )
        return
    if LANE not in row.lanes:
        yield (
            f"{campaign.key('channel')}: {chosen.channel!r} has no lane for campaigns; add "
            f"mailroom.{settings.stage}.channels.{chosen.channel}.lanes.{LANE}."
        )
    if chosen.window and "zone" not in chosen.window and "time_zone" not in chosen.audience.columns:
        yield (
            f"{campaign.key('window')}: has no zone; name one like Europe/Berlin, or time_zone among "
            "audience.columns, for each recipient's own."
        )
    if chosen.unless is not None and chosen.unless.event_type not in settings.channels:
        yield (
            f"{campaign.key('unless.event_type')}: {chosen.unless.event_type!r} is no channel of the stage; "
            f"use {' or '.join(settings.channels)}."
        )
    if chosen.topic is None and chosen.channel not in UNTOPICAL:
        yield f"{campaign.key('topic')}: is missing; {chosen.channel} needs what people can opt out of."
    if chosen.template is not None:
        yield from _template(campaign, chosen.template)


def _template(campaign: EnabledCampaign, template: str) -> Iterator[str]:
    folder = f"templates/{campaign.chosen.channel}"
    there = sorted(each.parent.name for each in (TEMPLATES.parent / folder).glob("[!_]*/body.*"))
    if template not in there:
        known = ", ".join(dict.fromkeys(there)) or "none"
        yield (
            f"{campaign.key('template')}: {template!r} is not below {folder}/; add it, or use one that is "
            f"there: {known}."
        )


def databases_faults(settings: Settings, campaigns: Sequence[EnabledCampaign], root: Path) -> Iterator[str]:
    """A sentence for each rule that a database breaks which enabled campaigns ask, each starting with the
    whole key. `root` is the folder that `ca_file` begins at."""
    for name, database in settings.databases.items():
        workers = _workers(name, campaigns)
        if workers:
            key = f"mailroom.{settings.stage}.databases.{name}"
            yield from database_faults(key, database, workers, root)


def _workers(name: str, campaigns: Sequence[EnabledCampaign]) -> dict[str, int]:
    """How many of each function may ask the database at once."""
    workers = {}
    if any(name in each.collected for each in campaigns):
        workers["collect"] = COLLECTORS
    if any(name in each.composed for each in campaigns):
        workers["compose"] = compose_concurrency(campaigns)
    return workers


def compose_concurrency(campaigns: Sequence[EnabledCampaign]) -> int:
    """Return the least concurrency that a campaign allows: all campaigns share the queue of `compose`."""
    return min(campaign.chosen.concurrency for campaign in campaigns)


KINDS = {kind.__struct_config__.tag: structs.fields(kind) for kind in get_args(AudienceDefinition)}
"""What each kind of audience has."""


def audience_faults(settings: Settings, campaign: EnabledCampaign) -> Iterator[str]:
    """Rules of the section `audience`, and of the databases that it and the campaign's own code ask."""
    audience = campaign.chosen.audience
    for each in KINDS[audience.kind]:
        if each.required and getattr(audience, each.name) is None:
            yield f"{campaign.key(f'audience.{each.name}')}: is missing; {audience.kind} needs it."
    if audience.kind == "module" and campaign.module is None:
        yield (
            f"{campaign.key('audience.kind')}: 'module' needs campaigns/{campaign.name}/{MODULE} with "
            "recipients(page); add it, or use another kind."
        )
    named = [("audience.database", audience.database)]
    named += [("databases", each) for each in campaign.chosen.databases]
    for path, name in named:
        if name is not None and name not in settings.databases:
            known = ", ".join(settings.databases) or "none yet"
            yield (
                f"{campaign.key(path)}: {name!r} is not in mailroom.{settings.stage}.databases; add it "
                f"there, or use one that is there: {known}."
            )
