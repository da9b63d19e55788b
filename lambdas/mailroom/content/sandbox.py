"""What a template may use, and how much one rendering may work: Jinja2's sandbox with a list and a budget.

A template is its deployer's; its variables are a producer's. The sandbox keeps both from Python's internals.
The list has the filters, tests and methods whose work is known: none takes more than a few times what it
reads, but for a few that write as much as their numbers say. So an operation pays by the size of what it is
given, before it begins. A producer's number or text ends one rendering, and not the batch around it. The
budget is no defence against a deployer who means harm.
"""

import re
from collections.abc import (
    Callable,
    Collection,
    Container,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import (
    FileSystemLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
    meta,
    nodes,
    pass_context,
)
from jinja2.filters import do_sum, do_tojson, do_wordwrap
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEscapeFormatter, SandboxedFormatter
from jinja2.utils import pass_environment, pass_eval_context
from markupsafe import Markup

MAX_WORK = 10_000_000
"""What one rendering may work. A character that an operation reads costs 1, and so does one that it writes
where that can be more. The slowest shapes that we know take 0.3 s of a CPU for all of it."""
MAX_BITS = 8_192
"""Bits of what arithmetic makes."""
_ENTRY = 20
"""An entry of a list, a number, and an operation by itself."""
_PASS = 500
"""A pass of a loop, and a call."""

FILTERS = frozenset(
    (
        *("abs", "batch", "capitalize", "center", "count", "d", "default", "dictsort", "e", "escape"),
        *("filesizeformat", "first", "float", "forceescape", "format", "groupby", "indent", "int", "items"),
        *("join", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace"),
        *("reverse", "round", "safe", "select", "selectattr", "sort", "string", "sum", "title", "tojson"),
        *("trim", "truncate", "upper", "urlencode", "wordcount", "wordwrap"),
    )
)
"""Not among them: what is quadratic over a producer's text or numbers (striptags, unique, urlize, xmlattr),
writes at random, or without a bound (pprint, slice)."""
TESTS = frozenset(
    (
        *("!=", "<", "<=", "==", ">", ">=", "boolean", "defined", "divisibleby", "eq", "equalto", "escaped"),
        *("even", "false", "float", "ge", "greaterthan", "gt", "in", "integer", "iterable", "le", "lessthan"),
        *("lower", "lt", "mapping", "ne", "none", "number", "odd", "sameas", "sequence", "string", "true"),
        *("undefined", "upper"),
    )
)
METHODS = frozenset(
    (
        *("capitalize", "casefold", "center", "count", "endswith", "find", "format", "index", "isalnum"),
        *("isalpha", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper", "join"),
        *("ljust", "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rjust"),
        *("rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title", "upper", "zfill"),
        *("get", "items", "keys", "values"),  # of a map
    )
)
"""Of texts, lists and maps. Not among them: a search from the right (rfind, rsplit), which is quadratic."""
_OWN_METHODS = frozenset(("changed", "current", "cycle", "next", "reset"))
"""Of Jinja's `loop`, `cycler` and `joiner`."""
_GROWING = frozenset(("batch", "center", "indent", "join", "ljust", "rjust", "round", "zfill", "*"))
"""What writes its first operand as often, or as wide, as the others say."""
_SLOW = {"title": 5, "wordcount": 2, "wordwrap": 8, "split": 4, "splitlines": 4}
"""What works on each character in Python, or makes an object of each: how much more it pays for one."""
_LISTS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)
_MAPS = (dict, Mapping)
_NOTHING: Collection[object] = ()


class _Budget:
    """What one rendering has left."""

    def __init__(self) -> None:
        self.left = MAX_WORK


_budget: ContextVar[_Budget] = ContextVar("budget")


@contextmanager
def budget() -> Iterator[None]:
    """One rendering's. Without one, operations raise LookupError: so none is worked out while a template is
    compiled."""
    token = _budget.set(_Budget())
    try:
        yield
    finally:
        _budget.reset(token)


def spend(work: int) -> None:
    """Raises OverflowError where so much is not left."""
    mine = _budget.get()
    mine.left -= work
    if mine.left < 0:
        raise OverflowError(
            f"it takes over {MAX_WORK} steps of work; loop over less, or write, search and compare less"
        )


def _read(value: object) -> int:
    """Pay for an operand by its size, and return that. A list may hold one text many times: each counts."""
    if isinstance(value, str):
        spend(_ENTRY + len(value))
        return len(value)
    size, found = 0, [value]
    while found:
        each = found.pop()
        cost, inside = _ENTRY, _NOTHING
        if isinstance(each, str):
            cost += len(each)
        elif isinstance(each, int):
            _check_bits("it", each.bit_length())  # text in hexadecimal may say any number
        elif isinstance(each, _LISTS):
            inside = each
        elif isinstance(each, _MAPS):
            inside = each.items()
        elif isinstance(each, range):
            cost += _ENTRY * len(each)
        cost += _ENTRY * len(inside)
        spend(cost)  # before the entries are copied
        size += cost
        found += inside
    return size


def _account(operation: str, first: object, *others: object) -> None:
    """Pay for an operation, before it begins."""
    size = _read(first)
    spend(size * _SLOW.get(operation, 0))
    if operation in _GROWING:
        times = sum(abs(each) if isinstance(each, int) else _read(each) for each in others)
        spend((1 + size) * times)
    elif operation in ("format", "%") and isinstance(first, str):
        _account_directives(first, sum(_read(each) for each in others))
    else:
        sizes = [_read(each) for each in others]
        if operation == "replace" and len(others) > 1:  # by keyword they come in any order
            (old, new, *_), (one, other, *_) = map(str, others), sizes
            spend(max(str(first).count(old) * other, str(first).count(new) * one))


_DIRECTIVE = re.compile(r"%(?:\([^()]*\))?[-#0 +]*\d{0,2}(?:\.\d{0,2})?[a-zA-Z%]")


def _account_directives(text: str, size: int) -> None:
    rest, count = _DIRECTIVE.subn("", text)
    if "%" in rest:
        raise OverflowError(
            f"{text[:60]!r} has a % that is no directive, or one wider than 99; write %% for %"
        )
    spend(count * (100 + size))


def _bits(value: object) -> int:
    if isinstance(value, int):
        return value.bit_length()
    return abs(value.adjusted()) * 4 if hasattr(value, "adjusted") else 0


def _check_bits(operator: str, bits: float) -> None:
    if bits > MAX_BITS:
        raise OverflowError(f"{operator} makes a number that is too large")


def _counted(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        spend(_PASS)
        yield value


def _accounted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter or a test that pays. Some are given the context before their own operands."""
    own = slice(1 if hasattr(function, "jinja_pass_arg") else 0, None)

    @wraps(function)
    def accounted(*args: Any, **kwargs: Any) -> Any:
        _account(name, *args[own], *kwargs.values())
        result = function(*args, **kwargs)
        # As a list, because of an iterator nobody can tell how much is to come.
        return list(_counted(result)) if isinstance(result, Iterator) else result

    return accounted


def _paid(value: Any) -> Any:
    """A value that an operation is about to read."""
    _read(value)
    return value


@pass_context
def _written(_: object, value: Any) -> Any:
    """What is written for a value. It is given the context, so that no constant is written at compilation."""
    _read(value)
    return "" if value is None else value


@pass_environment
def _sum(environment: Any, values: Iterable[Any], attribute: str | int | None = None) -> Any:
    """Jinja's, of numbers: with a list to begin with, each sum would copy the last."""
    return do_sum(environment, values, attribute)


@pass_environment
def _wordwrap(environment: Any, text: str, width: int = 79) -> str:
    """Jinja's, which leaves a long word whole: for each line of a word it would copy the rest of the word."""
    return do_wordwrap(environment, text, width, break_long_words=False)


@pass_eval_context
def _tojson(context: Any, value: Any) -> Markup:
    """Jinja's, on one line: what `indent` writes grows with the depth."""
    return do_tojson(context, value)


class _Fields(SandboxedFormatter):
    """str.format: a field's width is refused before it is made."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        spend(_read(format_spec) + sum(map(int, re.findall(r"\d+", format_spec))))
        text = super().format_field(value, format_spec)
        _read(text)
        return text


class _EscapedFields(_Fields, SandboxedEscapeFormatter):
    """str.format of a Markup, with the same bounds."""


class Part(NamedTuple):
    """A template as it is written, and the variables that it uses. `open`: a variable names what it
    includes."""

    source: str
    variables: frozenset[str]
    open: bool


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Refuses what is not on the list when it reads a template, and lets each operation pay."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self, folder: Path) -> None:
        super().__init__(
            loader=FileSystemLoader(folder),
            autoescape=lambda name: name is not None and name.endswith(".html"),
            undefined=StrictUndefined,
            finalize=_written,
            cache_size=-1,  # every part stays compiled; Jinja's default of 400 is 133 mails
            auto_reload=folder.is_absolute(),  # a bundle's, which never changes, is relative
        )
        self.globals.pop("lipsum")
        known: dict[str, Any] = {**self.filters, "sum": _sum, "tojson": _tojson, "wordwrap": _wordwrap}
        tests: dict[str, Any] = self.tests
        self.filters = {name: _accounted(name, known[name]) for name in FILTERS}
        self.filters |= {"_counted": _counted, "_paid": _paid}
        self.tests = {name: _accounted(name, tests[name]) for name in TESTS}

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """What joins the parts of a rendering; Jinja calls it for a macro's, a block's or a filter's."""
        parts = list(parts)
        spend(sum(map(len, parts)))
        return "".join(parts)

    def source(self, name: str) -> str | None:
        """A template's text; None: there is no such template."""
        assert self.loader is not None
        try:
            return self.loader.get_source(self, name)[0]
        except TemplateNotFound:
            return None

    def reached(self, names: Iterable[str]) -> dict[str, Part]:
        """These templates and all that they refer to, by name. Which one is included where a variable names
        it, nobody can tell: all are, then. Raises TemplateError."""
        found, waiting = dict[str, Part](), [*names]
        while waiting:
            name = waiting.pop()
            source = None if name in found else self.source(name)
            if source is None:
                continue
            tree = self.parse(source, name)
            refers = [*meta.find_referenced_templates(tree)]
            found[name] = Part(source, frozenset(meta.find_undeclared_variables(tree)), None in refers)
            for each in refers:
                waiting += self.list_templates() if each is None else [each]
        return found

    def variables(self, names: Iterable[str]) -> frozenset[str]:
        """The variables that these templates use, by themselves or in what they refer to. Raises
        TemplateError."""
        return frozenset().union(*(each.variables for each in self.reached(names).values()))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        _refuse_unlisted(template, name, filename)
        for loop in [*template.find_all(nodes.For)]:
            loop.iter = _through("_counted", loop.iter)
        for comparison in [*template.find_all(nodes.Compare)]:
            operands: list[Any] = [comparison, *comparison.ops]
            if not _is_with_constant(comparison):
                for operand in operands:
                    operand.expr = _through("_paid", operand.expr)
        for joined in [*template.find_all(nodes.Concat)]:
            joined.nodes = [_through("_paid", each) for each in joined.nodes]
        for item in [*template.find_all(nodes.Getitem)]:
            if isinstance(item.arg, nodes.Slice):
                item.node = _through("_paid", item.node)
        return template

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """The sandbox's rule; of what is not Jinja's own, the listed methods alone."""
        own = type(obj).__module__.startswith("jinja2.")
        return (own or attr in METHODS) and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """The sandbox's own, with fields that pay; `format_map` is not on the list."""
        if super().wrap_str_format(value) is None or value.__name__ != "format":
            return None
        text: str = value.__self__
        fields = _EscapedFields(self, escape=text.escape) if isinstance(text, Markup) else _Fields(self)

        def formatted(*args: Any, **kwargs: Any) -> str:
            _read(text)
            return type(text)(fields.vformat(text, args, kwargs))

        return formatted

    def call(self, context: Any, callable_: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The sandbox's own, which pays; a macro's operands pay where the macro uses them."""
        spend(_PASS)
        if callable_ is dict and args:
            raise TypeError("dict() takes names alone: entries of a producer's may all have one hash")
        if not isinstance(callable_, Macro):
            name, owner = getattr(callable_, "__name__", ""), getattr(callable_, "__self__", None)
            _account(name, owner, *args, *kwargs.values())
        return super().call(context, callable_, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """The operator, once its result is known not to be too large."""
        if operator == "**":
            _check_bits(operator, abs(right) * max(_bits(left), MAX_BITS // 64))
        elif operator == "*" and hasattr(left, "__len__"):
            _account(operator, left, right)
        elif operator == "*" and hasattr(right, "__len__"):
            _account(operator, right, left)
        else:
            _check_bits(operator, _bits(left) + _bits(right))
            _account(operator, left, right)
        return super().call_binop(context, operator, left, right)


def _is_with_constant(comparison: nodes.Compare) -> bool:
    """Whether it takes no longer than a constant is. A search for a constant reads what it searches."""
    (first, *others) = comparison.ops
    both = (comparison.expr, first.expr)
    return (
        not others and first.op not in ("in", "notin") and any(isinstance(each, nodes.Const) for each in both)
    )


def _through(name: str, node: Any) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _refuse_unlisted(template: nodes.Template, name: str | None, filename: str | None) -> None:
    """Raise TemplateSyntaxError for a filter, a test or a method that is not on the list."""
    modules = {"self", *(each.target for each in template.find_all(nodes.Import))}
    for node in template.find_all((nodes.Filter, nodes.Test, nodes.Call)):
        for kind, used, listed in _uses(node, modules):
            if used not in listed:
                use = ", ".join(sorted(each for each in listed if each.isalpha()))
                said = f"there is no {kind} {used!r}; use one of: {use}"
                raise TemplateSyntaxError(said, node.lineno, name, filename)


_NAMED = {
    "map": (0, "filter", FILTERS),
    **dict.fromkeys(("select", "reject"), (0, "test", TESTS)),
    **dict.fromkeys(("selectattr", "rejectattr"), (1, "test", TESTS)),
}
"""Filters that are given the name of a filter or of a test, and in which place."""


def _uses(node: nodes.Node, modules: Container[str]) -> Iterator[tuple[str, object, frozenset[str]]]:
    """What a node asks for by name: its kind, its name, and the list that must have it."""
    if isinstance(node, nodes.Filter):
        yield "filter", node.name, FILTERS
        place, kind, listed = _NAMED.get(node.name, (len(node.args), "", FILTERS))
        for given in node.args[place : place + 1]:
            if isinstance(given, nodes.Const):  # what only a rendering can tell, it refuses
                yield kind, given.value, listed
    elif isinstance(node, nodes.Test):
        yield "test", node.name, TESTS
    elif isinstance(node, nodes.Call) and not isinstance(node.node, nodes.Name):
        of = node.node
        if not isinstance(of, nodes.Getattr):
            yield "call of", "a value", METHODS
        elif not (isinstance(of.node, nodes.Name) and of.node.name in modules):
            yield "method", of.attr, METHODS | _OWN_METHODS


def faults(folder: Path, below: str = "") -> Iterator[str]:
    """What is wrong with the templates under a folder, a sentence each, with its file and line. `below`: how
    the names begin of those that are looked at."""
    environment = BoundedEnvironment(folder)
    for name in environment.list_templates(extensions=("html", "txt")):
        if not name.startswith(below):
            continue
        try:
            environment.get_template(name)
        except TemplateSyntaxError as error:
            yield f"{name}:{error.lineno}: {error.message}"
        except (TemplateError, UnicodeError, RecursionError) as error:
            yield f"{name}: {error}"
