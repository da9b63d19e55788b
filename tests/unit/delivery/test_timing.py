"""When a lane sends: within its window; bulk within its part of the day; codes at once."""

from typing import Any

import pytest

from mailroom.budget import CLOSED_SECONDS, Budget
from mailroom.delivery.timing import LATEST_MESSAGES, MOST_REFUSED, USED_UP_SECONDS
from mailroom.message.message import PROVIDER_REFUSES, Held, held
from mailroom.message.outcome import DayUsedUp, Misconfigured, Rejected, Retry, Sent
from mailroom.recipients.choices import Suppression, Suppressions
from tests.support.unit.fakes import Meddler, client_error, failing
from tests.support.unit.post import Counted, Make, Post
from tests.support.unit.shared import BUDGETS, NOW, NOW_MS, SUPPRESSIONS, Aws, FakeClock, Item, item

DAYS = (("0001-01-01", 100),)
DAY = 86_400


def lane(post: Make, aws: Aws, *says: Any, bulk: bool, **changes: Any) -> Post:
    of_day = {"budgets_table": BUDGETS, "per_day": DAYS, "reserve": 0.1, "bulk": bulk}
    return post(*says, **{"scheduled_queue_url": aws.urls["scheduled"], **of_day, **changes})


def spent(aws: Aws, clock: FakeClock) -> tuple[int, int]:
    """Return the number of recipients that count: all of them, and those of bulk."""
    return Budget(aws.dynamodb, BUDGETS, "mail", DAYS, 0.1, clock).spent()


def mails(many: int, **changes: Any) -> list[Item]:
    return [item(id=f"m-{at}", **changes) for at in range(many)]


def to_many(many: int, id_: str = "m-0") -> Item:
    return item(id=id_, to=[f"reader-{at}@example.com" for at in range(many)])


def waiting(aws: Aws) -> list[Held]:
    entries = [held(body) for body in aws.bodies("scheduled")]
    return [entry for entry in entries if entry is not None]


SPELLINGS = {"to": ["ada@example.com", "Ada@Example.com"], "cc": "ADA@EXAMPLE.COM", "bcc": ["eve@x.com"]}


@pytest.mark.parametrize("bulk", [True, False])
def test_each_address_sent_to_the_provider_including_a_repeated_address_uses_the_days_budget(
    post: Make, aws: Aws, clock: FakeClock, *, bulk: bool
) -> None:
    """SES counts the addresses in To, CC and BCC, however often an address comes."""
    sender = lane(post, aws, bulk=bulk)
    assert sender.handle(item(**SPELLINGS)) == {}
    assert spent(aws, clock) == (4, 4 if bulk else 0)


@pytest.mark.parametrize("bulk", [True, False])
def test_an_invalid_batch_does_not_count_the_previous_batch_in_the_days_budget_again(
    post: Make, aws: Aws, clock: FakeClock, *, bulk: bool
) -> None:
    sender = lane(post, aws, bulk=bulk)
    sender.handle(*mails(2))
    before = spent(aws, clock)
    for _ in range(3):
        sender.handle(item(id="invalid", to="wrong"), "not json")
    sender.handle(item(id="m-3"))
    assert spent(aws, clock) == (before[0] + 1, before[1] + 1 if bulk else 0)


def test_recipients_left_out_of_a_mail_do_not_use_the_days_budget(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    """Neither suppressed recipients nor recipients outside the stage's setting."""
    suppressions = Suppressions(aws.dynamodb, SUPPRESSIONS, clock)
    suppressions.mark(Suppression("gone@example.com", "mail", "bounce", NOW_MS))
    codes = lane(post, aws, bulk=False, recipients_only=["example.com"], suppressions=suppressions)
    several = ["gone@example.com", "ada@example.com", "ada@elsewhere.com", "eve@example.com"]
    assert codes.handle(item(to=several), item(id="m-2", to="gone@example.com")) == {}
    assert spent(aws, clock) == (2, 0)


def test_daily_budget_reserved_for_recipients_left_out_of_a_mail_is_used_by_the_next_batch(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    news = lane(post, aws, bulk=True, recipients_only=["example.com"])
    several = ["a@elsewhere.com", "b@elsewhere.com", "ada@example.com"]
    news.handle(item(to=several, lane="bulk"))
    news.handle(item(id="m-2", to=["ada@example.com", "eve@example.com"], lane="bulk"))
    assert spent(aws, clock) == (3, 3)


def test_a_redirected_mail_uses_the_days_budget_for_its_new_recipient_only(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    redirected = {"recipients_only": ["example.com"], "redirect_to": "testers@example.com"}
    codes = lane(post, aws, bulk=False, **redirected)
    assert codes.handle(item(to=["a@elsewhere.com", "b@elsewhere.com"])) == {}
    assert spent(aws, clock) == (1, 0)


def test_messages_outside_the_bulk_lane_are_sent_even_if_the_days_budget_cannot_be_written(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    down = Meddler(aws.dynamodb, update_item=failing(client_error("InternalServerError", status=500)))
    codes = lane(post, aws, bulk=False, budgets=down)
    assert codes.handle(item()) == {}
    assert (aws.item()["status"], codes.submitted) == ("sent", ["m-1"])
    assert down.names() == ["update_item"]
    assert spent(aws, clock) == (0, 0)


def test_a_stage_without_a_daily_limit_never_calls_the_budget_table(post: Make, aws: Aws) -> None:
    watched = Meddler(aws.dynamodb)
    for bulk in (False, True):
        assert lane(post, aws, bulk=bulk, budgets=watched, per_day=()).handle(item(id=f"m-{bulk}")) == {}
    assert watched.names() == []


def test_messages_outside_the_bulk_lane_use_the_days_budget_only_if_they_are_sent(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    codes = lane(post, aws, Retry("slow down"), Rejected("no such domain"), Sent("p-1"), bulk=False)
    codes.handle(*mails(3))
    assert spent(aws, clock) == (1, 0)


def test_a_message_with_an_unknown_outcome_uses_the_days_budget(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    lane(post, aws, RuntimeError("no answer"), bulk=False).handle(item())
    assert spent(aws, clock) == (1, 0)


@pytest.mark.parametrize("bulk", [True, False])
def test_a_batch_costs_one_write_to_the_budget_table(
    post: Make, aws: Aws, clock: FakeClock, *, bulk: bool
) -> None:
    watched = Meddler(aws.dynamodb)
    sender = lane(post, aws, bulk=bulk, budgets=watched)
    sender.handle(*mails(10))
    watched.calls.clear()  # the first batch of all makes the item
    sender.handle(*(item(id=f"n-{at}") for at in range(10)))
    assert watched.names() == ["update_item"]
    assert (len(sender.submitted), spent(aws, clock)) == (20, (20, 20 if bulk else 0))
    assert waiting(aws) == []


def test_bulk_messages_over_their_share_of_the_days_budget_wait_with_their_content_until_the_next_day(
    post: Make, aws: Aws, clock: FakeClock, counted: Counted
) -> None:
    bulk = lane(post, aws, bulk=True)
    bulk.handle(*(to_many(30, f"m-{at}") for at in range(3)))
    assert bulk.handle(*mails(2, name="Ada")[::-1]) == {}
    assert bulk.submitted == ["m-0", "m-1", "m-2"]
    first, second = waiting(aws)
    assert (first.item["id"], first.item["name"], first.in_line) == ("m-1", "Ada", True)
    assert NOW + DAY < first.due < second.due
    assert counted()["WaitsForDay"] == 2


def test_a_message_postponed_to_the_next_day_is_not_claimed_and_leaves_the_queue(
    post: Make, aws: Aws
) -> None:
    bulk = lane(post, aws, bulk=True)
    bulk.handle(*(to_many(30, f"m-{at}") for at in range(3)))
    assert bulk.handle(item(id="late"), receives=4) == {}  # the queue may delete the record
    assert aws.item("late") == {}


def test_a_message_that_waited_for_the_days_quota_is_sent_before_new_messages(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(post, aws, bulk=True)
    bulk.handle(*(to_many(30, f"m-{at}") for at in range(3)))
    bulk.handle(item(id="late"), item(id="later"))
    late, _ = waiting(aws)
    clock.now = late.due
    bulk.handle(item(id="new"))
    assert [entry.item["id"] for entry in waiting(aws)] == ["new"]
    assert bulk.handle(late.item, in_line={"late"}) == {}
    assert bulk.submitted[-1] == "late"


def test_within_a_batch_messages_that_waited_for_the_days_quota_are_sent_first(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(post, aws, bulk=True)
    bulk.handle(*(to_many(40, f"m-{at}") for at in range(2)))
    bulk.handle(to_many(10, "new"), to_many(10, "late"), in_line={"late"})
    assert bulk.submitted[-1] == "late"
    assert [entry.item["id"] for entry in waiting(aws)] == ["new"]


def test_a_small_mail_does_not_overtake_a_large_mail_that_exceeds_the_days_quota(
    post: Make, aws: Aws
) -> None:
    bulk = lane(post, aws, bulk=True)
    bulk.handle(*(to_many(40, f"m-{at}") for at in range(2)))
    bulk.handle(to_many(20, "large"), item(id="small"))
    assert [entry.item["id"] for entry in waiting(aws)] == ["large", "small"]


def test_reserved_daily_budget_that_a_batch_did_not_use_is_used_by_the_next_batch(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(post, aws, Retry("slow down"), Sent("p-1"), bulk=True)
    bulk.handle(item())
    assert spent(aws, clock) == (1, 1)
    assert bulk.handle(item(), receives=2) == {}
    assert spent(aws, clock) == (1, 1)


def test_reserved_daily_budget_that_was_not_used_expires_after_the_hour(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(post, aws, Retry("slow down"), Sent("p-1"), bulk=True)
    bulk.handle(item())
    clock.advance(3_600)
    bulk.handle(item(), receives=2)
    assert spent(aws, clock) == (2, 2)


def test_an_expired_bulk_message_fails_as_expired_and_does_not_use_the_days_budget(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(post, aws, bulk=True)
    assert bulk.handle(item(expires_at="2026-11-21T08:59:00Z")) == {}
    assert aws.item()["error"]["code"] == "expired"
    assert spent(aws, clock) == (0, 0)


def test_bulk_messages_are_retried_and_not_sent_while_the_budget_table_fails(
    post: Make, aws: Aws, counted: Counted
) -> None:
    down = Meddler(aws.dynamodb, update_item=failing(client_error("InternalServerError", status=500)))
    bulk = lane(post, aws, bulk=True, budgets=down)
    assert bulk.handle(item(), receives=2) == {"r-0": 8}
    assert (bulk.submitted, counted()["Errors"]) == ([], 1)
    assert bulk.handle(item(), receives=3) == {}


def test_a_message_that_cannot_be_postponed_is_retried_from_its_own_queue(
    post: Make, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk = lane(post, aws, bulk=True, scheduled_queue_url="https://sqs.example/nowhere")
    bulk.handle(*(to_many(30, f"m-{at}") for at in range(3)))
    assert bulk.handle(item()) == {"r-0": 4}


@pytest.mark.parametrize("bulk", [True, False])
def test_after_the_provider_reports_its_daily_quota_as_used_up_the_message_waits_and_bulk_messages_stop(
    post: Make, aws: Aws, clock: FakeClock, counted: Counted, bulk: bool
) -> None:
    sender = lane(post, aws, DayUsedUp("Daily message quota exceeded."), bulk=bulk)
    assert sender.handle(item(), receives=3) == {}
    (entries,) = waiting(aws)
    assert entries.due >= NOW + USED_UP_SECONDS
    assert entries.put_at == (entries.due if bulk else NOW)
    assert aws.item()["trouble"]["code"] == "day_used_up"
    assert counted()["DayUsedUp"] == 1
    after = lane(post, aws, bulk=True)
    after.handle(item(id="m-2"))
    assert after.submitted == []


def test_reserved_daily_budget_is_not_used_after_the_provider_reports_its_quota_as_used_up(
    post: Make, aws: Aws
) -> None:
    bulk = lane(post, aws, Retry("slow down"), DayUsedUp("quota"), Sent("p-1"), bulk=True)
    bulk.handle(*mails(2))
    bulk.handle(item(id="later"))
    assert bulk.submitted == ["m-0", "m-1"]


def test_in_a_stage_without_a_daily_limit_a_message_waits_if_the_providers_quota_is_used_up(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    sender = lane(post, aws, DayUsedUp("quota"), Sent("p-1"), bulk=False, per_day=())
    assert sender.handle(item()) == {}
    (entries,) = waiting(aws)
    clock.now = entries.due
    assert sender.handle(entries.item) == {}
    assert aws.item()["status"] == "sent"
    assert "trouble" not in aws.item()


NIGHT = {"from": "20:00", "to": "23:00", "zone": "UTC"}  # it is 09:00
OPENS = NOW + 11 * 3_600


def test_a_message_outside_its_time_window_waits_with_its_content_until_the_window_opens(
    post: Make, aws: Aws, counted: Counted
) -> None:
    codes = lane(post, aws, bulk=False)
    assert codes.handle(item(window=NIGHT, name="Ada"), item(id="now"), receives=3) == {}
    assert codes.submitted == ["now"]
    (entries,) = waiting(aws)
    assert (entries.due, entries.put_at, entries.in_line, entries.code) == (
        OPENS,
        OPENS,
        False,
        "outside_window",
    )
    assert (entries.item["name"], counted()["WaitsForWindow"]) == ("Ada", 1)
    assert aws.item() == {}


def test_a_message_within_its_time_window_is_sent(post: Make, aws: Aws, clock: FakeClock) -> None:
    clock.now = OPENS
    assert lane(post, aws, bulk=False).handle(item(window=NIGHT)) == {}
    assert aws.item()["status"] == "sent"


def test_the_time_zone_of_a_message_overrides_the_zone_of_its_window(post: Make, aws: Aws) -> None:
    codes = lane(post, aws, bulk=False)
    codes.handle(item(window=NIGHT, time_zone="Asia/Tokyo"))  # 18:00 there
    assert waiting(aws)[0].due == NOW + 2 * 3_600


def test_messages_without_a_time_window_use_the_window_of_their_lane(post: Make, aws: Aws) -> None:
    bulk = lane(post, aws, bulk=True, window=NIGHT)
    always = {"from": "00:00", "to": "23:59", "zone": "UTC"}
    bulk.handle(item(), item(id="own", window=always))
    assert bulk.submitted == ["own"]
    assert [entry.item["id"] for entry in waiting(aws)] == ["m-1"]


def test_messages_that_wait_for_their_time_window_do_not_use_the_days_budget(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    lane(post, aws, bulk=True, window=NIGHT).handle(*mails(3))
    assert spent(aws, clock) == (0, 0)


def test_a_message_that_expires_before_its_time_window_opens_waits_until_its_expiry(
    post: Make, aws: Aws
) -> None:
    codes = lane(post, aws, bulk=False)
    codes.handle(item(window=NIGHT, expires_at="2026-11-21T10:00:00Z"))
    assert waiting(aws)[0].due == NOW + 3_600


def test_a_message_that_expired_while_it_waited_for_its_window_fails_as_expired(post: Make, aws: Aws) -> None:
    codes = lane(post, aws, bulk=False)
    assert codes.handle(item(window=NIGHT, expires_at="2026-11-21T08:00:00Z")) == {}
    assert aws.item()["error"]["code"] == "expired"


def test_a_message_with_an_unknown_time_zone_fails_and_other_messages_are_sent(post: Make, aws: Aws) -> None:
    bulk = lane(post, aws, bulk=True, window={"from": "08:00", "to": "23:00", "zone": "UTC"})
    assert bulk.handle(item(time_zone="Berlin"), item(id="good", time_zone="Europe/Berlin")) == {}
    assert aws.item()["error"]["field"] == "time_zone"
    assert bulk.submitted == ["good"]


def test_a_message_that_gets_quota_outside_its_time_window_waits_until_the_window_opens(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(post, aws, bulk=True)
    bulk.handle(*(to_many(30, f"m-{at}") for at in range(3)))
    hours = {"from": "08:00", "to": "10:00", "zone": "UTC"}
    bulk.handle(item(id="late", window=hours))
    (slot,) = waiting(aws)
    clock.now = slot.due
    bulk.handle(slot.item, in_line={"late"})
    (again,) = waiting(aws)
    assert (again.code, again.due > slot.due) == ("outside_window", True)


REFUSED = Misconfigured("Resend answered 400 validation_error: API key is invalid")


def unlimited(post: Make, aws: Aws, *says: Any, **changes: Any) -> Post:
    return lane(post, aws, *says, **{"bulk": True, "per_day": (), **changes})


def batch(name: str, many: int = 10) -> list[Item]:
    return [item(id=f"{name}-{at}") for at in range(many)]


@pytest.mark.parametrize("batches", [30, 60])
def test_if_the_provider_refuses_a_campaign_nearly_all_messages_are_postponed_and_few_dead_lettered(
    post: Make, aws: Aws, counted: Counted, batches: int
) -> None:
    bulk = unlimited(post, aws, REFUSED)
    back = [record for at in range(batches) for record in bulk.handle(*batch(f"n{at}"))]
    assert len(back) == len(bulk.submitted) == MOST_REFUSED, "these become dead letters, and ring the alarm"
    assert counted()["WaitsForProvider"] == 10 * batches - MOST_REFUSED
    assert {(entry.code, entry.due) for entry in waiting(aws)} == {(PROVIDER_REFUSES, NOW + CLOSED_SECONDS)}


def test_a_message_that_the_provider_refused_is_retried_while_new_bulk_messages_are_stopped(
    post: Make, aws: Aws
) -> None:
    bulk = unlimited(post, aws, REFUSED)
    bulk.handle(*batch("n"))
    assert len(bulk.handle(*batch("n"), receives=2)) == 10
    assert len(bulk.submitted) == 20


def test_after_the_one_hour_stop_a_single_refusal_by_the_provider_stops_bulk_messages_again(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = unlimited(post, aws, REFUSED)
    bulk.handle(*batch("n"))
    clock.advance(CLOSED_SECONDS)
    assert len(bulk.handle(item(id="o-1"))) == 1
    assert bulk.handle(item(id="o-2")) == {}
    assert [entry.item["id"] for entry in waiting(aws)] == ["o-2"]


def test_a_single_refusal_does_not_stop_bulk_messages_once_the_provider_accepts_them_again(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    taken = [Sent("p-1")] * LATEST_MESSAGES
    bulk = unlimited(post, aws, *[REFUSED] * MOST_REFUSED, *taken, REFUSED, *taken)
    bulk.handle(*batch("n"))
    bulk.handle(*batch("n"), receives=2)
    clock.advance(CLOSED_SECONDS)
    bulk.handle(*batch("o"))
    assert len(bulk.handle(item(id="refused"))) == 1
    assert (bulk.handle(*batch("p")), waiting(aws)) == ({}, [])


def test_refusals_of_a_third_of_the_mails_by_the_provider_do_not_stop_bulk_messages(
    post: Make, aws: Aws
) -> None:
    bulk = unlimited(post, aws, REFUSED, Sent("p-1"), Sent("p-2"))
    back = [record for at in range(9) for record in bulk.handle(*batch(f"n{at}"))]
    assert (len(back), waiting(aws)) == (30, [])


def test_repeated_refusals_of_one_message_do_not_stop_bulk_messages(post: Make, aws: Aws) -> None:
    bulk = unlimited(post, aws, REFUSED)
    for receives in range(1, 2 * MOST_REFUSED):
        assert len(bulk.handle(item(id="odd"), receives=receives)) == 1
    assert len(bulk.handle(item(id="another"))) == 1, "it was submitted, and refused as well"


def test_refusals_do_not_stop_bulk_messages_if_most_mails_were_rejected_for_invalid_recipients(
    post: Make, aws: Aws
) -> None:
    bulk = unlimited(post, aws, REFUSED, Rejected("no such domain"), Rejected("no such address"))
    for at in range(9):
        bulk.handle(*batch(f"n{at}"))
    assert waiting(aws) == []


def test_a_message_that_waited_for_quota_keeps_its_priority_while_bulk_messages_are_stopped(
    post: Make, aws: Aws
) -> None:
    bulk = lane(post, aws, REFUSED, bulk=True)
    bulk.handle(*batch("n"))
    bulk.handle(item(id="in-line"), item(id="new"), in_line={"in-line"})
    entries = waiting(aws)
    assert {entry.item["id"]: entry.in_line for entry in entries} == {"in-line": True, "new": False}
    assert {entry.put_at for entry in entries} == {NOW}, "the wait is a delay"


def test_refusals_by_the_provider_never_stop_messages_outside_the_bulk_lane(post: Make, aws: Aws) -> None:
    codes = unlimited(post, aws, REFUSED, bulk=False)
    for at in range(3):
        codes.handle(*batch(f"n{at}"))
    assert len(codes.submitted) == 30
