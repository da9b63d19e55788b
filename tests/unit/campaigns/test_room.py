"""Whether a campaign's next page has room in the day."""

import pytest

from mailroom.budget import Budget
from mailroom.campaigns.definition import Definition, Module
from mailroom.campaigns.room import LOOK_AGAIN_SECONDS, PageRoom
from tests.support.unit.shared import BUDGETS, NOW, Aws, FakeClock

PAGE = Definition("weekly", "mail", Module(), page_size=40, recipients_per_message=10)


@pytest.fixture
def room(aws: Aws, clock: FakeClock) -> PageRoom:
    budget = Budget(aws.dynamodb, BUDGETS, "mail", [("0001-01-01", 100)], 0.1, clock)
    return PageRoom(budget, aws.sqs, aws.urls["mail-bulk"], aws.urls["audience"])


def fill_queue(aws: Aws, queue: str, many: int) -> None:
    for _ in range(many):
        aws.sqs.send_message(QueueUrl=aws.urls[queue], MessageBody="{}")


def test_a_page_of_recipients_that_fits_into_the_daily_limit_is_sent_at_once(room: PageRoom) -> None:
    room.budget.ask(50)
    assert room.again(PAGE, NOW) is None


def test_a_page_of_recipients_is_sent_at_once_if_the_daily_limit_has_room_for_some_of_them(
    room: PageRoom,
) -> None:
    room.budget.ask(89)
    assert room.again(PAGE, NOW) is None


def test_a_page_of_recipients_waits_until_the_daily_limit_has_room_again(room: PageRoom) -> None:
    room.budget.ask(90)
    again = room.again(PAGE, NOW)
    assert again == room.budget.room().again
    assert NOW + 86_400 < again < NOW + 91_000


def test_a_page_of_recipients_waits_while_other_messages_wait_for_the_daily_limit(room: PageRoom) -> None:
    room.budget.join(NOW)
    assert room.again(PAGE, NOW) == NOW + LOOK_AGAIN_SECONDS
    assert room.budget.close_line(1)
    assert room.again(PAGE, NOW) is None


@pytest.mark.parametrize(
    ("mails", "chunks", "again"), [(89, 0, False), (90, 0, True), (0, 8, False), (80, 1, True)]
)
def test_messages_in_queues_count_against_the_daily_limit(
    room: PageRoom, aws: Aws, mails: int, chunks: int, again: bool
) -> None:
    fill_queue(aws, "mail-bulk", mails)
    fill_queue(aws, "audience", chunks)
    assert room.again(PAGE, NOW) == (NOW + LOOK_AGAIN_SECONDS if again else None)


def test_a_page_larger_than_the_daily_limit_is_sent_although_part_of_the_limit_is_used(
    room: PageRoom,
) -> None:
    large = Definition("weekly", "mail", Module(), page_size=1_000)
    room.budget.ask(1)
    assert room.again(large, NOW) is None
