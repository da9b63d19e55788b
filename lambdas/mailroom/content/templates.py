"""Templates: Jinja2 in its sandbox, with bounds on what one rendering may cost.

A template is its deployer's; its variables are a producer's. The sandbox keeps both from Python's
internals. The bounds keep a loop over a producer's number from eating the function's time, which would
take the rest of the batch with it; they are no defence against a deployer who means harm.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, Template, TemplateError, TemplateNotFound, nodes
from jinja2.exceptions import UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mailroom.errors import Invalid
from mailroom.message.address import has_control

MAX_STEPS = 20_000
"""Loop passes and calls of one rendering."""
MAX_CHARACTERS = 5_000_000
"""Of one rendered part."""

MAX_REPEATED = 100_000
"""Characters or entries that a `*` may make."""
_RUN = 64

_steps_left: ContextVar[int] = ContextVar("steps_left")


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
        self._environment = _Bounded(
            loader=FileSystemLoader(root),
            autoescape=lambda name: name is not None and name.endswith(".html"),
            undefined=StrictUndefined,
            finalize=lambda value: "" if value is None else value,
            auto_reload=False,
        )
        self._environment.globals.pop("lipsum")

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
        except TemplateError as error:
            raise Invalid("template", f"{name}/{file} cannot be read: {error}") from None
        return _render(template, f"{name}/{file}", variables)


def _render(template: Template, name: str, variables: dict[str, Any]) -> str:
    token = _steps_left.set(MAX_STEPS)
    try:
        context = template.new_context(variables, shared=True)  # as it is: no copy for each of the parts
        return _joined(template.root_render_func(context))
    except UndefinedError as error:
        missing = re.match(r"'(\w+)' is undefined", str(error))
        if missing:
            raise Invalid(missing[1], f"is missing; {name} uses it, so the item must have it") from None
        raise Invalid("template", f"{name}: {error}; check the item's attributes against it") from None
    except Exception as error:  # noqa: BLE001 - whatever a template raises is its own or its variables' fault
        raise Invalid("template", f"{name} failed: {type(error).__name__}: {error}") from None
    finally:
        _steps_left.reset(token)


def _joined(parts: Iterator[str]) -> str:
    """All parts, looked at in runs: one by one the counting would cost more than the rendering."""
    text = ""
    while run := list(islice(parts, _RUN)):
        text += "".join(run)
        if len(text) > MAX_CHARACTERS:
            raise OverflowError(f"it writes over {MAX_CHARACTERS} characters; write less")
    return text


def _step() -> None:
    left = _steps_left.get() - 1
    if left < 0:
        raise OverflowError(f"it takes over {MAX_STEPS} loop passes and calls; loop over less")
    _steps_left.set(left)


def _counted(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        _step()
        yield value


class _Bounded(ImmutableSandboxedEnvironment):
    """Counts loop passes and calls, and refuses a `*` or `**` that would fill the memory."""

    intercepted_binops = frozenset({"*", "**"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.filters["counted"] = _counted

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        for loop in template.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "counted", [], [], None, None, lineno=loop.lineno)
        return template

    def call(self, *args: Any, **kwargs: Any) -> Any:
        _step()
        return super().call(*args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        _check_size(operator, left, right)
        return super().call_binop(context, operator, left, right)


def _check_size(operator: str, left: Any, right: Any) -> None:
    if operator == "**":
        too_large = abs(right) > 64
    else:
        text, times = (left, right) if hasattr(left, "__len__") else (right, left)
        too_large = hasattr(text, "__len__") and len(text) * times > MAX_REPEATED
    if too_large:
        raise OverflowError(f"{operator} makes a value that is too large")
