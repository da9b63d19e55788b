"""Names that a deployer's own code may import, with the parameters and members that it may use.
`python -m tests.support.promised_names` writes them into docs/reference/promised-names.txt."""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from textwrap import dedent
from typing import Any

from tests.support import ROOT

MODULES = (
    "mailroom.campaigns",
    "mailroom.client",
    "mailroom.outbox",
    "mailroom.own_channel",
    "mailroom.own_sender",
    "mailroom_local.own_simulator",
    "mailroom_ops.own_check",
    "mailroom_stacks.app.embedded",
    "mailroom_stacks.dashboard",
)
"""Modules whose `__all__` is promised."""
FILE = ROOT / "docs" / "reference" / "promised-names.txt"
WITHOUT_MEMBERS = {"Delivery"}
"""Classes that own code only passes on, so that their members are internal."""
_PLAIN = (bytes, str, int, float, tuple, type(None))


def lines_of_names() -> list[str]:
    """Return a line for each name, and for each public member of a class."""
    return [
        line
        for module in map(import_module, MODULES)
        for name in sorted(module.__all__)
        for line in _described(f"{module.__name__}.{name}", getattr(module, name))
    ]


def _described(path: str, value: Any) -> Iterator[str]:
    yield f"{path}{_parameters(value)}"
    if isinstance(value, type) and value.__name__ not in WITHOUT_MEMBERS:
        yield from (f"{path}.{member}" for member in sorted({*_members(value)}))


def _members(kind: type) -> Iterator[str]:
    """Yield the public members that Mailroom's code defines. Fields are among the parameters of the class."""
    fields = {*getattr(kind, "__struct_fields__", ()), *getattr(kind, "__dataclass_fields__", ())}
    for owner in kind.__mro__:
        if owner.__module__.startswith("mailroom"):
            yield from _assigned(owner)
            for name in vars(owner).keys() - fields:
                if not name.startswith("_"):
                    method = inspect.isfunction(inspect.getattr_static(kind, name))
                    yield f"{name}{_parameters(getattr(kind, name), method=method)}"


def _assigned(owner: type) -> Iterator[str]:
    """Yield the public attributes that the `__init__` of a class assigns."""
    for function in ast.walk(ast.parse(dedent(inspect.getsource(owner)))):
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            targets = (node for node in ast.walk(function) if isinstance(node, ast.Attribute))
            names = (target.attr for target in targets if isinstance(target.ctx, ast.Store))
            yield from (name for name in names if not name.startswith("_"))


def _parameters(value: Any, *, method: bool = False) -> str:
    """Return the parameters without their types, those of a method without `self`. A value that cannot be
    called has none."""
    if not callable(value):
        return ""
    if isinstance(value, type) and inspect.isfunction(
        constructor := inspect.getattr_static(value, "__init__")
    ):
        value, method = constructor, True
    try:
        signature = inspect.signature(value)
    except ValueError:  # an exception without an `__init__` of its own
        return "(*args)"
    parameters = map(_plain, [*signature.parameters.values()][method:])
    text = str(signature.replace(parameters=[*parameters], return_annotation=signature.empty))
    return text.replace("Ellipsis", "…")


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter without its type. A default that may look different elsewhere becomes `…`."""
    default = parameter.default
    shown = default is parameter.empty or isinstance(default, _PLAIN)
    return parameter.replace(annotation=parameter.empty, default=default if shown else ...)


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines_of_names()))
