"""Expressions of DynamoDB, compiled to functions. moto parses each text once; the function is cached.

A request's names are part of the cache key, so errors in them are detected once. Values are passed with each
call.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from moto.dynamodb import comparisons
from moto.dynamodb.exceptions import MockValidationException
from moto.dynamodb.parsing import ast_nodes
from moto.dynamodb.parsing.expressions import UpdateExpressionParser

from tests.support.dynamodb.values import (
    Item,
    Refusal,
    Value,
    added,
    contains,
    copy_of,
    equal,
    length,
    plus,
    scalar,
    unknown,
)

Values = Mapping[str, Value]
Names = tuple[tuple[str, str], ...]
"""ExpressionAttributeNames as a tuple, so that they can be a cache key."""
Path = tuple[str, ...]
Operand = Callable[[Item, Values], Value | None]
"""A function that returns an operand's value, or None for a missing attribute."""


class Condition(NamedTuple):
    """A function that tests an item, the aliases of names and values that the text mentions, and the values'
    aliases by the attributes that have to equal them.
    """

    holds: Callable[[Item, Values], bool]
    mentions: frozenset[str] = frozenset()
    equals: Mapping[str, str] = MappingProxyType({})


class Update(NamedTuple):
    """A function that returns the updated item, the paths that it writes, and the aliases that the text
    mentions.
    """

    apply: Callable[[Item, Values], Item]
    paths: tuple[Path, ...]
    mentions: frozenset[str]


class _Unresolved(dict[str, Any]):
    """Placeholder for values of a later call: the value of each alias is the alias."""

    def __missing__(self, alias: str) -> dict[str, str]:
        return {"alias": alias}


@cache
def condition(text: str | None, names: Names) -> Condition:
    """Compile a ConditionExpression, FilterExpression or KeyConditionExpression. For None it always holds."""
    if text is None:
        return Condition(lambda *_: True)
    parser = comparisons.ConditionExpressionParser(text, dict(names), _Unresolved())
    try:
        tree = parser.parse()
    except (MockValidationException, KeyError, ValueError) as error:
        raise Refusal(f"Invalid expression: {error}: {text}") from None
    found = (*parser.expr_attr_names_found, *parser.expr_attr_values_found)
    return Condition(_test(tree), frozenset(each for each in found if each[0] in "#:"), dict(_equals(tree)))


def _equals(tree: Any) -> Iterator[tuple[str, str]]:
    match tree:
        case comparisons.OpAnd():
            yield from (*_equals(tree.lhs), *_equals(tree.rhs))
        case comparisons.OpEqual(
            lhs=comparisons.AttributePath(path=[str(name)]), rhs=comparisons.AttributeValue(value=alias)
        ):
            yield name, str(alias)


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Value | None, Value | None], bool]:
    """Return a comparison that is false for values of different types, because they cannot be ordered."""
    return lambda one, two: bool(one and two and one.keys() == two.keys() and holds(scalar(one), scalar(two)))


_COMPARISONS: dict[type, Callable[[Value | None, Value | None], bool]] = {
    comparisons.OpEqual: equal,
    comparisons.OpNotEqual: lambda one, two: not equal(one, two),
    comparisons.OpLessThan: _ordered(operator.lt),
    comparisons.OpLessThanOrEqual: _ordered(operator.le),
    comparisons.OpGreaterThan: _ordered(operator.gt),
    comparisons.OpGreaterThanOrEqual: _ordered(operator.ge),
    comparisons.FuncContains: contains,
}


def _test(tree: Any) -> Callable[[Item, Values], bool]:
    match tree:
        case comparisons.OpAnd() | comparisons.OpOr():
            return _joined(tree)
        case comparisons.OpNot():
            inner = _test(tree.lhs)
            return lambda item, values: not inner(item, values)
        case comparisons.FuncAttrExists():
            found = _operand(tree.attr)
            return lambda item, values: found(item, values) is not None
        case comparisons.FuncIn():
            found, among = _operand(tree.attr), [_operand(each) for each in tree.possible_values]
            return lambda item, values: any(equal(found(item, values), each(item, values)) for each in among)
        case comparisons.FuncBetween():
            return _between(tree)
    if type(tree) not in _COMPARISONS:
        unknown(f"condition {tree!r}")
    holds = _COMPARISONS[type(tree)]
    if isinstance(tree, comparisons.FuncContains):
        one, other = _operand(tree.attr), _operand(tree.operand)
    else:
        one, other = _operand(tree.lhs), _operand(tree.rhs)
    return lambda item, values: holds(one(item, values), other(item, values))


def _joined(tree: Any) -> Callable[[Item, Values], bool]:
    left, right = _test(tree.lhs), _test(tree.rhs)
    if isinstance(tree, comparisons.OpAnd):
        return lambda item, values: left(item, values) and right(item, values)
    return lambda item, values: left(item, values) or right(item, values)


def _between(tree: comparisons.FuncBetween) -> Callable[[Item, Values], bool]:
    value, low, high = map(_operand, (tree.attr, tree.start, tree.end))
    at_most = _COMPARISONS[comparisons.OpLessThanOrEqual]

    def holds(item: Item, values: Values) -> bool:
        between = value(item, values)
        return at_most(low(item, values), between) and at_most(between, high(item, values))

    return holds


def _operand(node: Any) -> Operand:
    match node:
        case comparisons.AttributePath():
            return _at(tuple(node.path))
        case comparisons.AttributeValue():
            alias = str(node.value)
            return lambda _, values: values[alias]
        case comparisons.FuncSize():
            inner = _operand(node.attr)
            return lambda item, values: length(inner(item, values))
    return unknown(f"operand {node!r}")


def _at(path: Path) -> Operand:
    name, *rest = path
    if not all(isinstance(each, str) for each in path):
        unknown(f"an index in {path}")
    if not rest:
        return lambda item, _: item.get(name)

    def found(item: Item, _: Values) -> Value | None:
        value = item.get(name)
        for each in rest:
            value = (value or {}).get("M", {}).get(each)
        return value

    return found


_KINDS = ("Set", "Remove", "Add", "Delete")


@cache
def update(text: str, names: Names) -> Update:
    """Compile an UpdateExpression."""
    tree = _parsed(text)
    actions = tree.find_clauses([getattr(ast_nodes, f"UpdateExpression{kind}Action") for kind in _KINDS])
    steps = [_step(action, dict(names)) for action in actions]
    paths = tuple(path for path, _ in steps)
    for at, path in enumerate(paths):
        for other in paths[:at]:
            if path[: len(other)] == other or other[: len(path)] == path:
                raise Refusal(f"Invalid UpdateExpression: Two document paths overlap: {other}, {path}")

    def apply(item: Item, values: Values) -> Item:
        # Every action reads the item from before the update, and does not see the other actions' writes.
        made = [(path, make(item, values)) for path, make in steps]
        new = dict(item)
        for path, value in made:
            _put(new, path, value)
        return new

    leaves = (ast_nodes.ExpressionAttributeName, ast_nodes.ExpressionAttributeValue)
    return Update(apply, paths, frozenset(str(leaf.children[0]) for leaf in _leaves(tree, leaves)))


def _parsed(text: str) -> Any:
    try:
        tree = UpdateExpressionParser.make(text)
    except MockValidationException as error:
        raise Refusal(error.exception_msg) from None
    for kind in _KINDS:
        if len(tree.find_clauses([getattr(ast_nodes, f"UpdateExpression{kind}Clause")])) > 1:
            raise Refusal(f"Invalid UpdateExpression: {kind} can only be used once")
    return tree


def _leaves(node: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    if isinstance(node, kinds):
        yield node
    else:
        for child in getattr(node, "children", None) or ():
            yield from _leaves(child, kinds)


def _step(action: Any, names: Mapping[str, str]) -> tuple[Path, Operand]:
    """Return the path that an action writes, and a function for its value; None removes the attribute."""
    path = _path(action.children[0], names)
    match action:
        case ast_nodes.UpdateExpressionSetAction():
            made = _made(action.children[1], names)
            return path, lambda item, values: _there(made(item, values))
        case ast_nodes.UpdateExpressionRemoveAction():
            return path, lambda *_: None
        case ast_nodes.UpdateExpressionAddAction():
            old, more = _at(path), _made(action.children[1], names)
            return path, lambda item, values: added(old(item, values), _there(more(item, values)))
    return unknown(action.type)


def _path(node: Any, names: Mapping[str, str]) -> Path:
    path = []
    for part in node.children:
        text = part.to_str()
        match part:
            case ast_nodes.ExpressionAttributeName() if text not in names:
                raise Refusal(f"Invalid UpdateExpression: attribute name not defined: {text}")
            case ast_nodes.ExpressionAttributeName():
                path.append(names[text])
            case ast_nodes.ExpressionAttribute():
                path.append(_unreserved(text))
            case ast_nodes.ExpressionSelector():
                unknown(f"an index in {node.to_str()}")
    return tuple(path)


def _unreserved(name: str) -> str:
    try:
        comparisons.ConditionExpressionParser.raise_exception_if_keyword(name)
    except MockValidationException as error:
        raise Refusal(error.exception_msg) from None
    return name


def _made(node: Any, names: Mapping[str, str]) -> Operand:
    match node:
        case ast_nodes.UpdateExpressionValue() if len(node.children) == 1:
            return _made(node.children[0], names)
        case ast_nodes.UpdateExpressionValue():
            one, two = (_made(each, names) for each in node.children[::2])
            sign = {"+": 1, "-": -1}[node.children[1].get_operator()]
            return lambda item, values: plus(_there(one(item, values)), _there(two(item, values)), sign)
        case ast_nodes.ExpressionAttributeValue():
            alias = node.get_value_name()
            return lambda _, values: copy_of(values[alias])
        case ast_nodes.UpdateExpressionPath():
            return _at(_path(node, names))
        case ast_nodes.UpdateExpressionFunction():
            one, two = (_made(each, names) for each in node.children[1:])
            if node.get_function_name() == "if_not_exists":
                return lambda item, values: one(item, values) or two(item, values)
            return lambda item, values: _appended(_there(one(item, values)), _there(two(item, values)))
    return unknown(f"{node.type} as a value")


def _appended(one: Value, two: Value) -> Value:
    if "L" not in one or "L" not in two:
        raise Refusal(
            "Invalid UpdateExpression: Incorrect operand type for operator or function; list_append"
        )
    return {"L": [*one["L"], *two["L"]]}


def _there(value: Value | None) -> Value:
    if value is None:
        raise Refusal("The provided expression refers to an attribute that does not exist in the item")
    return value


def _put(item: Item, path: Path, value: Value | None) -> None:
    """Write at a path. Maps on the way are replaced by copies, because other items may contain them."""
    name, *rest = path
    if rest:
        if "M" not in item.get(name, {}):
            raise Refusal("The document path provided in the update expression is invalid for update")
        item[name] = {"M": dict(item[name]["M"])}
        _put(item[name]["M"], tuple(rest), value)
    elif value is None:
        item.pop(name, None)
    else:
        item[name] = value


@cache
def projection(text: str | None, names: Names) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Return the attributes that a ProjectionExpression names (None for all), and the aliases that it
    mentions.
    """
    if text is None:
        return None, frozenset()
    given, aliases = [each.strip() for each in text.split(",")], dict(names)
    mentioned = frozenset(each for each in given if each.startswith("#"))
    if any("." in each or "[" in each for each in given):
        unknown(f"a path in the projection {text}")
    if not mentioned <= aliases.keys() or len(set(given)) < len(given):
        raise Refusal(f"Invalid ProjectionExpression: {text}")
    return frozenset(aliases[each] if each in mentioned else _unreserved(each) for each in given), mentioned
