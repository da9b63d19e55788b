"""The order of statuses: forward alone."""

from typing import get_args

import pytest

from mailroom.message.outcome import Status, before

ALL: tuple[Status, ...] = get_args(Status)


def test_every_status_of_the_design_is_there() -> None:
    given = "scheduled sending retrying sent failed suppressed cancelled"
    observed = "delivered undelivered bounced complained"
    assert set(ALL) == {*given.split(), *observed.split()}


@pytest.mark.parametrize("status", ALL)
def test_no_status_replaces_itself(status: Status) -> None:
    assert status not in before(status)


def test_of_two_statuses_exactly_one_may_replace_the_other() -> None:
    for one in ALL:
        for other in ALL:
            if one != other:
                assert (one in before(other)) != (other in before(one))


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
def test_what_is_known_better_comes_later(later: Status, earlier: Status) -> None:
    assert earlier in before(later)
    assert later not in before(earlier)
