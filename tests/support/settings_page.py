"""The tables of the page settings: every setting with its default, bounds and meaning. `make schema` writes
them."""

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mailroom_stacks.settings.sentences import number
from mailroom_stacks.settings.settings import Settings
from tests.support import ROOT

PAGE = ROOT / "docs" / "reference" / "settings.md"
BEGIN, END = "<!-- made by `make schema` -->\n", "<!-- until here -->\n"
_NAMES = {"channels": "channel", "lanes": "lane", "databases": "name", "topics": "topic"}
"""Word in keys of the table for the name of a row."""


def settings_of(model: type[BaseModel] = Settings, within: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every setting with its whole key, below the stage."""
    for name, field in model.model_fields.items():
        if name == "stage":
            continue
        key = f"{within}{name}"
        section = next(_sections(field.annotation), None)
        if section is None:
            yield key, field
        else:
            row = f".<{_NAMES[name]}>" if name in _NAMES else ""
            yield from settings_of(section, f"{key}{row}.")


def tables() -> str:
    """The settings as Markdown, a table for each section of a stage."""
    by_section: dict[str, list[str]] = {}
    for key, field in settings_of():
        section = key.partition(".")[0] if "." in key else "the stage"
        by_section.setdefault(section, []).append(f"| `{key}` | {_value(field)} | {_meaning(field)} |")
    written = []
    for section, rows in by_section.items():
        written += [f"### {section}", "", "| key | default | |", "|---|---|---|", *rows, ""]
    return "\n".join(written)


def with_new_tables(text: str) -> str:
    """Return the page with new tables."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    """The model that a section, or each row of a table, is of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is not tuple:
        for each in get_args(annotation):
            yield from _sections(each)


def _value(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(default, bool):
        return str(default).lower()
    if default in (None, (), {}, ""):
        return "none"
    if isinstance(default, tuple):
        return ", ".join(map(str, default if len(default) <= 3 else (default[0], "…", default[-1])))
    low = next((number(each.ge) for each in field.metadata if isinstance(each, Ge)), "")
    high = next((number(each.le) for each in field.metadata if isinstance(each, Le)), "")
    return f"{number(default)}" + (f" ({low} to {high})" if low else "")


def _meaning(field: FieldInfo) -> str:
    words = " ".join((field.description or "").split()).replace("|", "\\|")
    return words[:1].upper() + words[1:]


if __name__ == "__main__":
    PAGE.write_text(with_new_tables(PAGE.read_text()))
