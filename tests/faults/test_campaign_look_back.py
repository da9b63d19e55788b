"""A run looks back at its first page: a campaign whose messages all fail stops, and people are told."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from mailroom.campaigns.collector import LOOKS
from tests.support.faults.campaign_world import COLLECT, RUN, CampaignWorld, address

NewWorld = Callable[..., CampaignWorld]


class Tallies:
    """The counts of a run's messages at each look; the last ones stay."""

    def __init__(self, *counts: dict[str, int]) -> None:
        self._counts: Iterator[dict[str, int]] = iter(counts)
        self._last: dict[str, int] = {}
        self.looks = 0

    def of_run(self, _campaign: str, _run: str, _begun_at: int) -> Counter[str]:
        self.looks += 1
        self._last = next(self._counts, self._last)
        return Counter(self._last)


def run_of(world: CampaignWorld, *counts: dict[str, int]) -> Tallies:
    world.tallies = tallies = Tallies(*counts)
    world.start()
    world.settle()
    return tallies


def test_a_run_stops_with_a_reason_and_a_dead_letter_if_each_message_of_its_first_page_failed(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    tallies = run_of(world, {"failed": 10})
    reason = "each of its first 10 messages has failed; see `mailroom messages list --reasons`"
    assert (world.run().state, world.run().trouble) == ("stopped", reason)
    assert (len(world.queues.dead[COLLECT]), tallies.looks) == (1, 1)


def test_a_run_collects_no_further_page_if_each_message_of_its_first_page_failed(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.tallies = Tallies({"failed": 4})
    world.start()
    world.deliver(COLLECT, 1)
    (second,) = (each for each in world.queues.messages[COLLECT] if '"page":2' in each.body)
    second.visible_at += 100
    world.settle()
    assert (world.run().state, world.run().pages) == ("stopped", 1)


@pytest.mark.parametrize(
    "counts", [{"failed": 9, "sent": 1}, {"failed": 3, "bounced": 1}, {"delivered": 10}, {"cancelled": 10}]
)
def test_a_run_goes_on_if_at_least_one_message_of_its_first_page_has_not_failed(
    new_campaign_world: NewWorld, counts: dict[str, int]
) -> None:
    world = new_campaign_world()
    tallies = run_of(world, counts)
    assert (world.run().state, world.run().trouble, world.dead(), tallies.looks) == ("collected", "", 0, 1)


def test_collect_checks_a_runs_first_page_again_while_some_of_its_messages_have_no_outcome(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    tallies = run_of(world, {}, {"failed": 3, "scheduled": 7}, {"failed": 10})
    assert (world.run().state, tallies.looks) == ("stopped", 3)


def test_a_run_goes_on_if_messages_of_its_first_page_have_no_outcome_after_the_last_check(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    before = world.clock.now
    tallies = run_of(world, {"failed": 3})
    assert (world.run().state, world.dead(), tallies.looks) == ("collected", 0, LOOKS + 1)
    assert 900 < world.clock.now - before < 1000


def test_a_pause_of_a_run_does_not_use_up_the_checks_of_its_first_page(new_campaign_world: NewWorld) -> None:
    world = new_campaign_world()
    world.tallies = Tallies(*[{"scheduled": 10}] * (2 * LOOKS), {"failed": 10})
    world.start()
    world.deliver(COLLECT, 1)
    world.runs.pause("weekly", RUN, "a wrong link")
    for _ in range(2 * LOOKS):
        world.clock.now += 120
        world.deliver(COLLECT)
    assert world.tallies.looks == 2 * LOOKS
    world.runs.resume("weekly", RUN, "since noon by ada: it is right")
    world.settle()
    assert world.run().state == "stopped"


def test_a_run_stops_if_each_message_of_its_first_page_failed_although_some_people_got_none(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    world.preferences.opt_out(address("p4"), "news", "page")
    world.asking.leaves_out = {"p7"}
    run_of(world, {"failed": 8, "suppressed": 1})
    assert world.run().state == "stopped"


def test_a_run_that_is_started_again_is_not_stopped_by_messages_that_failed_earlier(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    run_of(world, {"failed": 10})
    world.start(start="corrected")
    world.settle()
    assert (world.run().state, len(world.queues.dead[COLLECT])) == ("collected", 1)


def test_a_redriven_dead_letter_of_a_stopped_run_is_dropped_if_the_run_was_started_again(
    new_campaign_world: NewWorld,
) -> None:
    world = new_campaign_world()
    run_of(world, {"failed": 10})
    world.start(start="corrected")
    world.settle()
    world.queues.put(COLLECT, world.queues.dead[COLLECT].pop().body)
    world.settle()
    assert (world.run().state, world.dead()) == ("collected", 0)


@pytest.mark.parametrize("paused", [False, True])
def test_a_check_of_a_run_that_an_operator_has_stopped_does_not_become_a_dead_letter(
    new_campaign_world: NewWorld, *, paused: bool
) -> None:
    world = new_campaign_world()
    world.tallies = Tallies({"failed": 10})
    world.start()
    world.deliver(COLLECT, 1)
    if paused:
        world.runs.pause("weekly", RUN, "a wrong link")
        world.clock.now += 1
        world.deliver(COLLECT, 1)
        assert (world.run().phase, world.run().trouble) == ("paused", "")
    world.runs.stop("weekly", RUN)
    world.settle()
    assert (world.run().state, world.run().trouble, world.dead()) == ("stopped", "", 0)
