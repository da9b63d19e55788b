"""Bulk and codes with a limit of the day, stopped before and after every outside call."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mailroom.budget import Budget
from tests.support.faults.stops import stops
from tests.support.faults.world import BULK, MAIL, World, mail

NewWorld = Callable[..., World]
PER_DAY = (("0001-01-01", 6),)
PART = 3
LIMIT: dict[str, Any] = {"budgets_table": "budgets", "per_day": PER_DAY, "reserve": 0.5}
CODES = ("code-1", "code-2")
NEWS = ("news-1", "throttled-once", "news-2", "news-3", "news-4")
DAY = 86_400
IN_DOUBT = ("after send_email", "before update_item")


@pytest.fixture(autouse=True)
def rare_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at a line that waits for the day every six hours: here no limit changes meanwhile."""
    monkeypatch.setattr("tests.support.faults.world.HOUR", 6 * 3600)


def limited(new_world: NewWorld) -> World:
    """Make a world whose bulk lane has more to send than the day has room for."""
    world = new_world()
    world.day = LIMIT
    world.enqueue(*map(mail, CODES))
    world.enqueue(*(mail(name, lane="bulk") for name in NEWS), url=BULK)
    return world


def first_round(world: World) -> None:
    for url in (MAIL, BULK):
        world.deliver(url)


def check_bulk_part(world: World, where: str) -> None:
    """Check that no message is lost or dead, and that bulk sends at most its part in any 24 hours."""
    assert {world.end(name) for name in (*CODES, *NEWS)} == {"sent"}, where
    assert not any(world.queues.dead.values()), where
    bulk = [
        at for at, request in zip(world.ses.times, world.ses.accepted, strict=True) if not _is_code(request)
    ]
    for end in bulk:
        assert sum(1 for at in bulk if end - DAY < at <= end) <= PART, where
    codes = [at for at, request in zip(world.ses.times, world.ses.accepted, strict=True) if _is_code(request)]
    assert max(codes) - min(world.ses.times) < DAY / 24, where  # a crash may cost a lease


def _is_code(request: dict[str, Any]) -> bool:
    return str(request["Destination"]["ToAddresses"][0]).startswith("code")


def test_bulk_keeps_to_its_part_of_the_daily_limit_and_each_mail_is_sent_wherever_send_mail_crashes(
    new_world: NewWorld,
) -> None:
    begin = partial(limited, new_world)
    undisturbed = begin()
    first_round(undisturbed)
    assert {"batch_write_item", "batch_execute_statement"} <= {*undisturbed.outside.calls}
    for world, where in stops(begin, first_round):
        world.settle(between=world.send_events)
        doubled = [name for name, times in world.sends().items() if times > 1]
        assert len(doubled) <= where.startswith(IN_DOUBT), where
        check_bulk_part(world, where)


def test_two_concurrent_bulk_workers_stay_within_the_bulk_part_of_the_daily_limit(
    new_world: NewWorld,
) -> None:
    whole = limited(new_world)
    whole.deliver(BULK)
    for at in range(len(whole.outside.calls)):
        world = limited(new_world)
        records = world.queues.receive(BULK)
        world.enqueue(*(mail(f"more-{n}", lane="bulk") for n in range(2)), url=BULK)
        world.outside.intrude = (at, lambda world=world: world.deliver(BULK))
        response = world.worker(BULK).handle({"Records": records}, lambda: 60_000)
        world.queues.settle(BULK, records, response)
        world.settle()
        assert world.sends() == dict.fromkeys((*CODES, *NEWS, *(f"more-{n}" for n in range(2))), 1), at
        check_bulk_part(world, str(at))


def test_a_bulk_worker_that_crashes_after_its_grant_uses_up_only_bulks_part_of_the_daily_limit(
    new_world: NewWorld,
) -> None:
    world = limited(new_world)
    world.outside.stop = (4, "after")  # the worker crashed after its grant
    world.deliver(BULK)
    budget = Budget(world.dynamodb, "budgets", "mail", PER_DAY, 0.5, world.clock)
    assert budget.spent() == (PART, PART)
    world.deliver(MAIL)
    assert {world.end(name) for name in CODES} == {"sent"}
    world.settle()
    check_bulk_part(world, "dead with its grant")
