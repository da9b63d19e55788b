"""When a lane sends: within its window; bulk within its part of the day; codes at once."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom.budget import CLOSED_SECONDS, Budget
from mailroom.clock import epoch, iso
from mailroom.delivery.waiting.day import USED_UP_SECONDS
from mailroom.delivery.waiting.provider_refusals import LATEST_MESSAGES, MOST_REFUSED
from mailroom.environment import OtherProvider
from mailroom.ledger.contents import Contents, Held
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.waits import OUTSIDE_WINDOW, PROVIDER_REFUSES, SHARDS, Waits
from mailroom.message.message import Key, decode
from mailroom.message.outcome import DayUsedUp, Misconfigured, NotFound, Rejected, Retry, Sent, Unknowable
from mailroom.recipients.choices import Suppression, Suppressions
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Counted, Make, Post
from tests.support.unit.shared import (
    BUDGETS,
    CONTENTS,
    LEDGER,
    NOW,
    NOW_MS,
    SUPPRESSIONS,
    TTL,
    Aws,
    FakeClock,
    Item,
    crash,
    item,
)

ToWait = Callable[..., Post]
DAYS = (("0001-01-01", 100),)
DAY = 86_400


def lane(post: Make, *says: Any, bulk: bool, **changes: Any) -> Post:
    return post(*says, **{"budgets_table": BUDGETS, "per_day": DAYS, "reserve": 0.1, "bulk": bulk, **changes})


def spent(aws: Aws, clock: FakeClock) -> tuple[int, int]:
    """Return the number of recipients that count: all of them, and those of bulk."""
    return a_day(aws, clock).spent()


def a_day(aws: Aws, clock: FakeClock) -> Budget:
    return Budget(aws.dynamodb, BUDGETS, "mail", DAYS, 0.1, clock)


def mail_items(many: int, **changes: Any) -> list[Item]:
    return [item(id=f"m-{at}", **changes) for at in range(many)]


def to_many(many: int, id_: str = "m-0") -> Item:
    return item(id=id_, to=[f"reader-{at}@example.com" for at in range(many)])


def line_of(aws: Aws, clock: FakeClock) -> list[str]:
    """Return the ids of the messages that wait for the day, the oldest put first."""
    return [row.key.id for row in Waits(aws.dynamodb, LEDGER, TTL, clock).line("mail")]


def due_of(aws: Aws, clock: FakeClock) -> dict[str, tuple[str, int]]:
    """Return the reason and the time of each message that waits for its time, by id."""
    waits = Waits(aws.dynamodb, LEDGER, TTL, clock)
    lists = [
        waits.due(shard, NOW + 7 * DAY, lines_up=lines_up)
        for shard in range(SHARDS)
        for lines_up in (False, True)
    ]
    rows = [row for rows in lists for row in rows]
    return {row.key.id: (row.reason, row.at) for row in rows}


def content_of(aws: Aws, id_: str) -> list[Item]:
    """Return the items with which a message waits."""
    names = [Held(Key(id_, "mail"), aws.item(id_)["wait"]["version"])]
    return [decode(body) for body in Contents(aws.dynamodb, CONTENTS).get(names).values()]


SPELLINGS = {"to": ["ada@example.com", "Ada@Example.com"], "cc": "ADA@EXAMPLE.COM", "bcc": ["eve@x.com"]}


@pytest.mark.parametrize("bulk", [True, False])
def test_each_address_sent_to_the_provider_including_a_repeated_address_uses_the_days_budget(
    make_post: Make, aws: Aws, clock: FakeClock, *, bulk: bool
) -> None:
    """SES counts the addresses in To, CC and BCC, however often an address comes."""
    sender = lane(make_post, bulk=bulk)
    assert sender.handle(item(**SPELLINGS)) == {}
    assert spent(aws, clock) == (4, 4 if bulk else 0)


@pytest.mark.parametrize("bulk", [True, False])
def test_a_batch_of_invalid_messages_does_not_count_the_previous_batch_in_the_budget_again(
    make_post: Make, aws: Aws, clock: FakeClock, *, bulk: bool
) -> None:
    sender = lane(make_post, bulk=bulk)
    sender.handle(*mail_items(2))
    before = spent(aws, clock)
    for _ in range(3):
        sender.handle(item(id="invalid", to="wrong"), "not json")
    sender.handle(item(id="m-3"))
    assert spent(aws, clock) == (before[0] + 1, before[1] + 1 if bulk else 0)


def test_recipients_left_out_of_a_mail_do_not_use_the_days_budget(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    """Neither suppressed recipients nor recipients outside the stage's setting."""
    suppressions = Suppressions(aws.dynamodb, SUPPRESSIONS, clock)
    suppressions.mark(Suppression("gone@example.com", "mail", "bounce", NOW_MS))
    codes = lane(make_post, bulk=False, recipients_only=["example.com"], suppressions=suppressions)
    several = ["gone@example.com", "ada@example.com", "ada@elsewhere.com", "eve@example.com"]
    assert codes.handle(item(to=several), item(id="m-2", to="gone@example.com")) == {}
    assert spent(aws, clock) == (2, 0)


def test_daily_budget_reserved_for_recipients_left_out_of_a_mail_is_used_by_the_next_batch(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    news = lane(make_post, bulk=True, recipients_only=["example.com"])
    several = ["a@elsewhere.com", "b@elsewhere.com", "ada@example.com"]
    news.handle(item(to=several, lane="bulk"))
    news.handle(item(id="m-2", to=["ada@example.com", "eve@example.com"], lane="bulk"))
    assert spent(aws, clock) == (3, 3)


def test_a_redirected_mail_uses_the_days_budget_for_its_new_recipient_only(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    redirected = {"recipients_only": ["example.com"], "redirect_to": "testers@example.com"}
    codes = lane(make_post, bulk=False, **redirected)
    assert codes.handle(item(to=["a@elsewhere.com", "b@elsewhere.com"])) == {}
    assert spent(aws, clock) == (1, 0)


def test_messages_outside_the_bulk_lane_are_sent_even_if_the_days_budget_cannot_be_written(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    down = Meddler(aws.dynamodb, update_item=failing(client_error("InternalServerError", status=500)))
    codes = lane(make_post, bulk=False, budgets=down)
    assert codes.handle(item()) == {}
    assert (aws.item()["status"], codes.submitted) == ("sent", ["m-1"])
    assert down.names() == ["update_item"]
    assert spent(aws, clock) == (0, 0)


def test_a_stage_without_a_daily_limit_never_calls_the_budget_table(make_post: Make, aws: Aws) -> None:
    watched = Meddler(aws.dynamodb)
    for bulk in (False, True):
        assert lane(make_post, bulk=bulk, budgets=watched, per_day=()).handle(item(id=f"m-{bulk}")) == {}
    assert watched.names() == []


def test_messages_outside_the_bulk_lane_use_the_days_budget_only_if_they_are_sent(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    codes = lane(make_post, Retry("slow down"), Rejected("no such domain"), Sent("p-1"), bulk=False)
    codes.handle(*mail_items(3))
    assert spent(aws, clock) == (1, 0)


def test_a_message_with_an_unknown_outcome_uses_the_days_budget(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    lane(make_post, RuntimeError("no answer"), bulk=False).handle(item())
    assert spent(aws, clock) == (1, 0)


@pytest.mark.parametrize("bulk", [True, False])
def test_a_batch_costs_one_write_to_the_budget_table(
    make_post: Make, aws: Aws, clock: FakeClock, *, bulk: bool
) -> None:
    watched = Meddler(aws.dynamodb)
    sender = lane(make_post, bulk=bulk, budgets=watched)
    sender.handle(*mail_items(10))
    watched.calls.clear()  # the first batch of all makes the item
    sender.handle(*(item(id=f"n-{at}") for at in range(10)))
    assert watched.names() == ["update_item"]
    assert (len(sender.submitted), spent(aws, clock)) == (20, (20, 20 if bulk else 0))
    assert line_of(aws, clock) == []


def test_bulk_messages_over_their_share_of_the_days_budget_wait_in_line_and_their_content_is_kept(
    make_post: Make, aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    bulk = lane(make_post, bulk=True)
    bulk.handle(*(to_many(30, f"m-{at}") for at in range(3)))
    assert bulk.handle(item(id="late", name="Ada"), receives=4) == {}, "the queue may delete the record"
    assert bulk.submitted == ["m-0", "m-1", "m-2"]
    assert line_of(aws, clock) == ["late"]
    stored = aws.item("late")
    assert (stored["status"], epoch(stored["scheduledFor"]), "startedAt" in stored) == (
        "scheduled",
        NOW,
        False,
    )
    assert [content["name"] for content in content_of(aws, "late")] == ["Ada"]
    assert counted()["WaitsForDay"] == 1


def used_up(post: Make, *says: Any, **changes: Any) -> Post:
    """Return a bulk lane whose part of the day is used up but for 10 recipients."""
    bulk = lane(post, *says, bulk=True, **changes)
    bulk.handle(*(to_many(40, f"m-{at}") for at in range(2)))
    return bulk


def test_bulk_messages_over_the_fallbacks_budget_wait_and_do_not_use_the_first_providers_budget(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    first = OtherProvider(name="other", queue_url="https://sqs.example/mail-bulk")
    bulk = used_up(make_post, other_provider=first, budget="mail-fallback")
    assert bulk.handle(to_many(20, "over")) == {}
    assert due_of(aws, clock) == {"over": ("day_used_up", NOW + USED_UP_SECONDS)}
    assert (line_of(aws, clock), spent(aws, clock)) == ([], (0, 0))
    assert Budget(aws.dynamodb, BUDGETS, "mail-fallback", DAYS, 0.1, clock).spent() == (90, 90)


@pytest.mark.parametrize("refusal", [None, Misconfigured("no secret")])
def test_bulk_messages_that_move_to_a_second_provider_do_not_use_the_first_providers_budget(
    make_post: Make, aws: Aws, clock: FakeClock, refusal: Misconfigured | None
) -> None:
    aws.urls["second"] = aws.sqs.create_queue(QueueName="second")["QueueUrl"]
    second = OtherProvider(name="other", queue_url=aws.urls["second"], after_tries=2, after_seconds=600)
    bulk = lane(make_post, Retry("429"), bulk=True, other_provider=second)
    bulk.adapter.refusal = refusal
    for number in range(3):
        campaign = [item(id=f"m-{number}-{at}") for at in range(10)]
        for receives in (1, 2):
            bulk.handle(*campaign, receives=receives)
            clock.advance(5)
    assert spent(aws, clock) == (0, 0)
    assert len(aws.bodies("second")) == 10, "as many as SQS hands out at once"
    assert line_of(aws, clock) == []


def test_messages_of_a_batch_wait_in_the_order_in_which_they_were_put(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    places = {"third": NOW - 10, "first": NOW - 30, "second": NOW - 20}
    bulk = used_up(make_post)
    bulk.handle(*(to_many(10, name) for name in places), waited=places)
    assert bulk.submitted[-1] == "first"
    assert line_of(aws, clock) == ["second", "third"]


def test_a_message_waits_behind_waiting_messages_that_were_put_earlier(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = used_up(make_post)
    bulk.handle(to_many(20, "large"), item(id="small"), waited={"large": NOW - 1, "small": NOW})
    assert line_of(aws, clock) == ["large", "small"], "a smaller one behind does not overtake"
    clock.advance(2 * DAY)
    other = lane(make_post, bulk=True)
    other.handle(item(id="new"), item(id="same-second"), waited={"new": clock.now, "same-second": NOW - 1})
    assert other.submitted == []
    assert set(line_of(aws, clock)) == {"large", "small", "same-second", "new"}


def test_a_message_that_was_put_before_the_waiting_messages_is_sent(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    a_day(aws, clock).join(NOW)
    bulk = lane(make_post, bulk=True, pace_seconds=0.1)
    bulk.handle(item(id="new"), item(id="old"), waited={"new": NOW, "old": NOW - 1})
    assert (bulk.submitted, line_of(aws, clock)) == (["old"], ["new"])
    assert spent(aws, clock) == (1, 1)


def test_a_waiting_message_is_sent_after_the_waiting_line_has_moved_to_its_place(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = used_up(make_post)
    bulk.handle(to_many(20, "late"))
    clock.advance(2 * DAY)
    a_day(aws, clock).move_line(NOW)
    after = lane(make_post, bulk=True)
    assert after.handle(to_many(20, "late"), waited={"late": NOW}) == {}
    assert (after.submitted, aws.item("late")["status"]) == (["late"], "sent")


def test_a_message_that_is_twice_in_a_batch_waits_once(make_post: Make, aws: Aws, clock: FakeClock) -> None:
    bulk = used_up(make_post)
    assert bulk.handle(to_many(20, "late"), to_many(20, "late")) == {}
    assert line_of(aws, clock) == ["late"]
    assert len(content_of(aws, "late")) == 1


@pytest.mark.parametrize(("seconds", "granted"), [(1, 2), (0.9, 11)])
def test_a_bulk_sender_reserves_budget_for_one_second_only_if_two_batches_come_within_a_second(
    make_post: Make, aws: Aws, clock: FakeClock, seconds: float, granted: int
) -> None:
    bulk = lane(make_post, bulk=True, pace_seconds=0.1)
    bulk.handle(item())
    clock.now = NOW + seconds
    bulk.handle(item(id="m-2"))
    assert spent(aws, clock) == (granted, granted)


def test_a_mail_to_more_recipients_than_bulks_part_of_the_daily_budget_fails_and_others_are_sent(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(make_post, bulk=True, per_day=(("0001-01-01", 20),))
    assert bulk.handle(to_many(19, "large"), to_many(18, "all")) == {}
    error = aws.item("large")["error"]
    assert (error["code"], error["field"]) == ("invalid", "to")
    assert "19 recipients, but bulk messages may reach only 18 in a day" in error["message"]
    assert bulk.submitted == ["all"]


def test_a_mail_with_more_recipients_than_the_limit_of_today_waits_if_a_later_limit_has_room(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(make_post, bulk=True, per_day=(("0001-01-01", 20), ("2026-11-22", 30)))
    assert bulk.handle(to_many(27, "large")) == {}
    assert line_of(aws, clock) == ["large"]


@pytest.mark.parametrize(("seconds", "counted"), [(0, 1), (3_600, 2)], ids=["at once", "an hour later"])
def test_reserved_daily_budget_that_a_batch_did_not_use_is_used_by_the_next_batch_within_the_hour(
    make_post: Make, aws: Aws, clock: FakeClock, seconds: float, counted: int
) -> None:
    bulk = lane(make_post, Retry("slow down"), Sent("p-1"), bulk=True)
    bulk.handle(item())
    assert spent(aws, clock) == (1, 1)
    clock.advance(seconds)
    assert bulk.handle(item(), receives=2) == {}
    assert spent(aws, clock) == (counted, counted)


def test_bulk_messages_are_retried_and_not_sent_while_the_budget_table_fails(
    make_post: Make, aws: Aws, counted: Counted
) -> None:
    down = Meddler(aws.dynamodb, update_item=failing(client_error("InternalServerError", status=500)))
    bulk = lane(make_post, bulk=True, budgets=down)
    assert bulk.handle(item(), receives=2) == {"r-0": 8}
    assert (bulk.submitted, counted()["Errors"]) == ([], 1)
    assert bulk.handle(item(), receives=3) == {}


@pytest.mark.parametrize("call", ["batch_write_item", "batch_execute_statement"])
def test_a_message_whose_wait_cannot_be_stored_goes_back_to_its_queue(
    make_post: Make, aws: Aws, clock: FakeClock, counted: Counted, call: str
) -> None:
    used_up(make_post).handle(to_many(10, "m-2"))
    down = Meddler(aws.dynamodb, **{call: failing(client_error("InternalServerError", status=500))})
    bulk = lane(make_post, bulk=True, budgets=down)
    assert bulk.handle(item(id="late"), item(id="later")) == {"r-0": 4, "r-1": 4}
    assert (bulk.submitted, line_of(aws, clock), counted()["Errors"]) == ([], [], 1)
    assert bulk.handle(item(id="late"), receives=2) == {}
    assert line_of(aws, clock) == ["late"]


@pytest.mark.parametrize("bulk", [True, False])
def test_a_daily_quota_reported_as_used_up_makes_the_message_wait_and_stops_bulk_messages(
    make_post: Make, aws: Aws, clock: FakeClock, counted: Counted, bulk: bool
) -> None:
    sender = lane(make_post, Sent("p-1"), DayUsedUp("Daily message quota exceeded."), bulk=bulk)
    assert sender.handle(item(id="sent"), item(), receives=3) == {}
    if bulk:
        assert line_of(aws, clock) == ["m-1"]
    else:
        assert due_of(aws, clock) == {"m-1": ("day_used_up", NOW + USED_UP_SECONDS)}
    assert (aws.item()["status"], aws.item()["trouble"]["code"]) == ("scheduled", "day_used_up")
    assert (len(content_of(aws, "m-1")), counted()["DayUsedUp"]) == (1, 1)
    assert spent(aws, clock) == ((2, 2) if bulk else (1, 0)), "what was asked for, and no more"
    after = lane(make_post, bulk=True)
    after.handle(item(id="m-2"), waited={"m-2": NOW - 60})
    assert after.submitted == []
    assert "m-2" in line_of(aws, clock)


def test_reserved_daily_budget_is_not_used_after_the_provider_reports_its_quota_as_used_up(
    make_post: Make, aws: Aws
) -> None:
    bulk = lane(make_post, Retry("slow down"), DayUsedUp("quota"), Sent("p-1"), bulk=True)
    bulk.handle(*mail_items(2))
    bulk.handle(item(id="later"))
    assert bulk.submitted == ["m-0", "m-1"]


def test_a_bulk_sender_without_a_daily_limit_tries_a_batch_every_15_minutes_if_the_quota_is_used_up(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(make_post, *[DayUsedUp("quota")] * 4, Sent("p-1"), bulk=True, per_day=())
    bulk.handle(*mail_items(2))
    bulk.handle(*(item(id=f"later-{at}") for at in range(3)))
    assert bulk.submitted == ["m-0", "m-1"]
    assert {*due_of(aws, clock).values()} == {("day_used_up", NOW + USED_UP_SECONDS)}
    clock.advance(USED_UP_SECONDS)
    bulk.handle(*mail_items(2))
    bulk.handle(item(id="again"))
    assert bulk.submitted == ["m-0", "m-1"] * 2
    clock.advance(USED_UP_SECONDS)
    bulk.handle(item(id="again"))
    assert bulk.submitted[4:] == ["again"]


@pytest.mark.parametrize("bulk", [True, False])
def test_in_a_stage_without_a_daily_limit_a_message_waits_if_the_providers_quota_is_used_up(
    make_post: Make, aws: Aws, clock: FakeClock, *, bulk: bool
) -> None:
    sender = lane(make_post, DayUsedUp("quota"), Sent("p-1"), bulk=bulk, per_day=())
    assert sender.handle(item()) == {}
    assert due_of(aws, clock) == {"m-1": ("day_used_up", NOW + USED_UP_SECONDS)}
    clock.advance(USED_UP_SECONDS)
    assert sender.handle(*content_of(aws, "m-1"), waited={"m-1": NOW}) == {}
    assert aws.item()["status"] == "sent"
    assert "trouble" not in aws.item()


def waits_for_day(post: Make, aws: Aws, clock: FakeClock, **changes: Any) -> Post:
    a_day(aws, clock).join(0)
    return lane(post, bulk=True, **changes)


def waits_for_window(post: Make, _aws: Aws, _clock: FakeClock, **changes: Any) -> Post:
    return lane(post, bulk=True, window=NIGHT, **changes)


TO_WAIT = pytest.mark.parametrize("to_wait", [waits_for_day, waits_for_window])


@TO_WAIT
@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
def test_a_message_that_a_look_up_proves_sent_is_recorded_as_sent_and_does_not_wait(
    make_post: Make, aws: Aws, ledger: Ledger, clock: FakeClock, to_wait: ToWait, on_unknown: str
) -> None:
    """A provider may forget the key of the try while the message waits."""
    crash(ledger, clock)
    bulk = to_wait(make_post, aws, clock, evidence=Sent("p-0"), on_unknown=on_unknown)
    assert bulk.handle(item(), receives=2) == {}
    assert (bulk.submitted, aws.item()["status"]) == ([], "sent")
    assert aws.dynamodb.scan(TableName=CONTENTS)["Items"] == []


@TO_WAIT
def test_a_message_with_a_reason_to_wait_waits_after_a_look_up_proves_it_unsent(
    make_post: Make, aws: Aws, ledger: Ledger, clock: FakeClock, to_wait: ToWait
) -> None:
    crash(ledger, clock)
    bulk = to_wait(make_post, aws, clock, evidence=NotFound())
    assert bulk.handle(item(), receives=2) == {}
    assert (bulk.submitted, len(bulk.adapter.looked_up)) == ([], 1)
    assert [*due_of(aws, clock), *line_of(aws, clock)] == ["m-1"]
    assert len(content_of(aws, "m-1")) == 1
    stored = aws.item()
    assert (stored["status"], {"startedAt", "unsettled_tries"} & set(stored)) == ("scheduled", set())
    assert stored["wait"]["reason"] == stored["trouble"]["code"]


@TO_WAIT
def test_a_message_with_an_unknown_outcome_fails_as_outcome_unknown_and_does_not_wait_for_its_time(
    make_post: Make, aws: Aws, ledger: Ledger, clock: FakeClock, to_wait: ToWait
) -> None:
    crash(ledger, clock)
    bulk = to_wait(make_post, aws, clock, evidence=Unknowable(), on_unknown="hold")
    assert bulk.handle(item(), receives=2) == {}
    assert (bulk.submitted, aws.item()["error"]["code"]) == ([], "outcome_unknown")


def test_a_further_try_of_a_message_with_an_unknown_outcome_uses_the_days_budget(
    make_post: Make, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    crash(ledger, clock)
    bulk = waits_for_day(make_post, aws, clock, evidence=Unknowable(), resend_delays=(0,))
    assert bulk.handle(item(), receives=2) == {}
    assert (bulk.submitted, spent(aws, clock)) == (["m-1"], (1, 1))


def test_a_message_with_an_unknown_outcome_is_retried_if_the_providers_quota_is_used_up(
    make_post: Make, aws: Aws, ledger: Ledger, clock: FakeClock
) -> None:
    crash(ledger, clock)
    codes = lane(make_post, DayUsedUp("quota"), bulk=False, evidence=Unknowable(), resend_delays=(0,))
    assert codes.handle(item(), receives=2) == {"r-0": USED_UP_SECONDS}
    assert "wait" not in aws.item()
    assert len(aws.item()["unsettled_tries"]) == 1


NIGHT = {"from": "20:00", "to": "23:00", "zone": "UTC"}  # the time is 09:00
OPENS = NOW + 11 * 3_600


def test_a_message_outside_its_time_window_waits_with_its_content_until_the_window_opens(
    make_post: Make, aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    codes = lane(make_post, bulk=False)
    assert codes.handle(item(window=NIGHT, name="Ada"), item(id="now"), receives=3) == {}
    assert codes.submitted == ["now"]
    assert due_of(aws, clock) == {"m-1": ("outside_window", OPENS)}
    (content,) = content_of(aws, "m-1")
    assert (content["name"], counted()["WaitsForWindow"]) == ("Ada", 1)
    assert "startedAt" not in aws.item()


@pytest.mark.parametrize("at_once", [True, False], ids=["in one batch", "in two batches"])
def test_the_second_copy_of_a_waiting_message_replaces_the_content_of_the_first(
    make_post: Make, aws: Aws, *, at_once: bool
) -> None:
    codes, copies = (
        lane(make_post, bulk=False),
        [item(window=NIGHT, name="Ada"), item(window=NIGHT, name="Eve")],
    )
    for batch in [copies] if at_once else [[copy] for copy in copies]:
        assert codes.handle(*batch) == {}
    (content,) = aws.dynamodb.scan(TableName=CONTENTS)["Items"]
    assert content["version"]["S"] == aws.item()["wait"]["version"]
    assert [found["name"] for found in content_of(aws, "m-1")] == ["Eve"]


def test_a_message_within_its_time_window_is_sent(make_post: Make, aws: Aws, clock: FakeClock) -> None:
    clock.now = OPENS
    assert lane(make_post, bulk=False).handle(item(window=NIGHT)) == {}
    assert aws.item()["status"] == "sent"


def test_messages_without_a_time_window_use_the_window_of_their_lane(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(make_post, bulk=True, window=NIGHT)
    always = {"from": "00:00", "to": "23:59", "zone": "UTC"}
    bulk.handle(item(), item(id="own", window=always))
    assert bulk.submitted == ["own"]
    assert [*due_of(aws, clock)] == ["m-1"]


def test_messages_that_wait_for_their_time_window_do_not_use_the_days_budget(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    lane(make_post, bulk=True, window=NIGHT).handle(*mail_items(3))
    assert spent(aws, clock) == (0, 0)


def test_a_message_that_expires_before_its_time_window_opens_waits_until_its_expiry(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    lane(make_post, bulk=False).handle(item(window=NIGHT, expires_at="2026-11-21T10:00:00Z"))
    assert due_of(aws, clock) == {"m-1": ("outside_window", NOW + 3_600)}


@pytest.mark.parametrize(("bulk", "window"), [(True, ...), (False, NIGHT)], ids=["bulk", "with a window"])
def test_an_expired_message_fails_as_expired_and_neither_waits_nor_uses_the_days_budget(
    make_post: Make, aws: Aws, clock: FakeClock, *, bulk: bool, window: Any
) -> None:
    sender = lane(make_post, bulk=bulk)
    assert sender.handle(item(window=window, expires_at="2026-11-21T08:59:00Z")) == {}
    assert aws.item()["error"]["code"] == "expired"
    assert spent(aws, clock) == (0, 0)


def test_a_message_with_an_unknown_time_zone_fails_and_other_messages_are_sent(
    make_post: Make, aws: Aws
) -> None:
    bulk = lane(make_post, bulk=True, window={"from": "08:00", "to": "23:00", "zone": "UTC"})
    assert bulk.handle(item(time_zone="Berlin"), item(id="good", time_zone="Europe/Berlin")) == {}
    assert aws.item()["error"]["field"] == "time_zone"
    assert bulk.submitted == ["good"]


def test_a_bulk_message_outside_its_window_is_not_in_the_waiting_line_and_does_not_delay_others(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = used_up(make_post)
    bulk.handle(item(id="night", window=NIGHT), waited={"night": NOW - 60})
    assert (line_of(aws, clock), aws.item("night")["wait"]["lines_up"]) == ([], True)
    assert bulk.handle(item(id="day")) == {}
    assert bulk.submitted[-1] == "day"


REFUSED = Misconfigured("Resend answered 400 validation_error: API key is invalid")


def unlimited(post: Make, *says: Any, **changes: Any) -> Post:
    return lane(post, *says, **{"bulk": True, "per_day": (), **changes})


def batch(name: str, many: int = 10) -> list[Item]:
    return [item(id=f"{name}-{at}") for at in range(many)]


@pytest.mark.parametrize("batches", [6, 30])
def test_if_the_provider_refuses_all_bulk_messages_few_are_submitted_and_the_others_wait(
    make_post: Make, aws: Aws, clock: FakeClock, counted: Counted, batches: int
) -> None:
    bulk = unlimited(make_post, REFUSED)
    back = [record for at in range(batches) for record in bulk.handle(*batch(f"n{at}"))]
    assert len(back) == len(bulk.submitted) == MOST_REFUSED, "these become dead letters, and ring the alarm"
    assert counted()["WaitsForProvider"] == 10 * batches - MOST_REFUSED
    assert {*due_of(aws, clock).values()} == {(PROVIDER_REFUSES, NOW + CLOSED_SECONDS)}


def test_a_message_that_the_provider_refused_is_retried_while_new_bulk_messages_are_stopped(
    make_post: Make, aws: Aws
) -> None:
    bulk = unlimited(make_post, REFUSED)
    bulk.handle(*batch("n"))
    assert len(bulk.handle(*batch("n"), receives=2)) == 10
    assert len(bulk.submitted) == 20
    assert (bulk.handle(item(id="new")), len(bulk.submitted)) == ({}, 20)


def test_after_an_hours_stop_of_bulk_messages_a_single_refusal_by_the_provider_stops_them_again(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = unlimited(make_post, REFUSED)
    bulk.handle(*batch("n"))
    clock.advance(CLOSED_SECONDS)
    assert len(bulk.handle(item(id="o-1"))) == 1
    assert bulk.handle(item(id="o-2")) == {}
    assert [*due_of(aws, clock)] == ["o-2"]


def test_a_single_refusal_does_not_stop_bulk_messages_once_the_provider_accepts_them_again(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    taken = [Sent("p-1")] * LATEST_MESSAGES
    bulk = unlimited(make_post, *[REFUSED] * MOST_REFUSED, *taken, REFUSED, *taken)
    bulk.handle(*batch("n"))
    bulk.handle(*batch("n"), receives=2)
    clock.advance(CLOSED_SECONDS)
    bulk.handle(*batch("o"))
    assert len(bulk.handle(item(id="refused"))) == 1
    assert (bulk.handle(*batch("p")), due_of(aws, clock)) == ({}, {})


@pytest.mark.parametrize("other", [Sent("p-1"), Rejected("no such domain")], ids=["sent", "rejected"])
def test_refusals_of_a_third_of_the_mails_do_not_stop_bulk_messages_if_the_others_are_sent_or_rejected(
    make_post: Make, aws: Aws, clock: FakeClock, other: Sent | Rejected
) -> None:
    bulk = unlimited(make_post, REFUSED, other, other)
    back = [record for at in range(9) for record in bulk.handle(*batch(f"n{at}"))]
    assert (len(back), due_of(aws, clock)) == (30, {})


def test_repeated_refusals_of_one_message_do_not_stop_bulk_messages(make_post: Make, aws: Aws) -> None:
    bulk = unlimited(make_post, REFUSED)
    for receives in range(1, 2 * MOST_REFUSED):
        assert len(bulk.handle(item(id="odd"), receives=receives)) == 1
    assert len(bulk.handle(item(id="another"))) == 1, "it was submitted, and refused as well"


def test_a_message_that_waits_for_the_provider_keeps_the_time_of_its_put(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(make_post, REFUSED, bulk=True)
    bulk.handle(*batch("n"))
    bulk.handle(item(id="old"), waited={"old": NOW - 60})
    assert due_of(aws, clock) == {"old": (PROVIDER_REFUSES, NOW + CLOSED_SECONDS)}
    assert (aws.item("old")["putAt"], aws.item("old")["wait"]["lines_up"]) == (NOW_MS - 60_000, True)


def test_refusals_by_the_provider_never_stop_messages_outside_the_bulk_lane(
    make_post: Make, aws: Aws
) -> None:
    codes = unlimited(make_post, REFUSED, bulk=False)
    for at in range(3):
        codes.handle(*batch(f"n{at}"))
    assert len(codes.submitted) == 30


def test_reserved_budget_that_a_batch_has_returned_is_not_used_by_the_next_batch(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    aws.urls["second"] = aws.sqs.create_queue(QueueName="second")["QueueUrl"]
    second = OtherProvider(name="other", queue_url=aws.urls["second"], after_tries=3, after_seconds=600)
    bulk = lane(make_post, Retry("429"), Sent("p-1"), bulk=True, other_provider=second)
    bulk.handle(item(id="a"))
    bulk.handle(item(id="b"))
    assert (bulk.submitted, spent(aws, clock)) == (["a", "b"], (1, 1))


def test_a_bulk_message_shortly_after_its_send_at_waits_for_its_window(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    window = {"from": "08:00", "to": "09:00", "zone": "UTC"}
    bulk = lane(make_post, bulk=True)
    bulk.handle(item(window=window, send_at=iso(NOW - 30)))
    assert (bulk.submitted, due_of(aws, clock)["m-1"][0]) == ([], OUTSIDE_WINDOW)


def test_a_message_waits_behind_an_earlier_larger_message_that_is_over_the_days_budget(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = used_up(make_post)
    before = len(bulk.submitted)
    a_day(aws, clock).join(NOW)
    bulk.handle(to_many(20, "old"), item(id="new"), waited={"old": NOW - 1, "new": NOW})
    assert bulk.submitted[before:] == []
    assert {*line_of(aws, clock)} >= {"old", "new"}


def test_the_second_copy_of_a_message_that_waits_for_the_daily_quota_is_not_submitted(
    make_post: Make, aws: Aws
) -> None:
    codes = lane(make_post, DayUsedUp("454"), Sent("p-1"), bulk=False)
    assert codes.handle(item(), item()) == {}
    assert (codes.submitted, aws.item()["status"]) == (["m-1"], "scheduled")


def test_a_used_up_daily_quota_stops_bulk_messages_even_if_sent_messages_cannot_be_counted(
    make_post: Make, aws: Aws, clock: FakeClock
) -> None:
    def no_count(real: Callable[..., Any], **request: Any) -> Any:
        if request["UpdateExpression"].startswith("ADD"):
            raise client_error("ThrottlingException")
        return real(**request)

    client = Meddler(aws.dynamodb, update_item=no_count)
    lane(make_post, Sent("p-1"), DayUsedUp("454"), bulk=False, budgets=client).handle(
        item(id="a"), item(id="b")
    )
    assert a_day(aws, clock).room().recipients == 0
