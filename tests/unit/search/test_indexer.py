"""Rows of the table `search`: written by what the ledger's stream tells, whenever and however often."""

import json
import random
from itertools import product
from typing import Any

import pytest

from mailroom.aws.dynamo_batches import UnprocessedKeys
from mailroom.aws.dynamo_values import plain
from mailroom.channels.push.contract import Push
from mailroom.channels.sms.contract import Sms
from mailroom.errors import InvalidSecret
from mailroom.ledger.erasure import Erasure
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import CANARY
from mailroom.search.rows import SHARDS, partitions_of
from tests.support.unit.fakes import Meddler
from tests.support.unit.searching import Search, ledger_record, rows_with
from tests.support.unit.shared import KEY, LEDGER, NOW, NOW_MS, TTL, Aws, FakeClock, claimed, item, mail


@pytest.fixture
def search(aws: Aws) -> Search:
    return Search(aws)


def test_a_message_has_a_row_for_each_recipient_and_a_row_among_the_newest_messages(
    search: Search, ledger: Ledger, clock: FakeClock
) -> None:
    claimed(ledger, mail(to=["Ada <Ada@Example.com>", "bob@example.com"], bcc="eve@example.com"))
    search.index()
    found = [plain(each) for each in search.rows()]
    assert sorted(each["found_by"].partition("#")[0] for each in found) == ["newest", "to", "to", "to"]
    assert {(each["id"], each["event_type"]) for each in found} == {("m-1", "mail")}
    assert {each["ttl"] for each in found} == {int(clock() + TTL)}
    (place,) = {each["put"] for each in found}
    assert place.startswith(f"{NOW_MS}#")


def test_a_message_of_a_template_has_a_further_row_in_a_partition_of_that_template(
    search: Search, ledger: Ledger
) -> None:
    claimed(ledger, mail(text=None, template="welcome"))
    search.index()
    places = {each["found_by"]["S"] for each in search.rows()}
    assert sorted(place.partition("#")[0] for place in places) == ["newest", "template", "to"]
    assert places & set(partitions_of("template", "welcome"))
    assert places == {row.found_by for row in rows_with().of(search.aws.item())}


def test_rows_of_the_search_table_contain_no_address_and_match_it_only_with_the_secret_key(
    search: Search, ledger: Ledger
) -> None:
    claimed(ledger, mail(to="ada@example.com"))
    search.index()
    assert "ada" not in json.dumps(search.rows())
    item_ = search.aws.item()
    ours = {each.found_by for each in rows_with().of(item_)}
    assert ours & {each.found_by for each in rows_with('{"key": "another key of 16"}').of(item_)} == {
        next(each for each in ours if each.startswith("newest"))
    }


def test_a_mail_is_found_by_each_of_its_fifty_recipients(search: Search, ledger: Ledger) -> None:
    everybody = [f"p{at}@example.com" for at in range(50)]
    claimed(ledger, mail(to=everybody[:1], cc=everybody[1:25], bcc=everybody[25:]))
    search.index()
    assert all(search.to(each) == ["m-1"] for each in everybody)


@pytest.mark.parametrize(
    "typed", ["ada@Bücher.example", " Ada@xn--bcher-kva.example ", "Ada <ADA@BÜCHER.example>"]
)
def test_a_message_is_found_by_each_spelling_of_its_mail_address(
    search: Search, ledger: Ledger, typed: str
) -> None:
    claimed(ledger, mail(to="Ada@bücher.example"))
    search.index()
    assert search.to(typed) == ["m-1"]


@pytest.mark.parametrize(
    ("to", "typed"),
    [
        *product(["+16175551234"], ["+16175551234", "(617) 555-1234", "+1 617 555 1234"]),
        *product(
            ["+54 9 11 2345 6789", "+541123456789"],
            ["+5491123456789", "+54 11 15 2345-6789", "+54 11 2345-6789"],
        ),
    ],
)
def test_a_message_is_found_by_each_spelling_of_its_phone_number(
    search: Search, ledger: Ledger, to: str, typed: str
) -> None:
    ledger.claim(Sms(id="s-1", event_type="sms", to=to, text="Hi"))
    search.index()
    assert search.to(typed) == ["s-1"]


def test_a_push_is_found_only_by_the_exact_token_of_its_device(search: Search, ledger: Ledger) -> None:
    ledger.claim(Push(id="p-1", event_type="push", to="aB" * 40, title="Hi"))
    search.index()
    assert (search.to("aB" * 40), search.to("ab" * 40)) == (["p-1"], [])


def test_a_refused_message_is_found_by_its_invalid_recipient(search: Search, ledger: Ledger) -> None:
    ledger.refuse(item(to="Ada@@example"), "invalid", "to: is no address")
    search.index()
    assert search.to("ada@@Example") == ["m-1"]


def test_a_redirected_message_is_found_by_its_recipient_and_by_its_redirect_address(
    search: Search, ledger: Ledger
) -> None:
    ledger.claim(mail(to="ada@example.com"), redirected_to="team@example.com")
    search.index()
    assert search.to("ada@example.com") == search.to("team@example.com") == ["m-1"]


def test_late_repeated_and_reordered_stream_records_leave_the_same_rows(
    search: Search, ledger: Ledger, clock: FakeClock
) -> None:
    for at in range(20):
        claimed(ledger, mail(id_=f"m-{at}", to=f"p{at}@example.com"))
    search.index()
    once = sorted(map(repr, search.rows()))
    records = search.stream() * 3
    random.Random(28).shuffle(records)
    for first in range(0, len(records), 7):
        clock.advance(60)
        search.index(records[first : first + 7])
    assert sorted(map(repr, search.rows())) == once


def test_a_lost_batch_of_the_ledgers_stream_is_indexed_by_a_replay_months_later(
    search: Search, ledger: Ledger, clock: FakeClock
) -> None:
    claimed(ledger)
    lost = search.stream()
    clock.advance(80 * 86_400)
    search.index(lost)
    assert search.to("vincent@example.com") == ["m-1"]


def test_a_later_change_of_the_ledger_item_prolongs_the_ttl_of_its_rows(
    search: Search, ledger: Ledger, clock: FakeClock
) -> None:
    claimed(ledger)
    search.index()
    clock.advance(80 * 86_400)
    ledger.dead_lettered(KEY)
    search.index()
    assert {plain(each)["ttl"] for each in search.rows()} == {int(NOW + 80 * 86_400 + TTL)}
    assert len(search.rows()) == 2


def test_a_replay_of_stream_records_after_an_erasure_does_not_write_a_search_row(
    search: Search, ledger: Ledger, aws: Aws, clock: FakeClock
) -> None:
    claim = claimed(ledger, mail(to="ada@example.com"))
    ledger.complete(claim, "ses", "0101")
    late = search.stream()
    assert Erasure(aws.dynamodb, LEDGER, TTL, clock).empty(KEY, aws.item())
    search.index(late)
    assert search.rows() == []


def test_a_stream_record_of_an_item_that_is_no_longer_in_the_ledger_writes_no_row(search: Search) -> None:
    search.index([ledger_record("gone")])
    assert search.rows() == []


def test_a_ledger_item_without_a_put_time_is_indexed_as_soon_as_its_history_has_a_time(
    search: Search, aws: Aws
) -> None:
    about = {"id": "m-1", "event_type": "mail", "to": "ada@example.com", "ttl": 9_999_999_999}
    aws.put(LEDGER, **about, status="sending", startedAt=NOW_MS)
    search.index()
    assert search.rows() == []
    aws.put(LEDGER, **about, status="sent", history=[{"at": NOW_MS, "status": "sent"}])
    search.index()
    assert search.to("ada@example.com") == ["m-1"]


def test_the_rows_of_the_newest_messages_are_spread_over_all_partitions(
    search: Search, ledger: Ledger
) -> None:
    for at in range(100):
        claimed(ledger, mail(id_=f"m-{at}"))
    search.index()
    newest = {plain(each)["found_by"] for each in search.rows()} - {
        rows_with().partition("vincent@example.com")
    }
    assert len(newest) == SHARDS


def test_rows_that_dynamodb_leaves_unprocessed_are_retried_and_the_batch_fails_after_four_calls(
    aws: Aws, ledger: Ledger
) -> None:
    claimed(ledger)
    calls: list[Any] = []

    def busy(times: int) -> Any:
        def batch_write_item(real: Any, **request: Any) -> Any:
            calls.append(request)
            if len(calls) <= times:
                return {"UnprocessedItems": request["RequestItems"]}
            return real(**request)

        return Meddler(aws.dynamodb, batch_write_item=batch_write_item)

    Search(aws, busy(3)).index()
    assert (len(calls), len(Search(aws).rows())) == (4, 2)
    calls.clear()
    with pytest.raises(UnprocessedKeys, match="could not be written completely"):
        Search(aws, busy(4)).index()


@pytest.mark.parametrize("text", ["", "no json", "{}", '{"key": "short"}', '["key"]'])
def test_a_search_secret_without_a_valid_key_is_refused_and_not_quoted_in_the_error(text: str) -> None:
    with pytest.raises(InvalidSecret) as raised:
        rows_with(text).partition("ada@example.com")
    assert str(raised.value) == ('the secret for searching is not {"key": "<random>"}; restore its key')


def test_a_canary_message_is_not_indexed(search: Search, ledger: Ledger) -> None:
    claimed(ledger, mail(f"{CANARY}1", to="ada@example.com"))
    search.index()
    assert search.rows() == []
