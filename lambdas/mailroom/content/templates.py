"""Templates: Jinja2 in its sandbox, with bounds on what one rendering may cost.

A template is its deployer's; its variables are a producer's. The sandbox keeps both from Python's internals.
The bounds keep a producer's number or text from eating the function's time and memory, which would take the
rest of the batch with it; they are no defence against a deployer who means harm.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, Template, TemplateError, TemplateNotFound, nodes
from jinja2.exceptions import UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEscapeFormatter, SandboxedFormatter
from markupsafe import Markup

from mailroom.errors import Invalid
from mailroom.message.address import has_control

MAX_STEPS = 20_000
"""Loop passes and calls of one rendering."""
MAX_MADE = 10_000_000
"""Characters and entries that the operations of one rendering may make beside those that they are given."""
MAX_BITS = 8_192
"""Bits of a product or a power of integers."""
MAX_CHARACTERS = 5_000_000
"""Characters of one rendered part."""
_RUN = 64


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
        self._environment = BoundedEnvironment(
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
        except (TemplateError, RecursionError) as error:  # the second: of thousands of brackets
            raise Invalid("template", f"{name}/{file} cannot be read: {error}") from None
        return _render(template, f"{name}/{file}", variables)


def _render(template: Template, name: str, variables: dict[str, Any]) -> str:
    try:
        _budget.set(_Budget())
        context = template.new_context(variables, shared=True)  # as it is: no copy for each of the parts
        return _joined(template.root_render_func(context))
    except UndefinedError as error:
        missing = re.match(r"'(\w+)' is undefined", str(error))
        if missing:
            raise Invalid(missing[1], f"is missing; {name} uses it, so the item must have it") from None
        raise Invalid("template", f"{name}: {error}; check the item's attributes against it") from None
    except Exception as error:  # noqa: BLE001 - whatever a template raises is its own or its variables' fault
        raise Invalid("template", f"{name} failed: {type(error).__name__}: {error}") from None


def _joined(parts: Iterator[str]) -> str:
    """All parts, looked at in runs: one by one the counting would cost more than the rendering."""
    text = ""
    while run := list(islice(parts, _RUN)):
        text += "".join(run)
        if len(text) > MAX_CHARACTERS:
            raise OverflowError(f"it writes over {MAX_CHARACTERS} characters; write less")
    return text


class _Budget:
    """What one rendering has left."""

    def __init__(self) -> None:
        self.steps = MAX_STEPS
        self.made = MAX_MADE


_budget: ContextVar[_Budget] = ContextVar("budget")


def _step() -> None:
    budget = _budget.get()
    budget.steps -= 1
    if budget.steps < 0:
        raise OverflowError(f"it takes over {MAX_STEPS} loop passes and calls; loop over less")


def _make(operation: str, size: int) -> None:
    """Account for what an operation is about to make. It is refused before it takes the memory."""
    budget = _budget.get()
    budget.made -= max(0, size)
    if budget.made < 0:
        raise OverflowError(f"{operation} makes a value that is too large")


def _counted(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        _step()
        yield value


def _joining(values: Iterable[Any], separator: object) -> Iterator[Any]:
    """The values that a join is given. A list may hold one text many times, so each text counts."""
    between = len(str(separator))
    for value in values:
        _make("join", between + len(str(value)))
        yield value


_DIRECTIVE = re.compile(r"%(?:\(([^()]*)\))?[-#0 +]*(\*|\d*)(?:\.(\*|\d*))?(\()?")


def _percent(text: object, values: Any) -> int:
    """What `text % values` makes: the widths and precisions, and a value for each place that names it."""
    found = _DIRECTIVE.findall(str(text))
    if any(nested for *_, nested in found):
        raise OverflowError("a key in parentheses may not hold parentheses")
    given = values if isinstance(values, tuple) else (values,)
    largest = max((abs(each) for each in given if isinstance(each, int)), default=0)
    widths = (each for _, *pair, _ in found for each in pair)
    made = sum(largest if each == "*" else int(each or 0) for each in widths)
    if isinstance(values, Mapping):
        made += sum(len(str(values.get(name, ""))) for name, *_ in found if name)
    return made


def _width(_: object, width: int = 80, *__: object) -> int:
    return width


def _expandtabs(text: str, tabsize: int = 8) -> int:
    return text.count("\t") * tabsize


def _indent(text: object, width: int | str = 4, *_: object, **__: object) -> int:
    return (len(str(text).splitlines()) + 1) * (len(width) if isinstance(width, str) else width)


def _replace(text: object, old: object, new: object, count: int | None = None) -> int:
    times = str(text).count(str(old))
    return (times if count is None or count < 0 else min(times, count)) * len(str(new))


def _translate(text: str, table: Mapping[Any, object]) -> int:
    return len(text) * max((len(str(each)) for each in table.values()), default=0)


def _filled(_: object, count: int, fill_with: object = "") -> int:
    return count * (1 + len(str(fill_with)))


def _round(_: object, precision: int = 0, *__: object, **___: object) -> int:
    return precision**2  # 10 ** precision is computed, in a time that grows so


def _wordwrap(
    text: object,
    width: int = 79,
    break_long_words: bool = True,
    wrapstring: str | None = None,
    **_: object,
) -> int:
    made = 0
    if break_long_words:  # for each of a long word's lines the rest of the word is copied
        made = sum(len(each) ** 2 // (2 * max(1, width)) for each in str(text).split() if len(each) > width)
    if wrapstring is None:
        return made
    lines = 2 * len(str(text)) // max(1, width) + len(str(text).splitlines())  # two lines are over one width
    return made + lines * len(wrapstring)


def _urlize(text: object, *options: object, **more: object) -> int:
    return len(str(text).split()) * sum(len(str(each)) for each in (*options, *more.values()))


def _tojson(value: object, indent: int | None = None) -> int:
    """The spaces before each entry, by its depth. Brackets in texts count too: they make it no less."""
    if indent is None:
        return 0
    depth = spaces = 0
    for each in re.findall(r"[][{},]", json.dumps(value)):
        depth += (each in "[{") - (each in "]}")
        spaces += max(1, abs(depth)) * indent
    return spaces


GROWING: Mapping[str, Callable[..., int]] = {
    **dict.fromkeys(("ljust", "rjust", "center", "zfill"), _width),
    "expandtabs": _expandtabs,
    "indent": _indent,
    "replace": _replace,
    "translate": _translate,
    "slice": _filled,
    "batch": _filled,
    "round": _round,
    "wordwrap": _wordwrap,
    "urlize": _urlize,
    "tojson": _tojson,
    "format": lambda text, *args, **kwargs: _percent(text, kwargs or args),
}
"""The methods of texts and the filters that may make more than they are given, each with how much it makes
of the same arguments. `join` is accounted for value by value, and str.format field by field."""
REMOVED = frozenset(("encode", "to_bytes", "pprint"))
"""Methods and filters that no message has a use for: bytes have methods of their own that grow, and pprint
indents by the length of keys."""


class _Fields(SandboxedFormatter):
    """str.format: a field's width is refused before it is made."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        _make("format", sum(map(int, re.findall(r"\d+", format_spec))))
        text = super().format_field(value, format_spec)
        _make("format", len(text))
        return text


class _EscapedFields(_Fields, SandboxedEscapeFormatter):
    """str.format of a Markup, with the same bounds."""


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Counts loop passes and calls, and accounts for what operations make before they make it."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name in REMOVED & self.filters.keys():
            del self.filters[name]
        for name in GROWING.keys() & self.filters.keys():
            self.filters[name] = _accounted(name, self.filters[name])
        self.filters["join"] = _joined_filter(self.filters["join"])
        self.filters["counted"] = _counted

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        for loop in template.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, "counted", [], [], None, None, lineno=loop.lineno)
        return template

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """The sandbox's rule, without what is removed."""
        return attr not in REMOVED and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """The sandbox's own, with fields that are accounted for."""
        if super().wrap_str_format(value) is None:
            return None
        text: str = value.__self__
        fields = _EscapedFields(self, escape=text.escape) if isinstance(text, Markup) else _Fields(self)

        def formatted(*args: Any, **kwargs: Any) -> str:
            if value.__name__ == "format_map":
                (kwargs,), args = args, ()
            return type(text)(fields.vformat(text, args, kwargs))

        return formatted

    def call(self, context: Any, callable_: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The sandbox's own, counted as a step."""
        _step()
        text = getattr(callable_, "__self__", None)
        if isinstance(text, str):
            name = callable_.__name__
            if name in GROWING:
                _make(name, GROWING[name](text, *args, **kwargs))
            elif name == "join":
                args = (*(_joining(each, text) for each in args),)
        return super().call(context, callable_, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """The operator, once its result is known not to be too large."""
        if operator == "**":
            _check_bits(operator, abs(right) * max(_bits(left), MAX_BITS // 64))
        elif operator == "%":
            if isinstance(left, str):
                _make(operator, _percent(left, right))
        else:
            text, times = (left, right) if hasattr(left, "__len__") else (right, left)
            if hasattr(text, "__len__"):
                # A list may hold one text many times: what counts is what it comes to once it is written.
                _make(operator, len(str(text)) * times)
            else:
                _check_bits(operator, _bits(left) + _bits(right))
        return super().call_binop(context, operator, left, right)


def _bits(value: object) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _check_bits(operator: str, bits: float) -> None:
    if bits > MAX_BITS:
        raise OverflowError(f"{operator} makes a value that is too large")


def _accounted(name: str, filter_: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that may grow. Some are given the context before their own arguments."""
    own = slice(1 if hasattr(filter_, "jinja_pass_arg") else 0, None)

    @wraps(filter_)
    def accounted(*args: Any, **kwargs: Any) -> Any:
        _make(name, GROWING[name](*args[own], **kwargs))
        return filter_(*args, **kwargs)

    return accounted


def _joined_filter(join: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(join)
    def joined(context: Any, values: Iterable[Any], d: object = "", attribute: object = None) -> Any:
        return join(context, _joining(values, d), d, attribute)

    return joined
