"""Waiting for a run: how it ends, also where the run never does."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.campaigns.audience import Fault
from mailroom.campaigns.runs import PageClaim, Run
from ops.campaigns.deployed import DeployedCampaigns, RunStart
from ops.campaigns.wait import BESIDE_POLLS, LOST_POLLS, QUIET_POLLS, Ended, wait
from tests.support.ops.campaign import AUDIENCE, AUDIENCE_DLQ, COLLECT, NOW, RUN, World, run

START = RunStart("weekly", RUN, "2026-11-21T14:00:00Z")
MOST = 500
"""Polls; whoever waits for longer waits for ever."""


class Wait:
    """One that was waited through; `then` says what happens in which second."""

    def __init__(
        self, world: World, start: RunStart = START, then: dict[int, Callable[[], Any]] | None = None
    ) -> None:
        self.sleeps = 0
        self.seen: list[Run] = []
        self._then = then or {}
        self.ended: Ended = wait(
            DeployedCampaigns(world.session, "dev", lambda: NOW), start, self.seen.append, self._sleep
        )

    def _sleep(self, seconds: float) -> None:
        assert seconds == 1
        self.sleeps += 1
        assert self.sleeps < MOST, "it waits for ever"
        self._then.get(self.sleeps, lambda: None)()


def refused(world: World, trouble: str = "column email: is not there") -> None:
    """A run whose page went to the dead letters."""
    world.begun()
    claim = world.runs.claim("weekly", RUN, "s-1", 1)
    assert isinstance(claim, PageClaim)
    world.runs.release(claim, trouble)


def again(world: World) -> RunStart:
    """The start of a run that is known."""
    return DeployedCampaigns(world.session, "dev", lambda: NOW).starting("weekly", RUN)


def test_it_ends_when_the_new_start_is_collected_and_its_queues_stay_empty(world: World) -> None:
    waited = Wait(world, then={2: world.collected})
    assert waited.ended.problem == ""
    assert {each.state for each in waited.seen} == {"collected"}
    assert waited.sleeps == 2 + QUIET_POLLS


def test_another_campaign_in_the_shared_queues_does_not_hold_up_one_that_is_over(world: World) -> None:
    world.waiting(AUDIENCE)
    waited = Wait(world, then={2: world.collected})
    assert waited.ended.problem == ""
    assert waited.sleeps == 2 + BESIDE_POLLS


def test_while_somebody_was_counted_twice_what_lies_in_the_queues_may_be_of_this_run(world: World) -> None:
    audience = world.sqs.get_queue_url(QueueName=AUDIENCE)["QueueUrl"]
    world.waiting(AUDIENCE)
    world.collected(composed=40, existed=2)
    waited = Wait(world, then={99: lambda: world.sqs.purge_queue(QueueUrl=audience)})
    assert waited.ended.problem == ""
    assert waited.sleeps == 99 + QUIET_POLLS - 1


def test_what_lies_in_the_queues_is_waited_for_while_something_is_missing(world: World) -> None:
    audience = world.sqs.get_queue_url(QueueName=AUDIENCE)["QueueUrl"]
    world.collected(composed=30)
    world.waiting(AUDIENCE)
    waited = Wait(world, then={99: lambda: world.sqs.purge_queue(QueueUrl=audience)})
    assert waited.ended.problem.startswith("10 of 40 recipients were not composed.")
    assert waited.sleeps == 99 + LOST_POLLS - 1


def test_a_run_that_goes_on_is_not_taken_for_its_earlier_start(world: World) -> None:
    world.collected()
    waited = Wait(
        world,
        again(world),
        {10: lambda: world.collected(start="s-2", existed=40)},
    )
    assert waited.ended.problem == ""
    assert {each.start for each in waited.seen} == {"s-2"}


@pytest.mark.parametrize("known", [False, True], ids=["a new run", "one that goes on"])
def test_it_ends_where_the_start_is_never_taken_up(world: World, *, known: bool) -> None:
    if known:
        world.collected()
    waited = Wait(world, again(world) if known else START)
    assert waited.ended == Ended(
        None, f"Run {RUN} of weekly did not begin. See the dead letters in mailroom-dev-collect-dlq."
    )
    assert waited.sleeps == LOST_POLLS - 1


def test_a_start_that_waits_in_its_queue_is_waited_for(world: World) -> None:
    world.waiting(COLLECT)
    collect = world.sqs.get_queue_url(QueueName=COLLECT)["QueueUrl"]
    waited = Wait(
        world,
        then={
            LOST_POLLS * 2: world.collected,
            LOST_POLLS * 2 + 1: lambda: world.sqs.purge_queue(QueueUrl=collect),
        },
    )
    assert waited.ended.problem == ""


def test_it_ends_where_a_page_is_refused_and_nothing_is_on_its_way(world: World) -> None:
    waited = Wait(world, then={5: lambda: refused(world)})
    assert waited.ended.run is not None
    assert waited.ended.run.trouble == "column email: is not there"
    assert waited.ended.problem == (
        "Page 1 was not collected, and nothing of the run is on its way. See mailroom campaign status weekly "
        f"--run {RUN} --stage dev, and the dead letters in mailroom-dev-collect-dlq."
    )
    assert waited.sleeps == 5 + LOST_POLLS


@pytest.mark.parametrize(("left_out", "failed", "missing"), [(0, 0, 10), (9, 7, 1)])
def test_people_of_whom_nothing_is_known_are_a_problem_in_the_end(
    world: World, left_out: int, failed: int, missing: int
) -> None:
    world.collected(composed=30, left_out=left_out, failed=failed)
    waited = Wait(world)
    assert waited.ended.problem == (
        f"{missing} of 40 recipients were not composed. See the dead letters in {AUDIENCE_DLQ}, and mailroom "
        f"campaign status weekly --run {RUN} --stage dev."
    )
    assert waited.sleeps == LOST_POLLS


def test_people_whose_message_has_a_reason_not_to_be_there_are_no_problem(world: World) -> None:
    world.collected(composed=30, existed=4, opted_out=3, left_out=2, expired=1)
    waited = Wait(world)
    assert (waited.ended.problem, waited.sleeps) == ("", QUIET_POLLS)


def test_what_an_earlier_start_composed_does_not_stand_for_what_is_missing_now(world: World) -> None:
    world.collected(composed=30)
    start = again(world)
    world.collected(start="s-2", existed=30, composed=1)
    assert Wait(world, start).ended.problem.startswith("9 of 40 recipients were not composed.")


def test_after_failures_new_dead_letters_are_a_problem_however_the_sum_is(world: World) -> None:
    """A chunk that comes again counts its people again, so that the sum hides the one who fails."""
    world.waiting(AUDIENCE_DLQ)
    world.collected(composed=39, existed=39, failed=2)
    waited = Wait(world, then={LOST_POLLS // 2: lambda: world.waiting(AUDIENCE_DLQ)})
    assert waited.ended.problem.startswith(
        f"There is 1 dead letter more than before. See those in {AUDIENCE_DLQ}"
    )


def test_old_dead_letters_and_failures_that_were_made_good_are_no_problem(world: World) -> None:
    world.waiting(AUDIENCE_DLQ)
    world.collected(composed=40, failed=2)
    assert Wait(world).ended.problem == ""


def test_a_run_that_is_stopped_ends_it(world: World) -> None:
    waited = Wait(world, then={2: world.begun, 4: lambda: world.runs.stop("weekly", RUN)})
    assert (waited.ended.problem, waited.sleeps) == ("It was stopped by an operator.", 4 + QUIET_POLLS)


def test_a_run_that_expires_ends_it(world: World) -> None:
    world.begun()
    claim = world.runs.claim("weekly", RUN, "s-1", 1)
    assert isinstance(claim, PageClaim)
    world.runs.release(claim, "they expired at noon", "expired")
    assert Wait(world).ended.problem == "It has expired: what was not composed by then is not sent."


# at the command line


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], Any]]:
    """What happens in the first second of waiting; none of them passes."""
    happens: list[Callable[[], Any]] = []

    def sleep(_seconds: float) -> None:
        if happens:
            happens.pop()()

    monkeypatch.setattr("time.sleep", sleep)
    return happens


def taken(world: World, then: Callable[[], Any]) -> Callable[[], Any]:
    """The start is taken up."""
    collect = world.sqs.get_queue_url(QueueName=COLLECT)["QueueUrl"]
    return lambda: (world.sqs.purge_queue(QueueUrl=collect), then())


def test_a_run_that_is_whole_exits_with_0(world: World, hurried: list[Callable[[], Any]]) -> None:
    hurried.append(taken(world, lambda: world.collected(Fault("line 17", "email", "is empty"))))
    result = run("campaign", "start", "weekly", "--yes", "--wait", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["composed"] == 38


def test_a_refused_page_exits_with_1_and_says_why(world: World, hurried: list[Callable[[], Any]]) -> None:
    hurried.append(taken(world, lambda: refused(world)))
    result = run("campaign", "start", "weekly", "--yes", "--wait")
    assert result.exit_code == 1
    assert "Page 1 was not collected: column email: is not there" in result.stdout
    assert "nothing of the run is on its way" in result.stderr


def test_no_run_exits_with_1_and_is_null_as_json(world: World, hurried: list[Callable[[], Any]]) -> None:
    hurried.append(taken(world, lambda: None))
    result = run("campaign", "start", "weekly", "--yes", "--wait", "--json")
    assert (result.exit_code, result.stdout) == (1, "null\n")
    assert "did not begin" in result.stderr
