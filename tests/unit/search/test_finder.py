"""Pages of messages: the newest first, each once, however many there are."""

from collections import Counter
from functools import partial
from itertools import chain
from random import Random
from typing import Any

import pytest

from mailroom.errors import Invalid
from mailroom.ledger.erasure import Erasure
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import CampaignStart, Key
from mailroom.message.unless import Condition
from mailroom.search.finder import BATCHES, KEYS, PAGE, Filter, Finder, newest_of
from tests.support.unit.searching import Search, rows_with
from tests.support.unit.shared import (
    LEDGER,
    NOW,
    NOW_MS,
    SEARCH,
    TTL,
    Aws,
    FakeClock,
    before_each_call,
    claimed,
    mail,
)
from tests.support.unit.waiting import hold

ADA = "ada@example.com"


@pytest.fixture
def search(aws: Aws) -> Search:
    return Search(aws)


def send_many(
    search: Search, ledger: Ledger, clock: FakeClock, count: int, to: str = ADA, **more: Any
) -> list[str]:
    """So many messages, a second apart; their ids, the newest first."""
    start = len(search.rows())
    ids = [f"m-{start + at}" for at in range(count)]
    for id_ in ids:
        claimed(ledger, mail(id_, **{"to": ADA, **more}))
        clock.advance(1)
    search.index()
    return ids[::-1]


def ids_by_page(asked: Any) -> list[list[str]]:
    """The ids of all pages."""
    found, cursor = [], ""
    while True:
        page = asked(cursor=cursor)
        found.append([each.id for each in page.messages])
        if page.cursor is None:
            return found
        cursor = page.cursor


def test_each_message_is_listed_once_in_pages_with_the_newest_messages_first(
    search: Search, ledger: Ledger, clock: FakeClock
) -> None:
    ids = send_many(search, ledger, clock, 120)
    for asked in (search.finder.newest, partial(search.finder.to, ADA)):
        found = ids_by_page(asked)
        assert [len(each) for each in found] == [50, 50, 20]
        assert [*chain(*found)] == ids


@pytest.mark.parametrize(("count", "expected"), [(0, [0]), (PAGE, [50]), (PAGE + 1, [50, 1])])
def test_the_last_page_of_listed_messages_has_no_cursor(
    search: Search, ledger: Ledger, clock: FakeClock, count: int, expected: list[int]
) -> None:
    send_many(search, ledger, clock, count)
    assert [len(each) for each in ids_by_page(search.finder.newest)] == expected


def test_messages_that_were_put_at_the_same_moment_are_each_listed_once(
    search: Search, ledger: Ledger
) -> None:
    for at in range(130):
        claimed(ledger, mail(id_=f"m-{at}", to=ADA))
    search.index()
    for asked in (search.finder.newest, partial(search.finder.to, ADA)):
        found = [*chain(*ids_by_page(asked))]
        assert (len(found), len(set(found))) == (130, 130)


def test_a_cursor_continues_at_the_same_message_although_new_messages_were_put(
    search: Search, ledger: Ledger, clock: FakeClock
) -> None:
    ids = send_many(search, ledger, clock, 60)
    first = search.finder.newest()
    send_many(search, ledger, clock, 10)
    assert [each.id for each in search.finder.newest(cursor=first.cursor or "").messages] == ids[50:]


def test_a_listed_message_has_the_current_status_and_subject_of_the_ledger(
    search: Search, ledger: Ledger, clock: FakeClock
) -> None:
    claim = claimed(ledger, mail(to=ADA, text=None, template="welcome"))
    search.index()
    ledger.complete(claim, "ses", "0101", {"subject": "Welcome, Ada"})
    (found,) = search.finder.to(ADA).messages
    assert (found.event_type, found.template, found.status, found.subject) == (
        *("mail", "welcome", "sent"),
        "Welcome, Ada",
    )
    assert found.times["putAt"] == "2026-11-21T09:00:00.000Z"


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (Filter(event_type="mail"), ["b#1#x", "a#2#x", "a#1#x"]),
        (Filter(event_type="sms"), []),
        (Filter(status="sent"), ["a#1#x"]),
        (Filter(template="welcome"), ["a#2#x"]),
        (Filter(campaign="a"), ["a#2#x", "a#1#x"]),
        (Filter(campaign="a", status="retrying"), []),
    ],
)
def test_only_messages_that_match_all_filters_are_listed(
    search: Search, ledger: Ledger, clock: FakeClock, wanted: Filter, ids: list[str]
) -> None:
    start = {number: CampaignStart("a", number, 1) for number in ("1", "2")}
    ledger.complete(claimed(ledger, mail(id_="a#1#x", to=ADA, campaign_start=start["1"])), "ses", "0101")
    clock.advance(1)
    claimed(ledger, mail(id_="a#2#x", to=ADA, text=None, template="welcome", campaign_start=start["2"]))
    clock.advance(1)
    claimed(ledger, mail(id_="b#1#x", to=ADA))
    search.index()
    assert search.newest(filter_=wanted) == search.to(ADA, filter_=wanted) == ids


@pytest.fixture
def rare(search: Search, ledger: Ledger, clock: FakeClock, aws: Aws) -> str:
    """The id of the oldest message, which has a template, behind some hundreds that have none."""
    (id_,) = send_many(search, ledger, clock, 1, text=None, template="rare")
    for at in range(1_200):
        aws.put(
            LEDGER, id=f"x-{at}", event_type="mail", status="sent", ttl=int(NOW), putAt=NOW_MS + 5_000 + at
        )
    search.index()
    return id_


def test_a_filter_by_template_finds_a_message_on_the_first_page_however_old_it_is(
    search: Search, rare: str
) -> None:
    page = search.finder.newest(Filter(template="rare"))
    assert ([message.id for message in page.messages], page.looked_back_to) == ([rare], None)


def test_a_page_with_a_filter_examines_few_messages_and_returns_the_time_of_the_oldest_examined_one(
    search: Search, rare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    before_each_call(monkeypatch, calls.append)
    first = search.finder.newest(Filter(status="sending"))
    assert (first.messages, first.looked_back_to) == ([], "2026-11-21T09:00:06.000Z")
    assert Counter(calls) == {"Query": 8, "BatchGetItem": BATCHES}
    asked = partial(search.finder.newest, Filter(status="sending"))
    found = ids_by_page(asked)
    assert ([*chain(*found)], len(found)) == ([rare], 7)


@pytest.mark.parametrize("seed", range(6))
def test_pages_of_random_partitions_limits_and_time_spans_list_each_matching_row_once_in_order(
    aws: Aws, seed: int
) -> None:
    random = Random(seed)
    drawn = [(random.randrange(50) + 1_000, random.randrange(4)) for _ in range(150)]
    rows = {f"{at:013d}#{number:016x}": shard for number, (at, shard) in enumerate(drawn)}
    for put, shard in rows.items():
        aws.put(SEARCH, found_by=f"p#{shard}", put=put)
    partitions = [f"p#{shard}" for shard in random.sample(range(5), random.randrange(1, 5))]
    since, until = sorted(f"{random.randrange(990, 1_060):013d}" for _ in range(2))
    span = Filter(since=random.choice(["", since]), until=random.choice(["", until]))
    expected = [
        put
        for put, shard in sorted(rows.items(), reverse=True)
        if f"p#{shard}" in partitions and (span.since or "0") <= put < (span.until or "9")
    ]
    listed: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        request = {"TableName": SEARCH, "Limit": random.randrange(2, 9)}
        page, rest = newest_of(aws.dynamodb, request, KEYS, partitions, span.span(cursor))
        listed += [row["put"] for row in page if row["put"] != cursor]
        cursor = rest
    assert listed == expected


def test_a_filter_by_time_lists_only_the_messages_that_were_put_in_that_time(
    search: Search, ledger: Ledger, clock: FakeClock
) -> None:
    ids = send_many(search, ledger, clock, 120)
    since, until = (f"{NOW_MS + 1_000 * at:013d}" for at in (10, 70))
    for asked in (search.finder.newest, partial(search.finder.to, ADA)):
        found = ids_by_page(partial(asked, filter_=Filter(since=since, until=until)))
        assert [*chain(*found)] == ids[50:110]


def test_an_unknown_status_is_refused_with_the_list_of_valid_statuses(search: Search) -> None:
    with pytest.raises(Invalid, match=r"^status: 'bouncd' is not a status; use scheduled, .*complained$"):
        search.finder.newest(Filter(status="bouncd"))


def test_a_stale_row_of_a_former_recipient_or_an_erased_message_is_not_listed(
    search: Search, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    hold(ledger, mail(to=ADA))
    search.index()
    hold(ledger, mail(to="bob@example.com"))  # the producer has changed the recipient
    search.index()
    assert (search.to(ADA), search.to("bob@example.com")) == ([], ["m-1"])
    claim = claimed(ledger, mail(to="bob@example.com"))
    ledger.complete(claim, "ses", "0101")
    assert Erasure(aws.dynamodb, LEDGER, TTL, clock).empty(claim.key, aws.item())
    assert (search.to("bob@example.com"), search.newest()) == ([], [])


def test_a_page_of_listed_messages_is_read_with_few_calls_to_dynamodb(
    search: Search, ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_many(search, ledger, clock, 200)
    calls: list[str] = []
    before_each_call(monkeypatch, calls.append)
    search.finder.to(ADA)
    assert calls == ["Query", "BatchGetItem"]
    calls.clear()
    search.finder.newest()
    assert Counter(calls) == {"Query": 8, "BatchGetItem": 1}


@pytest.mark.parametrize("cursor", ["x", "1795251600000", "1795251600000#0123456789ABCDEF", "1' OR '1"])
def test_an_invalid_cursor_of_a_list_of_messages_is_refused(search: Search, cursor: str) -> None:
    with pytest.raises(Invalid, match="is not a valid cursor"):
        search.finder.newest(cursor=cursor)


def test_a_number_without_a_country_code_finds_no_message_if_the_stage_has_no_default_region(
    search: Search, ledger: Ledger, aws: Aws
) -> None:
    finder = Finder(aws.dynamodb, SEARCH, LEDGER, rows_with())
    sms = {"id": "s-1", "event_type": "sms", "status": "sent", "to": "+16175551234"}
    aws.put(LEDGER, **sms, ttl=int(NOW), putAt=NOW_MS)
    search.index()
    assert search.to("617 555 1234") == ["s-1"]  # the region of `search` is US
    assert finder.to("617 555 1234").messages == []


def test_messages_whose_unless_names_a_message_are_found_by_the_key_of_that_message(
    search: Search, ledger: Ledger, clock: FakeClock, aws: Aws
) -> None:
    named = Condition("m-1", "mail", "delivered"), Condition("m-1", "mail", "failed")
    for id_, unless in (("m-2", [*named]), ("m-3", named[0]), ("m-4", Condition("m-1", "sms", "sent"))):
        claimed(ledger, mail(id_, send_at="2026-11-20T09:00:00Z", unless=unless))
        clock.advance(1)
    search.index()
    assert [message.id for message in search.finder.naming(Key("m-1", "mail"))] == ["m-3", "m-2"]
    assert search.finder.naming(Key("m-2", "mail")) == []
    claim = claimed(ledger, mail("m-5", unless=named[0]))
    search.index()
    ledger.complete(claim, "ses", "0101")
    assert Erasure(aws.dynamodb, LEDGER, TTL, clock).empty(claim.key, aws.item("m-5"))
    search.index()
    assert [message.id for message in search.finder.naming(Key("m-1", "mail"))] == ["m-3", "m-2"]
