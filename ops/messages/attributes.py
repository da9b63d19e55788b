"""Attributes that were typed or stand in a cell: text, where the contract may want something else."""

from collections.abc import Iterable
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct, structs

from mailroom.channels.contracts import CONTRACTS
from mailroom.errors import Invalid
from ops.screen import Refused

NOT_TYPED = ("variables", "attempt")
"""Fields of the model that no producer writes."""


class Attributes(Struct, frozen=True):
    """What a channel's contract knows: the names of its `texts`, and of the `others`, which are lists, maps
    and numbers."""

    texts: frozenset[str]
    others: frozenset[str]

    def value(self, name: str, text: str) -> Any:
        """The text as the attribute's value: what is no text is written as JSON. Raises Invalid."""
        if name not in self.others:
            return text
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise Invalid(
                name, f'is no text: write it as JSON, as 7, ["a"] or {{"a": 1}} ({error})'
            ) from None

    def known(self, name: str) -> bool:
        """Whether the contract knows it; anything else is a variable of the template."""
        return name in self.texts or name in self.others


def attributes_of(channel: str) -> Attributes:
    """Those of a channel; of one that there is not, none."""
    contract = CONTRACTS.get(channel)
    if contract is None:
        return Attributes(frozenset(), frozenset())
    types = get_type_hints(contract, include_extras=False)
    texts: set[str] = set()
    others: set[str] = set()
    for each in structs.fields(contract):
        if each.encode_name not in NOT_TYPED:
            (texts if _takes_text(types[each.name]) else others).add(each.encode_name)
    return Attributes(frozenset(texts), frozenset(others))


def pairs(typed: Iterable[str], option: str) -> dict[str, str]:
    """`name=value`, as often as it was typed. Raises Refused that names the option."""
    found: dict[str, str] = {}
    for each in typed:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise Refused(f"{option} {each!r:.80} is no pair; write {option} name=value.")
        if name.strip() in found:
            raise Refused(f"{option} {name.strip()} is there twice; keep one.")
        found[name.strip()] = value
    return found


def _takes_text(type_: Any) -> bool:
    try:
        msgspec.convert("text", type_)
    except msgspec.ValidationError:
        return False
    return type_ is not Any
