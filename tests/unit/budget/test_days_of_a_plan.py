"""The days that `mailroom cost` and a dry run reckon with follow the rule of the day's budget."""

from itertools import pairwise

from mailroom.budget import Budget
from mailroom_ops.costs.days import portions
from tests.support.unit.shared import BUDGETS, Aws, FakeClock


def test_the_budget_grants_each_daily_portion_of_a_plan_and_not_more_before_the_next_day(
    aws: Aws, clock: FakeClock
) -> None:
    of_day = ([("2026-11-21", 500), ("2026-11-23", 1_000)], 0.1)
    mails = Budget(aws.dynamodb, BUDGETS, "mail", *of_day, clock)
    plan = [*portions(3_000, *of_day, clock.now)]
    assert sum(portion.messages for portion in plan) == 3_000
    for portion, following in pairwise(plan):
        clock.now = portion.begins
        assert mails.ask(portion.messages, whole=True).recipients == portion.messages
        clock.now = following.begins - 1
        assert mails.ask(1).recipients == 0  # so the plan waits
