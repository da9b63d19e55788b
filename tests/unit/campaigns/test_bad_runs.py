"""Runs that pause themselves: which do, how often healthy ones do, and what a person's decision changes."""

import math
from collections import defaultdict
from itertools import pairwise
from random import Random

import pytest

from mailroom.campaigns.bad_runs import RAISED, BadRuns, Limit, limits_of, shares_above
from mailroom.campaigns.runs import Run, Runs
from mailroom.search.campaign_tallies import Tallies
from tests.support.campaign_start import of_run
from tests.support.unit.post import Counted
from tests.support.unit.shared import RUNS, SEARCH, Aws, FakeClock

NAME = "2026-11-21T09:00Z"
STOP_AT = 5.0
LARGEST = 100_000
"""Recipients of the largest healthy run."""


def most_accepted(limit: Limit, number: int) -> int:
    """Return for how many accepted messages at most this number of bad ones exceeds the limit."""
    low, high = number, 10 * LARGEST
    while low < high:
        middle = (low + high + 1) // 2
        exceeded = limit.share_above({limit.status: number, "delivered": middle - number})
        low, high = (middle, high) if exceeded else (low, middle - 1)
    return low


def chance_to_exceed(limit: Limit, rate: float, people: int) -> float:
    """Return the probability that a run exceeds a limit at any of its messages, if each is bad with the
    probability `rate`.

    The run exceeds it if and only if the k-th bad message comes before a certain number of messages, which
    is computed for each k. `within` has the probabilities of the numbers of bad messages so far, in the runs
    that did not exceed the limit.
    """
    within, messages, exceeded = {0: 1.0}, 0, 0.0
    number = limit.least
    while messages < people and number < limit.least + 200:
        later = min(people, most_accepted(limit, number))
        expected = rate * (later - messages)
        further = [math.exp(-expected) * expected**more / math.factorial(more) for more in range(60)]
        after: dict[int, float] = defaultdict(float)
        for bad, before in within.items():
            for more, part in enumerate(further):
                if before * part > 1e-15:
                    after[bad + more] += before * part
        over = [bad for bad in after if limit.share_above({limit.status: bad, "delivered": later - bad})]
        exceeded += sum(after.pop(bad) for bad in over)
        within, messages, number = after, later, number + 1
    return exceeded


@pytest.mark.parametrize("people", [1_000, 10_000, LARGEST])
def test_fewer_than_one_in_two_hundred_healthy_runs_pauses_itself(people: int) -> None:
    bounced, complained = limits_of(STOP_AT, {})
    assert 0 < chance_to_exceed(bounced, 0.02, people) + chance_to_exceed(complained, 0.0003, people) < 0.005


def test_with_a_limit_of_five_complaints_one_in_fifty_healthy_runs_would_pause_itself() -> None:
    _, complained = limits_of(STOP_AT, {})
    five = Limit("complained", "", 5, complained.share)
    assert 0.02 < chance_to_exceed(five, 0.0003, LARGEST) < 0.025


def test_a_run_exceeds_a_limit_only_if_both_the_number_and_the_share_of_bad_messages_are_too_high() -> None:
    random = Random(74)
    for _ in range(5_000):
        bad, good = random.choice([(random.randrange(60), random.randrange(1_200)), (9, 8_991), (20, 380)])
        stop_at = random.choice([0.5, 5, 50, 100])
        status, least, percent = random.choice([("bounced", 20, stop_at), ("complained", 8, 0.1)])
        counts = {status: bad, random.choice(["sent", "delivered", "undelivered"]): good, "failed": 5_000}
        expected = bad >= least and 100 * bad > percent * (bad + good) + 1e-9
        assert bool(shares_above(limits_of(stop_at, {}), counts)) == expected, (counts, stop_at)


class Campaign:
    """A run of the campaign `spring` whose messages were counted, and the class that may pause it."""

    def __init__(self, aws: Aws, clock: FakeClock) -> None:
        self.aws, self.clock = aws, clock
        self.runs = Runs(aws.dynamodb, RUNS, clock=clock)
        self.stop_at: dict[str, float | None] = {"spring": STOP_AT}
        assert self.runs.begin("spring", NAME, "s-1", NAME)

    @property
    def run(self) -> Run:
        run = self.runs.read("spring", NAME)
        assert run is not None
        return run

    def count(self, begun_at: int | None = None, status: str = "bounced", **counts: int) -> None:
        """Count messages, and index one with this status."""
        begun_at = self.run.begun_at if begun_at is None else begun_at
        tally = {"found_by": f"tally#spring#{NAME}#{begun_at}", "put": "0", "ttl": 1}
        self.aws.put(SEARCH, **tally, **counts)
        tallies = Tallies(self.aws.dynamodb, SEARCH)
        item = {**of_run(self.run, "ada"), "status": status}
        item["id"] = item["id"].replace(f"{self.run.begun_at:08x}", f"{begun_at:08x}")
        BadRuns(tallies, self.runs, self.stop_at, self.clock).pause([item])


@pytest.fixture
def bad_campaign(aws: Aws, clock: FakeClock) -> Campaign:
    return Campaign(aws, clock)


def test_a_run_whose_bounces_exceed_the_limit_pauses_itself_with_its_figures_and_is_counted(
    bad_campaign: Campaign, counted: Counted
) -> None:
    bad_campaign.count(delivered=400, bounced=19, undelivered=30, failed=90)
    assert not bad_campaign.run.paused
    bad_campaign.count(delivered=700, bounced=50, sent=62, failed=90)
    figures = "of 812 accepted messages, 6.16% bounced"
    assert bad_campaign.run.paused == f"since 2026-11-21T09:00:00.000Z by the run itself: {figures}"
    assert (bad_campaign.run.phase, counted()["RunsPaused"]) == ("paused", 1)


def test_the_reason_of_an_automatic_pause_names_each_limit_that_the_run_exceeded(
    bad_campaign: Campaign,
) -> None:
    bad_campaign.count(status="complained", delivered=980, bounced=60, complained=10)
    figures = "of 1,050 accepted messages, 5.71% bounced and 0.95% caused complaints"
    assert bad_campaign.run.paused.endswith(f"by the run itself: {figures}")


def test_a_resumed_run_pauses_itself_again_if_its_share_of_bounces_has_doubled(
    bad_campaign: Campaign,
) -> None:
    shares = []
    for bounced in range(0, 2_001, 5):
        bad_campaign.count(delivered=2_000 - bounced, bounced=bounced, complained=2)
        if bad_campaign.run.paused_by_itself:
            shares.append(bounced / 2_002)
            assert bad_campaign.runs.resume("spring", NAME, "since noon by ada: an old list, known")
    assert 0.05 < shares[0] < 0.053
    assert all(RAISED * before < share < RAISED * before + 0.003 for before, share in pairwise(shares))
    assert len(shares) == 5
    assert bad_campaign.run.resumed == "since noon by ada: an old list, known"


def test_bounces_that_come_late_during_a_pause_do_not_pause_the_run_again_after_the_pause(
    bad_campaign: Campaign,
) -> None:
    bad_campaign.count(delivered=300, bounced=20)
    assert bad_campaign.run.paused_by_itself
    bad_campaign.count(delivered=320, bounced=80)
    assert bad_campaign.runs.resume("spring", NAME, "since noon by ada: a known list")
    bad_campaign.count(delivered=350, bounced=90)
    assert not bad_campaign.run.paused
    bad_campaign.count(delivered=350, bounced=240)
    assert bad_campaign.run.paused_by_itself


def test_bounces_that_come_after_a_stop_do_not_pause_the_next_start(bad_campaign: Campaign) -> None:
    assert bad_campaign.runs.stop("spring", NAME)
    bad_campaign.count(delivered=320, bounced=80)
    bad_campaign.runs.begin("spring", NAME, "s-2", NAME)
    bad_campaign.count(delivered=340, bounced=85)
    assert not bad_campaign.run.paused


def test_a_run_that_was_started_again_meanwhile_is_not_paused_for_bounces_of_its_earlier_start(
    bad_campaign: Campaign,
) -> None:
    read = bad_campaign.run
    bad_campaign.runs.begin("spring", NAME, "s-2", NAME)
    assert not bad_campaign.runs.pause_by_itself(read, "since noon by the run itself: 9% bounced", {})
    assert not bad_campaign.run.paused


@pytest.mark.parametrize(
    ("words", "by_itself"),
    [
        ("since noon by the run itself: 9% bounced", True),
        ("since then: restored from a backup, in which it was paused since noon by the run itself: 9%", True),
        ("since noon by ada: it was paused by the run itself: again", False),
    ],
)
def test_the_text_of_a_pause_shows_whether_the_run_or_a_person_paused_the_run(
    bad_campaign: Campaign, words: str, *, by_itself: bool
) -> None:
    bad_campaign.runs.pause("spring", NAME, words)
    assert bad_campaign.run.paused_by_itself == by_itself


def test_only_a_paused_run_can_be_resumed(bad_campaign: Campaign) -> None:
    assert not bad_campaign.runs.resume("spring", NAME, "since noon by ada: why not")
    assert not bad_campaign.run.resumed


def test_a_run_that_was_paused_for_bounces_still_pauses_itself_for_complaints(bad_campaign: Campaign) -> None:
    bad_campaign.count(delivered=60, bounced=40)
    bad_campaign.runs.resume("spring", NAME, "since noon by ada: a known list")
    bad_campaign.count(delivered=1_950, bounced=40, complained=10)
    assert bad_campaign.run.paused.endswith("of 2,000 accepted messages, 0.50% caused complaints")


def test_a_run_that_paused_itself_and_was_started_again_pauses_itself_only_at_a_raised_limit(
    bad_campaign: Campaign,
) -> None:
    bad_campaign.count(delivered=300, bounced=30)
    assert bad_campaign.run.paused_by_itself
    bad_campaign.clock.advance(60)
    bad_campaign.runs.begin("spring", NAME, "s-2", NAME)
    bad_campaign.count(delivered=320, bounced=31)
    assert not bad_campaign.run.paused
    bad_campaign.count(delivered=320, bounced=80)
    assert bad_campaign.run.paused_by_itself


@pytest.mark.parametrize("stop_at", [{"spring": None}, {}])
def test_runs_of_a_campaign_without_stop_at_never_pause_themselves(
    bad_campaign: Campaign, stop_at: dict[str, float | None]
) -> None:
    bad_campaign.stop_at = stop_at
    bad_campaign.count(bounced=1_000, complained=1_000)
    assert not bad_campaign.run.paused


def test_the_automatic_pause_never_overrides_a_decision_of_a_person(
    bad_campaign: Campaign, counted: Counted
) -> None:
    bad_campaign.runs.pause("spring", NAME, "since noon by ada: a wrong link")
    bad_campaign.count(bounced=1_000)
    assert bad_campaign.run.paused == "since noon by ada: a wrong link"
    bad_campaign.runs.stop("spring", NAME)
    bad_campaign.count(bounced=1_000)
    assert (bad_campaign.run.state, bad_campaign.run.paused) == ("stopped", "")
    assert "RunsPaused" not in counted()


def test_a_late_bounce_of_an_earlier_run_of_the_same_name_does_not_pause_the_run(
    bad_campaign: Campaign,
) -> None:
    bad_campaign.count(bad_campaign.run.begun_at - 1, bounced=1_000)
    assert not bad_campaign.run.paused
