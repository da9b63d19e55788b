"""Template engine: MiniJinja with Mailroom's settings and limits.

Templates are written by people who deploy, but their variables come from producers. MiniJinja renders without
access to Python and keeps no state between two renderings. Its fuel limits the number of steps, but not the
work of each step. So an ordinary rendering has only cheap operations, small variables and little fuel, with
which no step takes long; any other rendering has a process of its own, whose time and memory the system
limits.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from minijinja import Environment, TemplateError, pass_state, safe
from minijinja._lowlevel import State
from msgspec import Struct

from mailroom.content.source import is_cheap, references, strict, used
from mailroom.errors import Invalid

FUEL = 250_000
"""Maximum work of a rendering. MiniJinja counts 1 for an instruction, and 1 for 64 bytes that it reads or
writes: enough for an order of some 10,000 lines, or for 16 MB of text."""
SMALL_FUEL = 5_000
SMALL_VARIABLES_BYTES = 4_096
"""Limits of a rendering in the process of its function, as JSON."""
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
    """Template that was checked."""

    source: str
    variables: frozenset[str]
    """Names of the variables that it uses."""
    parts: frozenset[str]
    """Names of the templates that it extends, includes or imports."""
    cheap: bool
    """Result of `is_cheap` for the source."""


class _Plan(Struct, frozen=True):
    """Properties of templates that are rendered together."""

    shadowed: frozenset[str]
    """Variables that have the name of a method of dict."""
    cheap: bool


class Engine:
    """Renders the templates of one folder, or of one published version."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        """Create the engine for templates by name."""
        self.sources = sources
        self._html, self._text = (_environment(self._strict_source, html=html) for html in (True, False))
        self.part = cache(self._part)
        """Function that returns the `Part` for a template's name. It raises TemplateFault for a template that
        cannot be parsed, that uses an unknown filter or test, or that uses a variable as the name of a
        template."""
        self.variables = cache(self._variables)
        """Function that returns the variables in the templates with these names, and in all templates that
        they use. It raises TemplateFault. It has a cache, because each mail needs them."""
        self._plan = cache(self._plan_of)

    def __contains__(self, name: str) -> bool:
        return name in self.sources

    def _strict_source(self, name: str) -> str | None:
        return strict(self.sources[name]) if name in self.sources else None

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """Return a rendered template; `values` come from `values_of`. Raises TemplateFault."""
        return self.render_together((name,), values)[0]

    def render_together(self, names: tuple[str, ...], values: Mapping[str, Any]) -> list[str]:
        """Return the rendered templates of one message; `values` come from `values_of`. Raises TemplateFault,
        and OSError if they need a process of their own and the system cannot create it."""
        plan = self._plan(names)
        if plan.cheap and len(msgspec.json.encode(values)) <= SMALL_VARIABLES_BYTES:
            try:
                return [self._rendered(name, plan, values) for name in names]
            except _OutOfFuelError:  # the rendering begins again, with more fuel
                pass
        return self._in_own_process(names, plan, values)

    def _in_own_process(self, names: tuple[str, ...], plan: _Plan, values: Mapping[str, Any]) -> list[str]:
        from mailroom.content import own_process  # imported here, because few functions need it

        def work() -> bytes:
            self._html.fuel = self._text.fuel = FUEL
            try:
                return _results.encode((True, [self._rendered(name, plan, values) for name in names]))
            except TemplateFault as fault:
                return _results.encode((False, [fault.field, fault.problem, fault.place]))

        try:
            is_rendered, texts = _read_result(own_process.run(work))
        except own_process.ExhaustedError:
            limits = f"{own_process.MAX_CPU_SECONDS:g} s or {own_process.MAX_MEGABYTES} MB"
            cure = "loop over less, send smaller variables, and write no value that contains itself"
            problem = f"{names[-1]} takes more than {limits}; {cure}"
            raise TemplateFault("template", problem, names[-1]) from None
        if is_rendered:
            return texts
        raise TemplateFault(*texts)

    def _rendered(self, name: str, plan: _Plan, values: Mapping[str, Any]) -> str:
        environment = self._html if name.endswith(".html") else self._text
        try:
            if missing := plan.shadowed - values.keys():
                rendered = environment.render_str(f"{_unset(missing)}{{% include {name!r} %}}", **values)
            else:
                rendered = environment.render_template(name, **values)
        except BaseException as error:
            # A panic of MiniJinja, as in `loop.cycle()` without operands, is no Exception.
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                raise _fault_of(error, name, environment.fuel) from None
            raise
        if (size := len(rendered.encode())) > MAX_RENDERED_BYTES:
            problem = f"{name} writes {size:,} bytes; write at most {MAX_RENDERED_BYTES:,}"
            raise TemplateFault("template", problem, name)
        return rendered

    def _plan_of(self, names: tuple[str, ...]) -> _Plan:
        parts = self.reached(names)
        # A template that uses itself is a recursion, too.
        recursive = any(name in self.reached(part.parts) for name, part in parts.items())
        shadowed = self.variables(*names) & _DICT_METHODS
        return _Plan(shadowed, not recursive and all(part.cheap for part in parts.values()))

    def _part(self, name: str) -> Part:
        source = self.sources[name]
        try:
            source.encode()
        except UnicodeEncodeError:
            raise TemplateFault("template", f"{name} is not UTF-8; save it as UTF-8", name) from None
        for kind, word, line in used(source):
            # MiniJinja reports an unknown filter or test only if the expression is rendered, so that an error
            # in a rarely used branch would be found only when a message fails.
            if not self._text.eval_expr(f"name is {kind}", name=word):
                problem = f"the {kind} {word!r:.60}, which is unknown; see `mailroom docs write-templates`"
                raise TemplateFault("template", f"{name}:{line} uses {problem}", f"{name}:{line}")
        named = [*references(source)]
        for found in named:
            if found.open:
                problem = "takes the name of a template from a variable; use literals and `if` instead"
                raise TemplateFault("template", f"{name}:{found.line} {problem}", f"{name}:{found.line}")
        # MiniJinja does not list the variables in the tags that refer to other templates.
        expressions = "".join(found.tag for found in named)
        try:
            variables = self._text.undeclared_variables_in_str(source)
            variables |= self._text.undeclared_variables_in_str(expressions)
        except TemplateError as error:
            raise _fault_of(error, name) from None
        variables -= _BUILT_IN | self._text.globals.keys()
        used_parts = frozenset(part for found in named for part in found.names)
        return Part(source, frozenset(variables), used_parts, is_cheap(source))

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

    def _variables(self, *names: str) -> frozenset[str]:
        return frozenset().union(*(part.variables for part in self.reached(names).values()))

    def faults(self, below: str = "") -> Iterator[TemplateFault]:
        """Check the templates whose names begin with `below` and all files that they use, and yield their
        faults."""
        templates = [name for name in sorted(self.sources) if name.endswith((".html", ".txt"))]
        waiting, checked = [name for name in templates if name.startswith(below)], set[str]()
        for name in waiting:
            if name in self and name not in checked:
                checked.add(name)
                try:
                    waiting += sorted(self.part(name).parts)
                except TemplateFault as fault:
                    yield fault


_results = msgspec.msgpack.Encoder()
_read_result = msgspec.msgpack.Decoder(tuple[bool, list[str]]).decode


class _OutOfFuelError(Exception):
    """Error of a rendering that needs more than SMALL_FUEL."""


def _environment(loader: Callable[[str], str | None], *, html: bool) -> Environment:
    """Return an environment that escapes variables in all templates, or in none, whatever their suffixes: a
    part is escaped as the mail's part that uses it."""
    environment = Environment(
        loader=loader,
        undefined_behavior="strict",
        fuel=SMALL_FUEL,
        finalizer=_written_as_html if html else _written,
        auto_escape_callback=lambda _: html,
    )
    # `debug` is removed, because it would write all variables of a message into the text.
    environment.remove_global("debug")
    return environment


_BUILT_IN = frozenset(("caller", "kwargs", "loop", "self", "super", "varargs"))


def _written(value: Any) -> Any:
    """Return the text that a value is written as: null is empty, and a whole number is written without a
    fraction."""
    if value is None:
        return ""
    # MiniJinja passes the number 19.0 as the int 19, although MiniJinja itself would write 19.0.
    return value if type(value) is int else NotImplemented


@pass_state
def _written_as_html(state: State, value: Any) -> Any:
    """Return what `_written` does. The special characters of a text are escaped, unless the template turns it
    off. MiniJinja's own function would also escape the slashes of URLs."""
    if type(value) is str and state.auto_escape == "html":
        return safe(html.escape(value))
    return _written(value)


_UNSET = "__unset_"
_DICT_METHODS = frozenset(name for name in dir(dict) if not name.startswith("_"))


def _unset(missing: frozenset[str]) -> str:
    """Return template statements that make missing variables undefined whose names are methods of dict.
    Otherwise a missing variable `items` would be the method, because MiniJinja looks for variables in a
    dict."""
    return "".join(f"{{% set {name} = {_UNSET}{name} %}}" for name in sorted(missing))


_CAUSE = re.compile(r"^(?:caused by: )?([a-z][a-z ]*?)(?:: (.*))? \(in (.+):(\d+)\)$", re.MULTILINE)
_MISSING = re.compile(rf"`(?:{_UNSET})?([^`]+)` is undefined")


def _fault_of(error: BaseException, name: str, fuel: int | None = None) -> TemplateFault:
    """Return the TemplateFault for an error of MiniJinja. The last cause in the error is used, which may be
    in an included template. Raises _OutOfFuelError if a rendering with little fuel needs more, and
    MemoryError."""
    if isinstance(error, MemoryError):  # the process has reached its limit
        raise error
    causes = _CAUSE.findall(str(error)) if isinstance(error, TemplateError) else []
    # Without a cause, the error comes from a list or a map of `values_of`, or from MiniJinja itself.
    kind, detail, part, line = causes[-1] if causes else (f"{error!s:.200}", "", name, "")
    place = f"{name if part == '<string>' else part}:{line}".removesuffix(":")
    if missing := _MISSING.search(detail):
        return TemplateFault(missing[1], f"is missing; {place} uses it, so the message must have it", place)
    if kind == "syntax error":
        return TemplateFault("template", f"{place} cannot be read: {detail:.200}", place)
    if kind == "engine ran out of fuel":
        if fuel == SMALL_FUEL:
            raise _OutOfFuelError
        detail = f"it takes over {FUEL:,} steps of work; loop over less, or write less"
    return TemplateFault("template", f"{place} failed: {detail or kind:.200}", place)
