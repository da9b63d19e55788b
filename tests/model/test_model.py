"""The model of the ledger: what holds in every world, what each condition is for, and that the code does the
same. docs/model.md says what the model is, and has the figures and the mutants."""

import random
import re
from collections import defaultdict
from functools import cache

import pytest

from tests.support.docs_pages import Page
from tests.support.model.channels import CHANNELS
from tests.support.model.explore import Exploration, explore
from tests.support.model.ledger import Answer, Call, Item
from tests.support.model.replay import Replay

Made = dict[Item | None, list[tuple[Call, Item | None, Answer]]]
"""Calls by the item before; each with the item after and the answer, as the model has them."""
PAGE = Page("docs/model.md").text
FIGURES = re.findall(r"^\| ([a-z, ]+) \|.*\| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.M)
MUTANTS = re.findall(r"^\| ([a-z_ ]+: [^|]+) \| ([a-z, ]+) \| (\d+) \| ([^|]+) \|$", PAGE, re.M)
SURVIVORS = re.findall(r"^\| ([a-z_ ]+: [^|]+) \| [^|]+ \|$", PAGE, re.M)
STARTS = (None, Item("scheduled"))

explored = cache(lambda name: explore(CHANNELS[name]))


@pytest.fixture(scope="module")
def calls() -> Made:
    """All calls that the explorations made."""
    known = {pair: made for name in CHANNELS for pair, made in explored(name).model.known.items()}
    by_item: Made = defaultdict(list)
    for (item, call), (after, answer) in known.items():
        by_item[item].append((call, after, answer))
    return by_item


def told(found: Exploration) -> str:
    return "\n".join((found.broken, *found.trace))


@pytest.mark.parametrize("name", CHANNELS)
def test_no_promise_is_broken_in_any_world(name: str) -> None:
    assert not explored(name).broken, told(explored(name))


def test_the_page_has_the_figures_of_every_channel() -> None:
    found = {name: explored(name) for name in CHANNELS}
    assert [(name, f"{each.worlds:,}", f"{each.steps:,}") for name, each in found.items()] == FIGURES


@pytest.mark.parametrize(("without", "name", "length", "promise"), MUTANTS)
def test_without_a_condition_a_promise_is_broken(without: str, name: str, length: str, promise: str) -> None:
    found = explore(CHANNELS[name], without)
    assert (len(found.trace), found.broken) == (int(length), promise), told(found)


@pytest.mark.parametrize("name", CHANNELS)
def test_without_all_conditions_that_the_model_does_not_need_nothing_is_broken(name: str) -> None:
    found = explore(CHANNELS[name], *SURVIVORS[:-1])
    assert not found.broken, told(found)


@pytest.mark.parametrize("name", [name for name in CHANNELS if CHANNELS[name].operator == "settle"])
def test_what_stands_in_for_another_condition_is_not_needed_beside_it(name: str) -> None:
    found = explore(CHANNELS[name], SURVIVORS[-1])
    assert not found.broken, told(found)


def test_the_page_has_every_condition_once() -> None:
    asked = {condition for name in CHANNELS for condition in explored(name).model.named}
    assert sorted([*(without for without, *_ in MUTANTS), *SURVIVORS]) == sorted(asked)


def test_every_call_does_in_the_ledger_what_it_does_in_the_model(calls: Made) -> None:
    replay, found, count = Replay(), {}, 0
    for start in STARTS:
        replay.begin(start)
        found[start] = replay.snapshot()
    items: list[Item | None] = [*STARTS]
    for item in items:  # grows meanwhile
        for call, after, answer in calls[item]:
            replay.restore(found[item])
            assert (replay.call(call), replay.item()) == (answer, after), (item, call)
            count += 1
            if after not in found:
                found[after] = replay.snapshot()
                items.append(after)
    assert count == sum(map(len, calls.values()))


def test_long_ways_through_the_model_are_ways_through_the_ledger(calls: Made) -> None:
    """An item of the model may have come about in different ways."""
    chosen, replay = random.Random(1), Replay()
    for _ in range(200):
        item, way = chosen.choice(STARTS), []
        replay.begin(item)
        for _ in range(30):
            call, after, answer = chosen.choice(calls[item])
            way.append(call)
            assert (replay.call(call), replay.item()) == (answer, after), way
            item = after
