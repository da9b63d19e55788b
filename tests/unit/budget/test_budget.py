"""The day's budget: what bulk gets, what is left for codes, and when more comes free."""

import math
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailroom.budget import CLOSED_SECONDS, HOUR, Budget, PerDay
from mailroom.errors import Contention
from tests.support.unit.fakes import Meddler, asked_twice
from tests.support.unit.shared import BUDGETS, NOW, Aws, FakeClock

DAY = 86_400
LATEST = 900
"""Seconds that a batch has at most, from its question to its last submit."""
PER_DAY, RESERVE = 100, 0.1
PART = 90
ALWAYS: PerDay = [("0001-01-01", PER_DAY)]


def budget(aws: Aws, clock: FakeClock, per_day: PerDay = ALWAYS, client: Any = None) -> Budget:
    return Budget(client or aws.dynamodb, BUDGETS, "mail", per_day, RESERVE, clock)


def granted(of: Budget, wanted: int, place: float = 0) -> int:
    return of.ask(wanted, place).recipients


def test_bulk_gets_at_most_the_daily_limit_minus_the_reserve(aws: Aws, clock: FakeClock) -> None:
    mails = budget(aws, clock)
    assert [granted(mails, 40) for _ in range(4)] == [40, 40, 10, 0]


@pytest.mark.parametrize(("codes", "part"), [(10, PART), (30, PER_DAY - 30)])
def test_normal_messages_reduce_the_part_of_bulk_only_if_they_exceed_the_reserve(
    aws: Aws, clock: FakeClock, codes: int, part: int
) -> None:
    mails = budget(aws, clock)
    mails.count(codes)
    assert granted(mails, 200) == part


def test_normal_messages_may_exceed_the_daily_limit(aws: Aws, clock: FakeClock) -> None:
    mails = budget(aws, clock)
    mails.count(PER_DAY + 5)
    assert granted(mails, 1) == 0
    assert mails.spent() == (PER_DAY + 5, 0)


def test_each_channel_has_its_own_budget(aws: Aws, clock: FakeClock) -> None:
    assert granted(budget(aws, clock), 200) == PART
    texts = Budget(aws.dynamodb, BUDGETS, "sms", ALWAYS, 0, clock)
    assert granted(texts, 200) == PER_DAY


def test_a_grant_counts_against_the_budget_until_its_last_possible_mail_is_a_day_old(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    mails.ask(PART)
    sent_at_the_latest = clock.now - clock.now % HOUR + HOUR + LATEST
    clock.now = sent_at_the_latest + DAY - 1
    assert granted(mails, 1) == 0
    clock.now = sent_at_the_latest + DAY
    assert granted(mails, 200) == PART


def test_the_budget_returns_the_time_at_which_it_has_room_again(aws: Aws, clock: FakeClock) -> None:
    mails = budget(aws, clock)
    assert mails.room() == (PART, clock.now)
    mails.ask(PART)
    none, again = mails.room()
    assert none == 0
    clock.now = again
    assert mails.room() == (PART, again)


def test_the_budget_returns_the_time_at_which_it_has_room_for_a_wanted_number_of_recipients(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    mails.ask(30)
    clock.advance(3 * HOUR)
    mails.ask(40)
    now = clock.now
    frees = [now - now % HOUR + HOUR + LATEST + DAY - ago * HOUR for ago in (3, 0)]
    assert [mails.room(wanted).again for wanted in (20, 21, 50, 51, 500)] == [
        now,
        *(frees[0], frees[0]),
        *(frees[1], frees[1]),
    ]


def test_a_worker_whose_clock_is_behind_gets_the_remaining_part_of_bulk_by_a_second_write(
    aws: Aws, clock: FakeClock
) -> None:
    ahead, behind = FakeClock(clock.now + HOUR), clock
    assert granted(budget(aws, ahead), 50) == 50
    client = Meddler(aws.dynamodb)
    assert granted(budget(aws, behind, client=client), PART - 50) == PART - 50
    assert client.names() == ["update_item", "update_item"]  # the grant begins at the present sums


def test_if_the_sdk_repeats_a_write_the_budget_counts_the_grant_twice_and_returns_the_grant_once(
    aws: Aws, clock: FakeClock
) -> None:
    budget(aws, clock).count(1)
    repeats = Meddler(aws.dynamodb, update_item=asked_twice)
    assert granted(budget(aws, clock, client=repeats), 30) == 30
    assert granted(budget(aws, clock), 200) == PART - 60


@pytest.mark.parametrize("hours", [0, 1])
@pytest.mark.parametrize("used", [0, 15, 40, 41])
def test_if_the_use_of_a_grant_was_reported_only_its_used_recipients_count_in_the_grants_hour(
    aws: Aws, clock: FakeClock, used: int, hours: int
) -> None:
    mails = budget(aws, clock)
    grant = mails.ask(40)
    clock.advance(hours * HOUR)
    mails.settle(aws.dynamodb, grant, used)
    assert mails.spent() == (used, used)
    assert granted(mails, 200) == PART - used
    clock.now = (grant.hour + 1) * HOUR + LATEST + DAY
    assert mails.spent()[0] == (PART - used) * hours  # of the second question, if an hour later


def test_bulk_gets_its_next_grant_an_hour_after_the_provider_has_reported_a_used_up_daily_quota(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    mails.close()
    mails.count(1)
    assert granted(mails, 1) == 0
    assert mails.room() == (0, clock.now + CLOSED_SECONDS)
    clock.advance(CLOSED_SECONDS)
    assert granted(mails, 1) == 1


def test_while_messages_wait_for_the_budget_only_a_message_put_before_them_gets_a_grant(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    mails.join(NOW)
    later = mails.ask(10, NOW)  # in the same second, in which the order is unknown
    assert (later.recipients, later.line_at) == (0, NOW - 1)
    assert granted(mails, 10, NOW - 1) == 10
    assert mails.spent() == (10, 10)


def test_a_further_message_in_the_waiting_line_does_not_change_the_place_from_which_messages_wait(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    for place in (NOW, NOW + 60, NOW - 60):
        mails.join(place)
    assert granted(mails, 1, NOW - 1) == 1
    assert granted(mails, 1, NOW) == 0


def test_after_the_waiting_line_moves_to_a_time_only_messages_put_by_then_get_a_grant(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    mails.join(NOW)
    mails.move_line(NOW + 60)
    assert granted(mails, 1, NOW + 60.9) == 1
    assert granted(mails, 1, NOW + 61) == 0


def test_a_request_without_a_place_in_the_waiting_line_gets_a_grant_although_messages_wait(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    mails.join(NOW)
    assert granted(mails, 1) == 1


def test_the_state_of_the_waiting_line_has_the_current_room_and_the_place_from_which_messages_wait(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    assert mails.line() == (PART, math.inf, 0)
    mails.ask(30)
    mails.join(NOW)
    assert mails.line() == (60, NOW - 1, 1)
    assert mails.room().recipients == 0, "what is left belongs to those who wait"
    mails.close()
    assert mails.line() == (0, NOW - 1, 1)


def test_the_waiting_line_is_closed_unless_a_message_has_joined_since_the_line_was_read(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    mails.join(NOW)
    seen = mails.line().joined
    mails.join(NOW)
    assert not mails.close_line(seen)
    assert granted(mails, 1, NOW) == 0
    assert mails.close_line(mails.line().joined)
    assert granted(mails, 1, NOW) == 1


def test_the_first_message_that_joins_the_waiting_line_after_its_move_keeps_the_line_open(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    mails.move_line(NOW)
    seen = mails.line().joined
    mails.join(NOW)
    assert not mails.close_line(seen)


def test_a_corrected_daily_limit_applies_to_the_next_request_to_the_budget(
    aws: Aws, clock: FakeClock
) -> None:
    """50,000 was meant, 500 was deployed, and thousands wait in the line by then."""
    wrong = budget(aws, clock, [("0001-01-01", 500)])
    assert granted(wrong, 5_000) == 450
    wrong.join(NOW)
    clock.advance(HOUR)
    right = budget(aws, clock, [("0001-01-01", 50_000)])
    assert right.line().recipients == 45_000 - 450
    assert granted(right, 4_550, NOW - 1) == 4_550
    assert granted(wrong, 1, NOW - 1) == 0


def test_an_all_or_nothing_request_gets_no_grant_if_the_budget_has_too_little_room(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    assert mails.ask(PART + 1, whole=True).recipients == 0
    assert mails.ask(PART, whole=True).recipients == PART


def test_the_part_of_bulk_does_not_depend_on_the_messages_sent_so_far(aws: Aws, clock: FakeClock) -> None:
    mails = budget(aws, clock)
    mails.ask(50)
    assert mails.part() == PART


def test_bulk_that_was_sent_without_a_grant_counts_against_the_part_of_bulk(
    aws: Aws, clock: FakeClock
) -> None:
    mails = budget(aws, clock)
    mails.count(5, bulk=True)
    assert (mails.spent(), granted(mails, 200)) == ((5, 5), PART - 5)


@pytest.mark.parametrize(("days", "left"), [(-30, 45), (0, 45), (1, 45), (2, 90), (9, 180)])
def test_the_daily_limit_grows_from_date_to_date_while_an_address_is_warmed_up(
    aws: Aws, clock: FakeClock, days: int, left: int
) -> None:
    clock.advance(days * DAY)
    warm_up = [("2026-11-21", 50), ("2026-11-23", 100), ("2026-11-30", 200)]
    assert granted(budget(aws, clock, warm_up), 1_000) == left


def test_the_budget_raises_contention_for_a_count_if_other_workers_always_change_its_item_first(
    aws: Aws, clock: FakeClock
) -> None:
    def outrun(real: Any, **arguments: Any) -> Any:
        clock.advance(HOUR)
        budget(aws, clock).count(1)
        return real(**arguments)

    outrun_client = Meddler(aws.dynamodb, update_item=outrun)
    mails = budget(aws, clock, client=outrun_client)
    mails._clock = FakeClock(clock.now)  # this worker's clock stands still while the hours of others pass
    with pytest.raises(Contention):
        mails.count(1)


Step = tuple[str, int, int]
"""A step of a test: the action, its number of recipients or seconds, and which of three workers does it."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["bulk", "bulk", "bulk", "code", "turn", "later", "day"]),
        st.integers(1, 60),
        st.integers(0, 2),
    ),
    max_size=60,
)


def walked(aws: Aws, steps: list[Step]) -> list[tuple[float, int]]:
    """Return the numbers of recipients that bulk has sent to in these steps, with their times."""
    aws.dynamodb.empty()  # type: ignore[attr-defined]  # the double's own
    clock, sent = FakeClock(), list[tuple[float, int]]()
    workers = [budget(aws, clock) for _ in range(3)]
    for what, many, who in steps:
        match what:
            case "bulk" | "turn":
                if what == "turn":
                    workers[who].move_line(clock.now)
                got = granted(workers[who], many, clock.now)
                # A batch may take as long as a function runs.
                sent.append((clock.now + LATEST * (many / 60), got))
                if got < many:
                    workers[who].join(clock.now)
            case "code":
                workers[who].count(many)
            case "later":
                clock.advance(many * 173)
            case "day":
                clock.advance(many * 2_000)
    return sent


def most_in_a_day(sent: list[tuple[float, int]]) -> int:
    return max((sum(many for at, many in sent if end - DAY < at <= end) for end, _ in sent), default=0)


@given(steps=STEPS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bulk_never_sends_more_than_its_part_within_24_hours(aws: Aws, steps: list[Step]) -> None:
    assert most_in_a_day(walked(aws, steps)) <= PART


def walk(seed: int) -> list[Step]:
    """The same steps for the same seed."""
    random, kinds = Random(seed), ("bulk", "bulk", "bulk", "code", "turn", "later", "day")
    return [(random.choice(kinds), random.randint(1, 60), random.randrange(3)) for _ in range(60)]


@pytest.mark.parametrize(
    ("name", "weaker"),
    [
        ("_ROOM", "#bulk <= :bulk_most OR #used <= :used_most"),
        ("_LATEST", -HOUR),
        ("_DAY", DAY - 2 * HOUR),
    ],
    ids=["either", "an hour too early", "a day of 22 hours"],
)
def test_the_budget_lets_bulk_exceed_its_part_if_one_of_its_bounds_is_weakened(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, name: str, weaker: object
) -> None:
    assert all(most_in_a_day(walked(aws, walk(seed))) <= PART for seed in range(40))
    monkeypatch.setattr(f"mailroom.budget.{name}", weaker)
    assert any(most_in_a_day(walked(aws, walk(seed))) > PART for seed in range(40))


def test_two_concurrent_requests_get_no_more_than_the_part_of_bulk_together(
    aws: Aws, clock: FakeClock
) -> None:
    other = budget(aws, clock)
    other.count(1)
    met: list[int] = []

    def meanwhile(real: Any, **arguments: Any) -> Any:
        if not met:
            met.append(granted(other, 60))
        return real(**arguments)

    mails = budget(aws, clock, client=Meddler(aws.dynamodb, update_item=meanwhile))
    assert granted(mails, 60) + met[0] == PART


def sends_while_the_day_is_closed(mails: Budget, _: FakeClock) -> bool:
    mails.count(1)
    mails.close()
    return granted(mails, 1) == 1


def overtakes_who_waits(mails: Budget, _: FakeClock) -> bool:
    mails.count(1)
    mails.join(NOW)
    return granted(mails, 1, NOW) == 1


def keeps_every_hour(mails: Budget, clock: FakeClock) -> bool:
    for _ in range(4 * 24):
        clock.advance(HOUR)
        mails.count(1)
    return len(mails._read()) > 2 * 26 + 4


@pytest.mark.parametrize(
    ("name", "weaker", "broken"),
    [
        ("_OPEN", "(attribute_exists(#oldest) OR closed_until <= :now)", sends_while_the_day_is_closed),
        ("_TURN", "(attribute_exists(#oldest) OR line_at >= :place)", overtakes_who_waits),
        ("_SUMS", "attribute_exists(#oldest) AND NOT :oldest = #bulk", keeps_every_hour),
    ],
    ids=["closed", "line", "sums"],
)
def test_the_budget_breaks_a_rule_if_the_condition_that_protects_the_rule_is_weakened(
    aws: Aws, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, name: str, weaker: str, broken: Any
) -> None:
    assert not broken(budget(aws, clock), clock)
    aws.dynamodb.empty()  # type: ignore[attr-defined]  # the double's own
    monkeypatch.setattr(f"mailroom.budget.{name}", weaker)
    assert broken(budget(aws, clock), clock)
