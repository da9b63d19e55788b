"""The model of the ledger: what holds in every world, what each condition is for, and that the code does the
same. docs/explanation/never-twice.md says what the model is."""

import random
from collections import defaultdict
from functools import cache

import pytest

from tests.support.model.channels import CHANNELS
from tests.support.model.explore import Exploration, explore
from tests.support.model.ledger import Call, Item, VerbAnswer
from tests.support.model.mutants import MUTANTS, SECOND_PROTECTION, Mutant
from tests.support.model.replay import Replay

Made = dict[Item | None, list[tuple[Call, Item | None, VerbAnswer]]]
"""Calls by the item before; each with the item after and the answer, as the model has them."""
STARTS = (None, Item("scheduled", mark=1))
UNPROTECTED = (
    "text, another account",
    "mail, claimed together",
    "mail, reopened by two",
    "mail, settled",
    "mail, restarted",
    "mail, taken back",
    "mail, waits, release dies",
    "mail, two providers",
    "fax, taken back",
    "fax, waits",
)
"""Small channels that ask for every condition of SECOND_PROTECTION between them."""

explored = cache(lambda name: explore(CHANNELS[name]))


@pytest.fixture(scope="module")
def calls_by_item() -> Made:
    """Return all calls that the explorations made."""
    known = {pair: made for name in CHANNELS for pair, made in explored(name).model.known.items()}
    by_item: Made = defaultdict(list)
    for (item, call), (after, answer) in known.items():
        by_item[item].append((call, after, answer))
    return by_item


def report_of(found: Exploration) -> str:
    return "\n".join((found.broken, *found.trace))


@pytest.mark.parametrize("name", CHANNELS)
def test_every_promise_of_the_model_holds_in_each_order_of_steps(name: str) -> None:
    assert not explored(name).broken, report_of(explored(name))


@pytest.mark.parametrize(
    ("promise", "mutant"), [(promise, each) for promise, mutants in MUTANTS.items() for each in mutants]
)
def test_a_promise_of_the_model_is_broken_without_a_needed_condition_of_the_ledger(
    promise: str, mutant: Mutant
) -> None:
    found = explore(CHANNELS[mutant.channel], mutant.without)
    assert (len(found.trace), found.broken) == (mutant.steps, promise), report_of(found)


def test_every_promise_of_the_model_holds_without_its_redundant_conditions() -> None:
    named = set()
    for name in UNPROTECTED:
        found = explore(CHANNELS[name], *[*SECOND_PROTECTION][:-1])
        assert not found.broken, report_of(found)
        named |= found.model.named
    assert named >= {*SECOND_PROTECTION}


def test_a_condition_of_the_ledger_is_redundant_if_another_condition_replaces_it() -> None:
    found = explore(CHANNELS["fax, settled"], [*SECOND_PROTECTION][-1])
    assert not found.broken, report_of(found)


def test_each_condition_of_the_model_is_listed_once_as_needed_or_as_redundant() -> None:
    asked = {condition for name in CHANNELS for condition in explored(name).model.named}
    named = [each.without for mutants in MUTANTS.values() for each in mutants]
    assert sorted([*named, *SECOND_PROTECTION]) == sorted(asked)


def test_every_call_has_the_same_effect_in_the_ledger_and_in_the_model(calls_by_item: Made) -> None:
    replay, found, count = Replay(), {}, 0
    for start in STARTS:
        replay.begin(start)
        found[start] = replay.snapshot()
    items: list[Item | None] = [*STARTS]
    for item in items:  # grows meanwhile
        for call, after, answer in calls_by_item[item]:
            replay.restore(found[item])
            assert (replay.call(call), replay.item()) == (answer, after), (item, call)
            count += 1
            if after not in found:
                found[after] = replay.snapshot()
                items.append(after)
    assert count == sum(map(len, calls_by_item.values()))


def test_long_sequences_of_calls_have_the_same_effects_in_the_ledger_and_the_model(
    calls_by_item: Made,
) -> None:
    """An item of the model may have come about in different ways."""
    chosen, replay = random.Random(1), Replay()
    for _ in range(200):
        item, way = chosen.choice(STARTS), []
        replay.begin(item)
        for _ in range(30):
            call, after, answer = chosen.choice(calls_by_item[item])
            way.append(call)
            assert (replay.call(call), replay.item()) == (answer, after), way
            item = after
