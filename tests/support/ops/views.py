"""A walk through a template of the console, by Jinja's own syntax tree: does each name and each attribute
exist in the Struct of its values?"""

import ast
import inspect
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from jinja2 import Environment, nodes

from mailroom_ops.console.site import Page, Request, View

OF_EVERY_PAGE = {"page": Page, "title": str, "request": Request, "now": str, "loop": Any}
"""Types of what the server gives each template, and of what Jinja gives in a loop."""
Names = dict[str, Any]


class _Macro:
    """A macro, and the names that it sees besides its parameters."""

    def __init__(self, node: nodes.Macro, names: Names) -> None:
        self.node, self.names = node, names


class Walk:
    """The faults of one template's names."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.faults: list[str] = []

    def through(self, view: type[View]) -> list[str]:
        """Return the faults of a view's template."""
        self._file = view.file_name()
        given = {name: type(value) for name, value in self._environment.globals.items()}
        names = {**given, "menu": list[Page], **OF_EVERY_PAGE, **get_type_hints(view)}
        self._template(self._file, names)
        return self.faults

    def _template(self, file: str, names: Names) -> None:
        assert self._environment.loader is not None
        source, _, _ = self._environment.loader.get_source(self._environment, file)
        tree = self._environment.parse(source)
        for node in tree.find_all(nodes.Extends):
            assert isinstance(node.template, nodes.Const)
            self._template(node.template.value, dict(names))
        self._body(tree.body, names)

    def _body(self, body: Sequence[nodes.Node], names: Names) -> None:
        for node in body:
            self._statement(node, names)

    def _statement(self, node: nodes.Node, names: Names) -> None:  # noqa: C901 - a case for each kind of node
        match node:
            case nodes.Output():
                for part in node.nodes:
                    self._type(part, names)
            case nodes.If():
                self._type(node.test, names)
                for body in (node.body, node.elif_, node.else_):
                    self._body(body, names)
            case nodes.For():
                inner = dict(names)
                self._bind(node.target, self._element(self._type(node.iter, names)), inner)
                if node.test is not None:
                    self._type(node.test, inner)
                self._body(node.body, inner)
                self._body(node.else_, names)
            case nodes.Assign():
                self._bind(node.target, self._type(node.node, names), names)
            case nodes.AssignBlock():
                self._body(node.body, names)
                self._bind(node.target, str, names)
            case nodes.Macro():
                names[node.name] = _Macro(node, names)
            case nodes.Import():
                assert isinstance(node.template, nodes.Const)
                inner = {
                    name: names[name] for name in (*self._environment.globals, "loop")
                }  # a template that is imported does not see the page's values
                self._template(node.template.value, inner)
                names[node.target] = {name: each for name, each in inner.items() if isinstance(each, _Macro)}
            case nodes.Block() | nodes.Scope():
                self._body(node.body, names)
            case nodes.Extends() | nodes.TemplateData():
                pass
            case _:
                raise NotImplementedError(f"{self._file}: teach this walk the statement {node}")

    def _bind(self, target: nodes.Node, type_: Any, names: Names) -> None:
        if isinstance(target, nodes.Name):
            names[target.name] = type_
            return
        assert isinstance(target, nodes.Tuple)
        parts = get_args(type_) if get_origin(type_) is tuple else [Any] * len(target.items)
        for item, part in zip(target.items, parts, strict=True):
            self._bind(item, part, names)

    def _type(self, node: nodes.Node, names: Names) -> Any:  # noqa: C901 - a case for each kind of node
        match node:
            case nodes.Name():
                if node.name not in names:
                    return self._fault(node, f"its view has no {node.name}")
                return names[node.name]
            case nodes.Const():
                return type(node.value)
            case nodes.Getattr():
                return self._attribute(node, self._type(node.node, names), node.attr)
            case nodes.Getitem():
                self._type(node.arg, names)
                return self._item(self._type(node.node, names), node.arg)
            case nodes.Filter():
                return self._filtered(node, names)
            case nodes.Call():
                return self._called(node, names)
            case nodes.CondExpr():
                self._type(node.test, names)
                return _union(*(self._type(each, names) for each in (node.expr1, node.expr2) if each))
            case nodes.Tuple() | nodes.List():
                found = [self._type(each, names) for each in node.items]
                return tuple[tuple(found)] if found else list[Any]  # type: ignore[misc]
            case nodes.And() | nodes.Or() | nodes.Add():
                return _union(self._type(node.left, names), self._type(node.right, names))
        for child in node.iter_child_nodes():
            self._type(child, names)
        return Any

    def _filtered(self, node: nodes.Filter, names: Names) -> Any:
        for child in (*node.args, *(each.value for each in node.kwargs)):
            self._type(child, names)
        type_ = self._type(node.node, names) if node.node is not None else str
        paths = [each for each in node.args if node.name in ("selectattr", "rejectattr")][:1]
        paths += [each.value for each in node.kwargs if each.key == "attribute"]
        for path in paths:
            assert isinstance(path, nodes.Const)
            part = self._element(type_)
            for name in path.value.split("."):
                part = self._attribute(node, part, name)
        return type_ if node.name in ("list", "selectattr", "rejectattr", "sort") else Any

    def _called(self, node: nodes.Call, names: Names) -> Any:
        given = [self._type(each, names) for each in node.args]
        by_name = {each.key: self._type(each.value, names) for each in node.kwargs}
        for more in (node.dyn_args, node.dyn_kwargs):
            if more is not None:
                self._type(more, names)
        called = self._type(node.node, names)
        if isinstance(called, _Macro):
            return self._expanded(called, given, by_name)
        if isinstance(called, types.FunctionType):
            return get_type_hints(called).get("return", Any)
        return called

    def _expanded(self, macro: _Macro, given: list[Any], by_name: Names) -> Any:
        parameters = [each.name for each in macro.node.args]
        inner = dict(macro.names)
        for parameter, default in zip(reversed(parameters), reversed(macro.node.defaults), strict=False):
            inner[parameter] = self._type(default, inner)
        inner |= dict(zip(parameters, given, strict=False)) | by_name
        self._body(macro.node.body, inner)
        return str

    def _attribute(self, node: nodes.Node, type_: Any, name: str) -> Any:
        if isinstance(type_, dict):  # an imported template
            return type_[name] if name in type_ else self._fault(node, f"has no macro {name}")
        found = [each for part in _parts(type_) for each in _attribute_of(part, name)]
        return _union(*found) if found else self._fault(node, f"{type_} has no {name}")

    def _item(self, type_: Any, key: nodes.Node) -> Any:
        parts = get_args(type_)
        for each in _parts(type_):
            if each is Request or each is str:
                return str
            if _is(each, Mapping):
                return get_args(each)[1]
            if get_origin(each) is tuple and isinstance(key, nodes.Const) and Ellipsis not in parts:
                return parts[key.value]
            if _is(each, Sequence):
                return type_ if isinstance(key, nodes.Slice) else get_args(each)[0]
        return Any

    def _element(self, type_: Any) -> Any:
        found: list[Any] = []
        for part in _parts(type_):
            of = get_args(part)
            if get_origin(part) is tuple and Ellipsis not in of:
                found += of
            elif _is(part, Mapping) or _is(part, Sequence):
                found += of[:1]
        return _union(*found) if found else Any

    def _fault(self, node: nodes.Node, why: str) -> Any:
        self.faults.append(f"{self._file}, in a template's line {node.lineno}: {why}")
        return Any


def _is(type_: Any, kind: type) -> bool:
    origin = get_origin(type_)
    return isinstance(origin, type) and issubclass(origin, kind)


def _parts(type_: Any) -> list[Any]:
    """Return the members of a union, without None."""
    union = get_origin(type_) in (Union, types.UnionType)
    return [each for each in (get_args(type_) if union else (type_,)) if each is not type(None)]


def _union(*found: Any) -> Any:
    known = list(dict.fromkeys(part for each in found for part in _parts(each)))
    if not known or Any in known or any(isinstance(each, dict | _Macro) for each in known):
        return known[0] if len(known) == 1 else Any
    return Union[tuple(known)]  # noqa: UP007 - the members are not written out


def _attribute_of(type_: Any, name: str) -> Iterator[Any]:
    """Yield the type of an attribute that exists."""
    if type_ is Any:
        yield Any
        return
    owner = get_origin(type_) or type_
    of = get_args(type_)
    if owner is Literal:
        owner = str
    if _is(type_, Mapping) and name in ("items", "values", "get", "keys"):
        items = {"items": list[tuple[of]], "values": list[of[1]], "get": of[1], "keys": list[of[0]]}  # type: ignore[valid-type]
        yield items[name]
        return
    hints = get_type_hints(owner) if isinstance(owner, type) else {}
    if name in hints:
        yield hints[name]
    elif isinstance(member := getattr(owner, name, None), property):
        yield get_type_hints(member.fget).get("return", Any)
    elif member is not None:
        yield member if isinstance(member, types.FunctionType) else Any
    elif name in _made_by(owner):
        yield Any


def _made_by(owner: type) -> set[str]:
    """Return the attributes that the __init__ of a plain class sets."""
    made = getattr(owner, "__init__", None)
    if not inspect.isfunction(made):
        return set()
    tree = ast.parse(textwrap.dedent(inspect.getsource(made)))
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
