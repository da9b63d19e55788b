"""Campaign that is larger than the day, beside codes: the whole way, on a virtual clock.

Run as a module with a factor, it does the same with so many times the messages: 20 is a campaign of 10,000.
"""

import logging
import sys
from collections import Counter
from itertools import pairwise
from math import inf

from mailroom.telemetry import quiet
from tests.support.faults.campaign_world import COLLECT
from tests.support.faults.day_world import DAY, DayWorld
from tests.support.faults.stops import stops

PEOPLE, PER_DAY, RESERVE = 500, 250, 0.2
PART = 200
CODES = 30
USUAL_SECONDS = 1.5
"""Time of a code: the poll, and in this world the batch of bulk that runs meanwhile."""


def days(factor: int = 1) -> DayWorld:
    world = DayWorld(PEOPLE * factor, [float(at) for at in range(CODES * factor)], PER_DAY * factor, RESERVE)
    world.run()
    return world


def judge_days(world: DayWorld, factor: int = 1) -> list[int]:
    """Judge all messages; how many mails of the campaign went out on each day."""
    accepted = world.accepted()
    times = Counter(name for _, name in accepted)
    assert set(times.values()) == {1}
    assert len(times) == (PEOPLE + CODES) * factor
    assert not any(world.queues.dead.values())
    assert world.campaign.run().state == "collected"
    late = [at - int(name.removeprefix("code-")) for at, name in accepted if name.startswith("code-")]
    assert max(late) <= USUAL_SECONDS
    bulk = [at for at, name in accepted if name.startswith("p")]
    for first, at in enumerate(bulk):
        beyond = first + PART * factor
        assert beyond >= len(bulk) or bulk[beyond] > at + DAY
    gaps = [at for before, at in pairwise(bulk) if at - before > DAY / 4]
    return [sum(1 for at in bulk if begin <= at < end) for begin, end in pairwise([0.0, *gaps, inf])]


def test_codes_are_sent_without_delay_while_a_campaign_is_spread_over_days_by_the_daily_limit() -> None:
    assert judge_days(days()) == [200, 200, 100]


def full() -> DayWorld:
    """Make a world with a campaign whose first page will find no room."""
    world = DayWorld(6, [], 10, 0.5)
    world.budget().ask(5)
    world.campaign.start()
    return world


def collect_once(world: DayWorld) -> None:
    world.campaign.deliver(COLLECT, 1)


def test_a_page_of_a_run_beyond_the_daily_limit_waits_in_a_new_queue_message_until_a_recorded_time() -> None:
    world = full()
    collect_once(world)
    assert {"get_item", "send_message_batch", "update_item"} <= {*world.outside.calls}
    (waiting,) = world.queues.messages[COLLECT]
    assert (waiting.receives, waiting.visible_at) == (0, world.clock.now + 120)
    run = world.campaign.run()
    assert (run.phase, run.waits_until[:8], run.trouble) == ("waits for the day", "2027-01-", "")
    world.clock.now += 2 * DAY
    world.run(start=False)
    assert (world.campaign.run().phase, world.campaign.run().waits_until) == ("collected", "")
    assert Counter(name for _, name in world.accepted()) == Counter(f"p{at}" for at in range(6))


def test_each_person_of_a_page_beyond_the_daily_limit_gets_one_message_wherever_collect_crashes() -> None:
    for world, where in stops(full, collect_once):
        world.clock.now += 2 * DAY
        world.run(start=False)
        assert Counter(name for _, name in world.accepted()) == Counter(f"p{at}" for at in range(6)), where
        assert not any(world.queues.dead.values()), where


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with quiet():
        print(judge_days(days(int(sys.argv[1])), int(sys.argv[1])))  # noqa: T201
