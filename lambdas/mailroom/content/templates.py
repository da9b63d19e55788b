"""A message's template and its variables as the parts of the message."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError, TemplateNotFound
from jinja2.exceptions import UndefinedError

from mailroom.content.sandbox import BoundedEnvironment, budget
from mailroom.errors import Invalid
from mailroom.message.address import has_control


@dataclass(frozen=True, slots=True)
class Content:
    """A mail's parts; `html` or `text` is None where there is none."""

    subject: str
    html: str | None
    text: str | None


class Templates:
    """The templates under one folder: `<name>/subject.txt` with `body.html`, `body.txt` or both; where texts
    alone are sent, `<name>/body.txt`.

    Names that start with `_` are shared parts, for `extends` and `include` alone.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._environment = BoundedEnvironment(root)

    def names(self, file: str = "subject.txt") -> list[str]:
        """The templates there are, by the file that each of them has."""
        return sorted(path.parent.name for path in self._root.glob(f"[!_]*/{file}"))

    def render(self, name: str, variables: Mapping[str, Any]) -> Content:
        """The mail's content. Raises Invalid that names the template or the variable at fault."""
        shared = {**self._environment.globals, **variables}
        subject = self._part(name, "subject.txt", shared)
        if subject is None:
            raise self._unknown(name, "subject.txt")
        html, text = self._part(name, "body.html", shared), self._part(name, "body.txt", shared)
        if html is None and text is None:
            raise Invalid("template", f"{name!r} has neither body.html nor body.txt; add one")
        subject = subject.strip()
        if has_control(subject):
            raise Invalid("subject", "the rendered one holds a line break; a variable in it must be one line")
        if not subject:
            raise Invalid("subject", f"the one of template {name!r} came out empty; fill its variables")
        return Content(subject, html, text)

    def text(self, name: str, variables: Mapping[str, Any]) -> str:
        """A text alone, of `body.txt`. Raises Invalid that names the template or the variable at fault."""
        text = self._part(name, "body.txt", {**self._environment.globals, **variables})
        if text is None:
            raise self._unknown(name, "body.txt")
        return text

    def _unknown(self, name: str, file: str) -> Invalid:
        return Invalid("template", f"{name!r} is unknown; use one of: {', '.join(self.names(file))}")

    def _part(self, name: str, file: str, variables: dict[str, Any]) -> str | None:
        try:
            template = self._environment.get_template(f"{name}/{file}")
        except TemplateNotFound:
            return None
        except (TemplateError, RecursionError) as error:  # the second: of thousands of brackets
            raise Invalid("template", f"{name}/{file} cannot be read: {error}") from None
        return _render(template, f"{name}/{file}", variables)


def _render(template: Template, name: str, variables: dict[str, Any]) -> str:
    try:
        context = template.new_context(variables, shared=True)  # as it is: no copy for each of the parts
        with budget():
            return BoundedEnvironment.concat(template.root_render_func(context))
    except UndefinedError as error:
        missing = re.match(r"'(\w+)' is undefined", str(error))
        if missing:
            raise Invalid(missing[1], f"is missing; {name} uses it, so the item must have it") from None
        raise Invalid("template", f"{name}: {error}; check the item's attributes against it") from None
    except Exception as error:  # noqa: BLE001 - whatever a template raises is its own or its variables' fault
        raise Invalid("template", f"{name} failed: {type(error).__name__}: {error}") from None
