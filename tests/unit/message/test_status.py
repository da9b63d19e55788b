"""The order of statuses: a status only moves forward."""

from itertools import product
from typing import get_args

import pytest

from mailroom.message.outcome import Status, before

ALL: tuple[Status, ...] = get_args(Status)


def test_the_type_status_has_the_seven_statuses_of_mailroom_and_the_four_of_providers() -> None:
    written = "scheduled sending retrying sent failed suppressed cancelled"
    observed = "delivered undelivered bounced complained"
    assert set(ALL) == {*written.split(), *observed.split()}


def test_of_two_different_statuses_exactly_one_may_replace_the_other() -> None:
    for first, second in product(ALL, ALL):
        orders = [first in before(second), second in before(first)]
        assert orders.count(True) == (first != second)  # a status does not replace itself


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        ("sent", "sending"),
        ("sent", "failed"),
        ("delivered", "sent"),
        ("delivered", "undelivered"),
        ("bounced", "delivered"),
        ("complained", "delivered"),
        ("complained", "bounced"),
    ],
)
def test_a_status_based_on_later_evidence_may_replace_an_earlier_status(
    later: Status, earlier: Status
) -> None:
    assert earlier in before(later)
    assert later not in before(earlier)
