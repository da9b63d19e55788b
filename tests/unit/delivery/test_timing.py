"""When a lane sends: within its window; bulk as the day has room; codes at once, counted afterwards."""

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
    """The recipients that count: all, and bulk's."""
    return Budget(aws.dynamodb, BUDGETS, "mail", DAYS, 0.1, clock).spent()


def mails(many: int, **changes: Any) -> list[Item]:
    return [item(id=f"m-{at}", **changes) for at in range(many)]


def to_many(many: int, id_: str = "m-0") -> Item:
    return item(id=id_, to=[f"reader-{at}@example.com" for at in range(many)])


def waiting(aws: Aws) -> list[Held]:
    found = [held(body) for body in aws.bodies("scheduled")]
    return [each for each in found if each is not None]


SPELLINGS = {"to": ["ada@example.com", "Ada@Example.com"], "cc": "ADA@EXAMPLE.COM", "bcc": ["eve@x.com"]}


@pytest.mark.parametrize("bulk", [True, False])
def test_a_mail_counts_each_address_that_its_provider_is_given(
    post: Make, aws: Aws, clock: FakeClock, *, bulk: bool
) -> None:
    """SES counts the addresses in To, CC and BCC, however often an address comes."""
    sender = lane(post, aws, bulk=bulk)
    assert sender.handle(item(**SPELLINGS)) == {}
    assert spent(aws, clock) == (4, 4 if bulk else 0)


def test_recipients_count_as_far_as_the_provider_is_given_them(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    """Neither who has opted out, nor whom the stage may not reach."""
    suppressions = Suppressions(aws.dynamodb, SUPPRESSIONS, clock)
    suppressions.mark(Suppression("gone@example.com", "mail", "bounce", NOW_MS))
    codes = lane(post, aws, bulk=False, recipients_only=["example.com"], suppressions=suppressions)
    several = ["gone@example.com", "ada@example.com", "ada@elsewhere.com", "eve@example.com"]
    assert codes.handle(item(to=several), item(id="m-2", to="gone@example.com")) == {}
    assert spent(aws, clock) == (2, 0)


def test_what_bulk_was_granted_for_those_who_get_nothing_is_for_its_next_batch(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    news = lane(post, aws, bulk=True, recipients_only=["example.com"])
    several = ["a@elsewhere.com", "b@elsewhere.com", "ada@example.com"]
    news.handle(item(to=several, lane="bulk"))
    news.handle(item(id="m-2", to=["ada@example.com", "eve@example.com"], lane="bulk"))
    assert spent(aws, clock) == (3, 3)


def test_a_redirected_mail_counts_whom_it_goes_to(post: Make, aws: Aws, clock: FakeClock) -> None:
    redirected = {"recipients_only": ["example.com"], "redirect_to": "testers@example.com"}
    codes = lane(post, aws, bulk=False, **redirected)
    assert codes.handle(item(to=["a@elsewhere.com", "b@elsewhere.com"])) == {}
    assert spent(aws, clock) == (1, 0)


def test_a_code_is_sent_before_the_budget_hears_of_it_and_whatever_it_says(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    down = Meddler(aws.dynamodb, update_item=failing(client_error("InternalServerError", status=500)))
    codes = lane(post, aws, bulk=False, budgets=down)
    assert codes.handle(item()) == {}
    assert (aws.item()["status"], codes.submitted) == ("sent", ["m-1"])
    assert down.names() == ["update_item"]
    assert spent(aws, clock) == (0, 0)


def test_a_stage_without_a_limit_asks_nothing_and_counts_nothing(post: Make, aws: Aws) -> None:
    watched = Meddler(aws.dynamodb)
    for bulk in (False, True):
        assert lane(post, aws, bulk=bulk, budgets=watched, per_day=()).handle(item(id=f"m-{bulk}")) == {}
    assert watched.names() == []


def test_what_codes_did_not_send_is_not_counted(post: Make, aws: Aws, clock: FakeClock) -> None:
    codes = lane(post, aws, Retry("slow down"), Rejected("no such domain"), Sent("p-1"), bulk=False)
    codes.handle(*mails(3))
    assert spent(aws, clock) == (1, 0)


def test_a_code_that_nobody_knows_of_counts(post: Make, aws: Aws, clock: FakeClock) -> None:
    lane(post, aws, RuntimeError("no answer"), bulk=False).handle(item())
    assert spent(aws, clock) == (1, 0)


@pytest.mark.parametrize("bulk", [True, False])
def test_a_batch_costs_one_write_of_the_budget(post: Make, aws: Aws, clock: FakeClock, *, bulk: bool) -> None:
    watched = Meddler(aws.dynamodb)
    sender = lane(post, aws, bulk=bulk, budgets=watched)
    sender.handle(*mails(10))
    watched.calls.clear()  # the first batch of all makes the item
    sender.handle(*(item(id=f"n-{at}") for at in range(10)))
    assert watched.names() == ["update_item"]
    assert (len(sender.submitted), spent(aws, clock)) == (20, (20, 20 if bulk else 0))
    assert waiting(aws) == []


def test_bulk_over_its_part_waits_with_its_content_until_its_slot(
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


def test_what_waits_is_claimed_by_nobody_and_comes_no_nearer_to_the_dead_letters(
    post: Make, aws: Aws
) -> None:
    bulk = lane(post, aws, bulk=True)
    bulk.handle(*(to_many(30, f"m-{at}") for at in range(3)))
    assert bulk.handle(item(id="late"), receives=4) == {}  # the record is done with
    assert aws.item("late") == {}


def test_a_message_that_has_waited_for_its_slot_goes_before_others(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(post, aws, bulk=True)
    bulk.handle(*(to_many(30, f"m-{at}") for at in range(3)))
    bulk.handle(item(id="late"), item(id="later"))
    late, _ = waiting(aws)
    clock.now = late.due
    bulk.handle(item(id="new"))
    assert [each.item["id"] for each in waiting(aws)] == ["new"]
    assert bulk.handle(late.item, in_line={"late"}) == {}
    assert bulk.submitted[-1] == "late"


def test_of_one_batch_those_that_have_waited_go_first(post: Make, aws: Aws, clock: FakeClock) -> None:
    bulk = lane(post, aws, bulk=True)
    bulk.handle(*(to_many(40, f"m-{at}") for at in range(2)))
    bulk.handle(to_many(10, "new"), to_many(10, "late"), in_line={"late"})
    assert bulk.submitted[-1] == "late"
    assert [each.item["id"] for each in waiting(aws)] == ["new"]


def test_a_smaller_mail_does_not_overtake_one_that_has_no_room(post: Make, aws: Aws) -> None:
    bulk = lane(post, aws, bulk=True)
    bulk.handle(*(to_many(40, f"m-{at}") for at in range(2)))
    bulk.handle(to_many(20, "large"), item(id="small"))
    assert [each.item["id"] for each in waiting(aws)] == ["large", "small"]


def test_what_bulk_was_granted_and_did_not_need_is_for_its_next_batch(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(post, aws, Retry("slow down"), Sent("p-1"), bulk=True)
    bulk.handle(item())
    assert spent(aws, clock) == (1, 1)
    assert bulk.handle(item(), receives=2) == {}
    assert spent(aws, clock) == (1, 1)


def test_a_grant_is_good_for_the_hour_in_which_it_counts(post: Make, aws: Aws, clock: FakeClock) -> None:
    bulk = lane(post, aws, Retry("slow down"), Sent("p-1"), bulk=True)
    bulk.handle(item())
    clock.advance(3_600)
    bulk.handle(item(), receives=2)
    assert spent(aws, clock) == (2, 2)


def test_bulk_that_has_expired_asks_for_nothing_and_ends_as_expired(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    bulk = lane(post, aws, bulk=True)
    assert bulk.handle(item(expires_at="2026-11-21T08:59:00Z")) == {}
    assert aws.item()["error"]["code"] == "expired"
    assert spent(aws, clock) == (0, 0)


def test_a_budget_that_cannot_be_asked_lets_bulk_wait_in_its_queue(
    post: Make, aws: Aws, counted: Counted
) -> None:
    down = Meddler(aws.dynamodb, update_item=failing(client_error("InternalServerError", status=500)))
    bulk = lane(post, aws, bulk=True, budgets=down)
    assert bulk.handle(item(), receives=2) == {"r-0": 8}
    assert (bulk.submitted, counted()["Errors"]) == ([], 1)
    assert bulk.handle(item(), receives=3) == {}


def test_what_the_queue_of_those_that_wait_does_not_take_comes_back(
    post: Make, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk = lane(post, aws, bulk=True, scheduled_queue_url="https://sqs.example/nowhere")
    bulk.handle(*(to_many(30, f"m-{at}") for at in range(3)))
    assert bulk.handle(item()) == {"r-0": 4}


@pytest.mark.parametrize("bulk", [True, False])
def test_a_provider_that_takes_no_more_today_costs_no_try_and_closes_the_day_for_bulk(
    post: Make, aws: Aws, clock: FakeClock, counted: Counted, bulk: bool
) -> None:
    sender = lane(post, aws, DayUsedUp("Daily message quota exceeded."), bulk=bulk)
    assert sender.handle(item(), receives=3) == {}
    (found,) = waiting(aws)
    assert found.due >= NOW + USED_UP_SECONDS
    assert found.put_at == (found.due if bulk else NOW)
    assert aws.item()["trouble"]["code"] == "day_used_up"
    assert counted()["DayUsedUp"] == 1
    after = lane(post, aws, bulk=True)
    after.handle(item(id="m-2"))
    assert after.submitted == []


def test_what_is_left_of_a_grant_is_not_used_once_the_provider_has_closed_the_day(
    post: Make, aws: Aws
) -> None:
    bulk = lane(post, aws, Retry("slow down"), DayUsedUp("quota"), Sent("p-1"), bulk=True)
    bulk.handle(*mails(2))
    bulk.handle(item(id="later"))
    assert bulk.submitted == ["m-0", "m-1"]


def test_without_a_limit_of_the_stages_own_the_providers_still_lets_messages_wait(
    post: Make, aws: Aws, clock: FakeClock
) -> None:
    sender = lane(post, aws, DayUsedUp("quota"), Sent("p-1"), bulk=False, per_day=())
    assert sender.handle(item()) == {}
    (found,) = waiting(aws)
    clock.now = found.due
    assert sender.handle(found.item) == {}
    assert aws.item()["status"] == "sent"
    assert "trouble" not in aws.item()


NIGHT = {"from": "20:00", "to": "23:00", "zone": "UTC"}  # it is 09:00
OPENS = NOW + 11 * 3_600


def test_what_is_outside_of_its_window_waits_with_its_content_until_that_opens(
    post: Make, aws: Aws, counted: Counted
) -> None:
    codes = lane(post, aws, bulk=False)
    assert codes.handle(item(window=NIGHT, name="Ada"), item(id="now"), receives=3) == {}
    assert codes.submitted == ["now"]
    (found,) = waiting(aws)
    assert (found.due, found.put_at, found.in_line, found.code) == (OPENS, OPENS, False, "outside_window")
    assert (found.item["name"], counted()["WaitsForWindow"]) == ("Ada", 1)
    assert aws.item() == {}


def test_within_its_window_a_message_goes_out(post: Make, aws: Aws, clock: FakeClock) -> None:
    clock.now = OPENS
    assert lane(post, aws, bulk=False).handle(item(window=NIGHT)) == {}
    assert aws.item()["status"] == "sent"


def test_the_zone_of_the_message_decides(post: Make, aws: Aws) -> None:
    codes = lane(post, aws, bulk=False)
    codes.handle(item(window=NIGHT, time_zone="Asia/Tokyo"))  # 18:00 there
    assert waiting(aws)[0].due == NOW + 2 * 3_600


def test_a_window_of_the_lane_is_for_messages_without_their_own(post: Make, aws: Aws) -> None:
    bulk = lane(post, aws, bulk=True, window=NIGHT)
    always = {"from": "00:00", "to": "23:59", "zone": "UTC"}
    bulk.handle(item(), item(id="own", window=always))
    assert bulk.submitted == ["own"]
    assert [each.item["id"] for each in waiting(aws)] == ["m-1"]


def test_what_waits_for_its_window_takes_nothing_of_the_day(post: Make, aws: Aws, clock: FakeClock) -> None:
    lane(post, aws, bulk=True, window=NIGHT).handle(*mails(3))
    assert spent(aws, clock) == (0, 0)


def test_what_expires_before_its_window_opens_comes_back_when_it_expires(post: Make, aws: Aws) -> None:
    codes = lane(post, aws, bulk=False)
    codes.handle(item(window=NIGHT, expires_at="2026-11-21T10:00:00Z"))
    assert waiting(aws)[0].due == NOW + 3_600


def test_what_has_expired_while_it_waited_ends_as_expired_and_does_not_wait_again(
    post: Make, aws: Aws
) -> None:
    codes = lane(post, aws, bulk=False)
    assert codes.handle(item(window=NIGHT, expires_at="2026-11-21T08:00:00Z")) == {}
    assert aws.item()["error"]["code"] == "expired"


def test_a_time_zone_that_there_is_not_fails_its_message_by_the_field_and_no_neighbour(
    post: Make, aws: Aws
) -> None:
    bulk = lane(post, aws, bulk=True, window={"from": "08:00", "to": "23:00", "zone": "UTC"})
    assert bulk.handle(item(time_zone="Berlin"), item(id="good", time_zone="Europe/Berlin")) == {}
    assert aws.item()["error"]["field"] == "time_zone"
    assert bulk.submitted == ["good"]


def test_a_slot_that_lies_outside_of_the_window_waits_for_the_window_then(
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
def test_a_campaign_whose_mails_are_all_refused_does_not_become_as_many_dead_letters(
    post: Make, aws: Aws, counted: Counted, batches: int
) -> None:
    bulk = unlimited(post, aws, REFUSED)
    back = [record for at in range(batches) for record in bulk.handle(*batch(f"n{at}"))]
    assert len(back) == len(bulk.submitted) == MOST_REFUSED, "these become dead letters, and ring the alarm"
    assert counted()["WaitsForProvider"] == 10 * batches - MOST_REFUSED
    assert {(each.code, each.due) for each in waiting(aws)} == {(PROVIDER_REFUSES, NOW + CLOSED_SECONDS)}


def test_a_message_that_was_refused_goes_on_while_bulk_is_closed(post: Make, aws: Aws) -> None:
    bulk = unlimited(post, aws, REFUSED)
    bulk.handle(*batch("n"))
    assert len(bulk.handle(*batch("n"), receives=2)) == 10
    assert len(bulk.submitted) == 20


def test_after_an_hour_one_refusal_closes_bulk_again(post: Make, aws: Aws, clock: FakeClock) -> None:
    bulk = unlimited(post, aws, REFUSED)
    bulk.handle(*batch("n"))
    clock.advance(CLOSED_SECONDS)
    assert len(bulk.handle(item(id="o-1"))) == 1
    assert bulk.handle(item(id="o-2")) == {}
    assert [each.item["id"] for each in waiting(aws)] == ["o-2"]


def test_bulk_stays_open_once_the_provider_takes_its_messages_again(
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


def test_a_few_refusals_among_many_mails_close_nothing(post: Make, aws: Aws) -> None:
    bulk = unlimited(post, aws, REFUSED, Sent("p-1"), Sent("p-2"))
    back = [record for at in range(9) for record in bulk.handle(*batch(f"n{at}"))]
    assert (len(back), waiting(aws)) == (30, [])


def test_one_message_that_is_refused_again_and_again_closes_nothing(post: Make, aws: Aws) -> None:
    bulk = unlimited(post, aws, REFUSED)
    for receives in range(1, 2 * MOST_REFUSED):
        assert len(bulk.handle(item(id="odd"), receives=receives)) == 1
    assert len(bulk.handle(item(id="another"))) == 1, "it was submitted, and refused as well"


def test_refusals_among_rejected_mails_close_nothing(post: Make, aws: Aws) -> None:
    bulk = unlimited(post, aws, REFUSED, Rejected("no such domain"), Rejected("no such address"))
    for at in range(9):
        bulk.handle(*batch(f"n{at}"))
    assert waiting(aws) == []


def test_a_message_in_line_for_the_day_keeps_its_place_while_bulk_is_closed(post: Make, aws: Aws) -> None:
    bulk = lane(post, aws, REFUSED, bulk=True)
    bulk.handle(*batch("n"))
    bulk.handle(item(id="in-line"), item(id="new"), in_line={"in-line"})
    found = waiting(aws)
    assert {each.item["id"]: each.in_line for each in found} == {"in-line": True, "new": False}
    assert {each.put_at for each in found} == {NOW}, "the wait is a delay"


def test_codes_are_never_closed(post: Make, aws: Aws) -> None:
    codes = unlimited(post, aws, REFUSED, bulk=False)
    for at in range(3):
        codes.handle(*batch(f"n{at}"))
    assert len(codes.submitted) == 30
