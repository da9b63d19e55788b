"""The section of a stage while it is asked for. The settings' own models and rules say what is missing, what
is wrong with an answer, and what would be right."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic.fields import FieldInfo

from mailroom.channels.contracts import CONTRACTS
from mailroom_ops.screen import Refused
from mailroom_stacks.settings.channels import OWN_SECTIONS
from mailroom_stacks.settings.load import load, load_campaigns
from mailroom_stacks.settings.sections import Section
from mailroom_stacks.settings.sentences import SettingsError, field_of
from mailroom_stacks.settings.stage import Settings

_LANES: Mapping[str, Any] = {"mail": {"normal": {"share": 0.5}, "bulk": {"share": 0.5}}}
"""Lanes of a new row; other channels have one lane. Campaigns use mail's second one."""


class Fault(NamedTuple):
    """What keeps a section from being deployed: the setting's key below the stage, and a sentence."""

    key: str
    sentence: str


class StageDraft:
    """The section of one stage."""

    def __init__(self, stage: str, section: Mapping[str, Any] | None) -> None:
        """`section` is the one that the stage has; None: there is no such stage."""
        self.stage = stage
        self.new = section is None
        self.removed: list[str] = []
        self._section: dict[str, Any] = copy.deepcopy(dict(section or {}))
        if self.new:
            # A first deployment that fails has to be able to take its tables away again.
            tags = {"service": "mailroom", "stage": stage}
            self._section["deployment"] = {"deletion_protection": False, "tags": tags}

    @property
    def section(self) -> dict[str, Any]:
        """The section as it will be written: a new one in the order of the settings."""
        if not self.new:
            return self._section
        order = [*Settings.model_fields]
        names = sorted(self._section, key=lambda name: order.index(name) if name in order else len(order))
        return {name: self._section[name] for name in names}

    @property
    def channels(self) -> list[str]:
        """The channels that the stage has, beside webhooks, which every stage has."""
        own = [name for name in OWN_SECTIONS if name != "webhook" and self._section.get(name)]
        return [*(self._section.get("channels") or {}), *own]

    def choose_channels(self, names: Sequence[str]) -> None:
        """Give the stage these channels. Those that it has already stay as they are, others go. Raises
        Refused for a name that is no channel's."""
        unknown = [name for name in names if name not in CONTRACTS]
        if unknown or not names:
            raise Refused(
                f"{', '.join(unknown) or 'Nothing'} is no channel; use some of {', '.join(CONTRACTS)}."
            )
        rows = self._section["channels"] = self._section.get("channels") or {}
        self.removed = [name for name in self.channels if name not in names]
        for name in self.removed:
            rows.pop(name, None)
            if not _required(name):
                self._section.pop(name, None)
        for name in names:
            if name not in OWN_SECTIONS:
                lanes = _LANES.get(name, {"normal": {"share": 1}})
                row = {"handler": f"send_{name}", "messages_per_second": 1, "lanes": lanes}
                rows.setdefault(name, copy.deepcopy(row))
            if name in Settings.model_fields and not _complete_by_default(name):
                self._section[name] = self._section.get(name) or {}
        self._section.setdefault("mail", {})  # each stage has one

    def put(self, key: str, text: str) -> None:
        """Set a setting, by its key below the stage, to what somebody has typed."""
        *path, last = key.split(".")
        section = self._section
        for name in path:
            inner = section.get(name)
            section[name] = inner if isinstance(inner, dict) else {}
            section = section[name]
        setting = asked_by(key)
        section[last] = _value(text, setting.field.annotation) if setting else text

    def typed(self, key: str) -> str | None:
        """A setting as somebody would type it; None: the section does not have it."""
        value: Any = self._section
        for name in key.split("."):
            if not isinstance(value, dict) or name not in value:
                return None
            value = value[name]
        if isinstance(value, dict):
            return ", ".join(f"{name}={each}" for name, each in value.items())
        if isinstance(value, list):
            return ", ".join(map(str, value))
        return value if isinstance(value, str) else json.dumps(value)

    def settings(self) -> Settings:
        """What the section says, with its defaults. Raises SettingsError, as synth does."""
        settings = load({self.stage: self.section}, self.stage)
        load_campaigns(settings)
        return settings

    def fault(self) -> Fault | None:
        """The first thing that synth would refuse."""
        try:
            self.settings()
        except SettingsError as error:
            key, _, sentence = str(error).removeprefix(f"mailroom.{self.stage}.").partition(": ")
            setting = asked_by(key)
            return Fault(setting.key if setting else key, sentence)
        return None


class Setting(NamedTuple):
    """A setting that one can be asked for."""

    key: str
    field: FieldInfo

    @property
    def choices(self) -> Iterator[str]:
        """What it may be, where that is one of a few words."""
        kind = _kind(self.field.annotation)
        return map(str, get_args(kind)) if get_origin(kind) is Literal else iter(())


def asked_by(key: str) -> Setting | None:
    """The setting that a key names, or lies in: a list or a table is asked for as a whole. None: the key is
    a section's, or nobody's. The stage's name is the section's own key."""
    parts = key.split(".") if key != "stage" else []
    for end in range(1, len(parts) + 1):
        field = field_of(Settings, parts[:end])
        if field is None:
            return None
        if not _holds_section(field.annotation):
            return Setting(".".join(parts[:end]), field)
    return None


def _required(name: str) -> bool:
    return name in Settings.model_fields and Settings.model_fields[name].is_required()


def _complete_by_default(name: str) -> bool:
    field = Settings.model_fields[name]
    return not field.is_required() and field.default is not None


def _holds_section(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return True
    return any(map(_holds_section, get_args(annotation)))


def _kind(annotation: Any) -> Any:
    """What a setting is when it is not null, without its bounds."""
    inside = get_args(annotation)
    if get_origin(annotation) is Annotated or NoneType in inside:
        return _kind(next(each for each in inside if each is not NoneType))
    return annotation


def _value(text: str, annotation: Any) -> Any:
    """What a setting of this kind is by a typed text; the text itself where that makes no sense, for the
    settings' models to refuse."""
    kind, text = _kind(annotation), text.strip()
    origin = get_origin(kind)
    if origin in (tuple, dict) and not text.startswith(("[", "{")):
        parts = [each.strip() for each in text.split(",") if each.strip()]
        if origin is tuple:
            return [_value(each, get_args(kind)[0]) for each in parts]
        return {name.strip(): value.strip() for name, _, value in (each.partition("=") for each in parts)}
    if kind is str or (origin is Literal and isinstance(get_args(kind)[0], str)):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
