"""Template engine: MiniJinja with Mailroom's settings and limits.

Templates are written by people who deploy, but their variables come from producers. MiniJinja renders without
access to Python, limits its work by `FUEL`, and keeps no state between two renderings.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from minijinja import Environment, TemplateError, pass_state, safe
from minijinja._lowlevel import State
from msgspec import Struct

from mailroom.content.source import from_variables, references, strict, used
from mailroom.errors import Invalid

FUEL = 250_000
"""Maximum work of a rendering. MiniJinja counts 1 for an instruction, and 1 for 64 bytes that it reads or
writes: enough for an order of some 10,000 lines, or for 16 MB of text."""
MAX_RENDERED_BYTES = 1024 * 1024
"""Maximum size of a rendered part, as UTF-8. Gmail cuts off a mail's HTML at 102 KB."""


class TemplateFault(Invalid):
    """Error of a template, or of a variable that the template uses."""

    def __init__(self, field: str, problem: str, place: str) -> None:
        self.place = place
        """Name of the template and line, such as welcome/body.txt:12."""
        super().__init__(field, problem)

    @property
    def sentence(self) -> str:
        """Sentence for the author of the template, which contains the template's name and the line."""
        return self.problem if self.field == "template" else f"{self.place}: {self}"


class Part(Struct, frozen=True):
    """Source of a template, with the names of the variables and of the templates that it uses."""

    source: str
    variables: frozenset[str]
    parts: frozenset[str]
    """Names of the templates that it extends, includes or imports."""


class Engine:
    """Renders the templates of one folder, or of one published version."""

    def __init__(
        self,
        load: Callable[[str], str | None],
        names: Callable[[], Iterable[str]],
        *,
        reload: bool = False,
    ) -> None:
        """Create the engine. `load` returns the source of a template, or None for an unknown name; `names`
        returns the names of all templates. If `reload`, a source may change after its first use."""
        self._load = load
        self._names = names
        self._reload = reload
        self._shadowed = self._methods_in if reload else cache(self._methods_in)
        self.part = self._part if reload else cache(self._part)
        """Function that returns the `Part` for a template's name. It raises TemplateFault for a template that
        cannot be parsed, that uses an unknown filter or test, or that uses a variable where only a literal is
        allowed (see `from_variables`)."""
        self._environment = Environment(
            loader=self._strict_source,
            undefined_behavior="strict",
            fuel=FUEL,
            finalizer=_written,
        )
        # `debug` is removed, because it would write all variables of a message into the text.
        self._environment.remove_global("debug")

    def __contains__(self, name: str) -> bool:
        return self._load(name) is not None

    def _strict_source(self, name: str) -> str | None:
        source = self._load(name)
        return None if source is None else strict(source)

    def render(self, name: str, variables: Mapping[str, Any]) -> str:
        """Return the rendered template; `variables` come from `values_of`. Raises TemplateFault."""
        if self._reload:
            self._environment.reload()
        try:
            unset = _unset(self._shadowed(name) - variables.keys())
            rendered = self._environment.render_str(f"{unset}{{% include {name!r} %}}", **variables)
        except TemplateFault:  # the fault is in an included file
            raise
        except Exception as error:  # noqa: BLE001 - any error of a rendering is the template's or a variable's
            raise _fault_of(error, name) from None
        if (size := len(rendered.encode())) > MAX_RENDERED_BYTES:
            problem = f"{name} writes {size:,} bytes; write at most {MAX_RENDERED_BYTES:,}"
            raise TemplateFault("template", problem, name)
        return rendered

    def _part(self, name: str) -> Part:
        source = self._load(name) or ""
        self._check_names(name, source)
        named = [*references(source)]
        try:
            variables = self._environment.undeclared_variables_in_str(source).union(
                *map(self._environment.undeclared_variables_in_str, (reference.tag for reference in named))
            )
        except TemplateError as error:
            raise _fault_of(error, name) from None
        return Part(
            source,
            frozenset(variables - _BUILT_IN - self._environment.globals.keys()),
            frozenset(part for reference in named for part in reference.names),
        )

    def reached(self, names: Iterable[str]) -> dict[str, Part]:
        """Return these templates and all templates that they use, directly or indirectly, by name. Raises
        TemplateFault."""
        parts, waiting = dict[str, Part](), [*names]
        while waiting:
            name = waiting.pop()
            if name not in parts and name in self:
                parts[name] = part = self.part(name)
                waiting += part.parts
        return parts

    def variables(self, names: Iterable[str]) -> frozenset[str]:
        """Return the variables in these templates and in all templates that they use. Raises
        TemplateFault."""
        return frozenset().union(*(part.variables for part in self.reached(names).values()))

    def _methods_in(self, name: str) -> frozenset[str]:
        """Return the variables of a template that have the name of a method of dict. Raises TemplateFault."""
        return self.variables([name]) & _DICT_METHODS

    def faults(self, below: str = "") -> Iterator[TemplateFault]:
        """Check the templates whose names begin with `below`, and yield their faults."""
        for name in self._names():
            if name.startswith(below):
                try:
                    self.part(name)
                except TemplateFault as fault:
                    yield fault

    def _check_names(self, name: str, source: str) -> None:
        """Raise TemplateFault for an unknown filter or test. MiniJinja only reports it when the expression is
        rendered, so that an error in a rarely used branch would be found only when a message fails."""
        for kind, word, line in used(source):
            if not self._environment.eval_expr(f"name is {kind}", name=word):
                place = f"{name}:{line}"
                problem = (
                    f"{place} uses the {kind} {word!r:.60}, which is unknown; "
                    "see `mailroom docs write-templates`"
                )
                raise TemplateFault("template", problem, place)
        for argument, line in from_variables(source):
            place = f"{name}:{line}"
            problem = f"{place} takes {argument} from a variable; use literals and `if` instead"
            raise TemplateFault("template", problem, place)


_BUILT_IN = frozenset(("caller", "kwargs", "loop", "self", "super", "varargs"))


@pass_state
def _written(state: State, value: Any) -> Any:
    """Return the text that a value is written as: null is empty, a whole number is written without a
    fraction, and in HTML the special characters of a text are escaped. MiniJinja's own function would also
    escape the slashes of URLs."""
    if value is None:
        return ""
    if type(value) is str and state.auto_escape == "html":
        return safe(html.escape(value))
    # MiniJinja passes the number 19.0 as the int 19, although MiniJinja itself would write 19.0.
    return value if type(value) is int else NotImplemented


_UNSET = "__unset_"
_DICT_METHODS = frozenset(name for name in dir(dict) if not name.startswith("_"))


def _unset(missing: frozenset[str]) -> str:
    """Return template statements that make missing variables undefined whose names are methods of dict.
    Otherwise a missing variable `items` would be the method, because MiniJinja looks for variables in a
    dict."""
    return "".join(f"{{% set {name} = {_UNSET}{name} %}}" for name in sorted(missing))


_CAUSE = re.compile(r"^(?:caused by: )?([a-z][a-z ]*?)(?:: (.*))? \(in (.+):(\d+)\)$", re.MULTILINE)
_MISSING = re.compile(rf"`(?:{_UNSET})?([^`]+)` is undefined")


def _fault_of(error: Exception, name: str) -> TemplateFault:
    """Return the TemplateFault for an error of MiniJinja. The last cause in the error is used, which may be
    in an included template."""
    causes = _CAUSE.findall(str(error)) if isinstance(error, TemplateError) else []
    if not causes:
        # The error comes from a list or a map of `values_of`, or from MiniJinja itself.
        return TemplateFault("template", f"{name} failed: {error!s:.200}", name)
    kind, detail, part, line = causes[-1]
    place = f"{name if part == '<string>' else part}:{line}"
    if missing := _MISSING.search(detail):
        return TemplateFault(missing[1], f"is missing; {place} uses it, so the item must have it", place)
    if kind == "syntax error":
        return TemplateFault("template", f"{place} cannot be read: {detail:.200}", place)
    if kind == "engine ran out of fuel":
        detail = f"it takes over {FUEL:,} steps of work; loop over less, or write less"
    return TemplateFault("template", f"{place} failed: {detail or kind:.200}", place)
