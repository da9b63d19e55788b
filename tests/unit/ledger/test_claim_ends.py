"""The page never-twice names all methods that end a claim, and all that a claim prevents."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mailroom.ledger.ledger import Ledger
from mailroom.ledger.waits import Waits
from tests.support.docs_pages import Page
from tests.support.unit.shared import Aws, claimed

Methods = Mapping[str, Callable[..., Any]]
SECTION = Page("docs/explanation/never-twice.md").text.partition("**Who ends a claim:**")[2]
TABLE, SENTENCES = SECTION.partition("**A message of a campaign")[0].strip().split("\n\n")
HOLDER = next(row for row in TABLE.splitlines() if "its holder" in row)
FACTS: dict[str, Any] = {"facts": {}}


def methods_of(kind: type) -> Methods:
    """Return the public methods of a class by name."""
    return {name: value for name, value in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}


OF_HOLDERS = {
    name: method
    for name, method in methods_of(Ledger).items()
    if "claim" in inspect.signature(method).parameters
}


@pytest.mark.parametrize("name", OF_HOLDERS)
def test_the_page_never_twice_md_names_exactly_the_ledger_methods_by_which_a_holder_ends_a_claim(
    name: str, ledger: Ledger, aws: Aws
) -> None:
    claim = claimed(ledger)
    if name == "hand_back":  # requires that the fax is in transmission
        ledger.checkpoint(claim, "signalwire", "p-1")
    required = (
        parameter.name
        for parameter in inspect.signature(getattr(ledger, name)).parameters.values()
        if parameter.default is inspect.Parameter.empty and parameter.name != "claim"
    )
    getattr(ledger, name)(claim, **{word: FACTS.get(word, "x") for word in required})
    item = aws.item()
    has_ended = "startedAt" not in item or "completedAt" in item
    assert (f"`{name}`" in HOLDER) is has_ended


def test_the_page_never_twice_md_names_each_ledger_method_that_requires_an_unclaimed_message() -> None:
    required = re.compile(r"\b(UNSENT|UNCLAIMED|_end_unclaimed|_hold)\b")
    names = {
        name
        for kind in (Ledger, Waits)
        for name, method in methods_of(kind).items()
        if required.search(inspect.getsource(method))
    }
    assert {"hold", "refuse", "restart"} < names
    assert [name for name in sorted(names) if f"`{name}`" not in SENTENCES] == []
