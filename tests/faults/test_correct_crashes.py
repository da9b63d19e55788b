"""`correct`, stopped before and after each of its calls: each correction is sent once over all runs."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import pytest

from mailroom.aws.dynamo_values import plain
from mailroom.channels.preview import Preview
from mailroom.mailbox import MailboxWriter
from mailroom_ops.messages.sets import MessageResult
from mailroom_ops.repair.corrector import Corrector
from mailroom_ops.shared.selected_messages import MessageRef
from tests.support.faults.outside import Stopped
from tests.support.faults.repairs import Staged, of_mail, sends
from tests.support.faults.stops import each_entry, stops
from tests.support.faults.world import World, mail

pytestmark = pytest.mark.usefixtures("one_by_one")

NewWorld = Callable[..., World]
IDS = ("a", "b", "c")
ONCE = {f"{id_}{name}": 1 for id_ in IDS for name in ("", "~new-link")}
"""Number of times that each message and each correction is sent."""


def sent_once(new_world: NewWorld) -> Staged[World]:
    """Mails that were sent, with a wrong link."""
    world = new_world()
    world.put(*map(mail, IDS))
    world.stream()
    world.settle()
    return Staged(world, of_mail(world))


def correct(staged: Staged[World], *ids: str) -> list[MessageResult]:
    """Run the command once, and stream the corrections that it put. Returns [] if it was stopped."""
    world, before = staged.world, {item["id"] for item in mailbox(staged.world)}
    writer = MailboxWriter(world.outside.watch(world.dynamodb, "put_item"), "mailbox")
    results: list[MessageResult] = []
    with suppress(Stopped):
        corrector = Corrector(staged.stage, writer, lambda _: Preview(), "new-link", ["first_name=Countess"])
        looked = corrector.evaluate([MessageRef(id_, "mail") for id_ in ids or IDS])
        done = corrector.send([each for each in looked if each.result == "ready"])
        results = [*done, *(each for each in looked if each.result != "ready")]
    world.items = [item for item in mailbox(world) if item["id"] not in before]
    return results


def mailbox(world: World) -> list[dict[str, Any]]:
    return [plain(item) for item in world.dynamodb.scan(TableName="mailbox")["Items"]]


def deliver(staged: Staged[World]) -> None:
    staged.world.stream()
    staged.world.settle()


def test_a_correct_command_that_stops_at_any_call_and_is_repeated_sends_each_correction_once(
    new_world: NewWorld,
) -> None:
    for staged, where in stops(partial(sent_once, new_world), correct, least=len(IDS)):
        deliver(staged)
        assert {each.result for each in correct(staged)} == {"corrected"}, where
        deliver(staged)
        correct(staged)
        deliver(staged)
        assert sends(staged.world) == ONCE, where


def test_two_operators_who_run_the_same_correction_send_each_corrected_message_once(
    new_world: NewWorld,
) -> None:
    for staged, where in each_entry(partial(sent_once, new_world), correct, correct):
        staged.world.items = [item for item in mailbox(staged.world) if "~" in item["id"]]
        deliver(staged)
        assert sends(staged.world) == ONCE, where


@pytest.mark.parametrize("seed", range(40))
def test_each_correction_is_sent_once_despite_random_stops_and_partial_lists(
    new_world: NewWorld, seed: int
) -> None:
    random, staged = Random(seed), sent_once(new_world)
    for _ in range(random.randint(1, 6)):
        ids = random.sample(IDS, random.randint(1, len(IDS)))
        call = len(staged.outside.calls) + random.randrange(2 * len(ids))
        staged.outside.stop = (call, random.choice(("before", "after")))
        correct(staged, *ids)
        staged.outside.stop = None
        deliver(staged)
    assert {each.result for each in correct(staged)} == {"corrected"}
    deliver(staged)
    assert sends(staged.world) == ONCE
