"""Waits: a hold is one write that only an unsent message takes, and an index lists those who wait, by time or
by place."""

from typing import Any

import pytest

from mailroom.clock import iso
from mailroom.ledger.items import PAUSED, RUN_UNKNOWN
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.status_reader import of_ledger
from mailroom.ledger.waits import (
    DAY_USED_UP,
    MOST_COUNTED,
    OUTSIDE_WINDOW,
    PAGE,
    SEND_AT,
    SHARDS,
    Wait,
    WaitingRow,
    Waits,
)
from mailroom.message.message import CampaignStart, Key, Message
from mailroom.message.window import Window
from tests.support.unit.fakes import Meddler, client_error
from tests.support.unit.shared import KEY, LEDGER, NOW, TTL, Aws, FakeClock, claimed, mail

LATER = NOW + 3600
WINDOW = Window(from_="10:00", to="12:00", zone="UTC")


@pytest.fixture
def waits_of_table(aws: Aws, clock: FakeClock) -> Waits:
    return Waits(aws.dynamodb, LEDGER, TTL, clock)


def wait(message: Message | None = None, version: str = "v-1", **changes: Any) -> Wait:
    known: dict[str, Any] = {"reason": OUTSIDE_WINDOW, "due": LATER, "put_at": NOW - 60, **changes}
    return Wait(message or mail(), version=version, **known)


def due(waits: Waits, until: float = LATER, *, lines_up: bool = False) -> list[WaitingRow]:
    """Return the rows of all shards that are due at `until`."""
    return [row for shard in range(SHARDS) for row in waits.due(shard, until, lines_up=lines_up)]


def none_remains(_row: WaitingRow, _reason: str) -> bool:
    return False


# Holding


@pytest.mark.parametrize("new", [True, False])
def test_the_ledger_item_of_a_held_message_contains_the_due_time_and_the_reason_of_its_wait(
    waits_of_table: Waits, aws: Aws, new: bool
) -> None:
    assert waits_of_table.hold([wait(new=new)]) == [True]
    found = aws.item()
    assert (found["status"], found["scheduledFor"], found["to"]) == (
        *("scheduled", iso(LATER)),
        "vincent@example.com",
    )
    assert found["putAt"] == int((NOW - 60) * 1000)
    status = of_ledger(found)
    assert (status.waits_for, status.scheduled_for) == (OUTSIDE_WINDOW, iso(LATER))


def test_the_ledger_item_of_a_held_message_expires_more_than_a_year_after_its_due_time(
    waits_of_table: Waits, aws: Aws
) -> None:
    waits_of_table.hold([wait()])
    assert aws.item()["ttl"] == LATER + 366 * 86_400 + TTL


def test_new_messages_are_held_in_one_call_for_every_twenty_five_messages(aws: Aws, clock: FakeClock) -> None:
    client: Any = Meddler(aws.dynamodb)
    messages = [wait(mail(f"m-{number}"), f"v-{number}", new=True) for number in range(30)]
    assert Waits(client, LEDGER, TTL, clock).hold(messages) == [True] * 30
    assert client.names() == ["batch_execute_statement"] * 2


def test_the_later_hold_is_stored_if_a_message_is_in_a_batch_twice(waits_of_table: Waits, aws: Aws) -> None:
    assert waits_of_table.hold([wait(version="v-1", new=True), wait(version="v-2", new=True)]) == [True, True]
    assert aws.item()["wait"]["version"] == "v-2"


def test_a_later_hold_of_a_message_replaces_its_earlier_hold(waits_of_table: Waits) -> None:
    waits_of_table.hold([wait()])
    assert waits_of_table.hold([wait(version="v-2", due=LATER + 60)]) == [True]
    assert [(row.version, row.at) for row in due(waits_of_table, LATER + 60)] == [("v-2", int(LATER + 60))]


def test_a_hold_reports_to_its_caller_the_wait_that_it_replaces(
    waits_of_table: Waits, ledger: Ledger
) -> None:
    replaced: list[tuple[Key, str]] = []

    def hold(*held: Wait) -> list[bool]:
        return waits_of_table.hold(held, lambda key, version: replaced.append((key, version)))

    assert hold(wait(version="v-1", new=True), wait(mail("m-2"), "v-2", new=True)) == [True, True]
    assert replaced == []
    assert hold(wait(version="v-3", new=True)) == [True]
    assert hold(wait(mail("m-2"), "v-4"), wait(version="v-5")) == [True, True]
    assert replaced == [(KEY, "v-1"), (Key("m-2", "mail"), "v-2"), (KEY, "v-3")]
    claimed(ledger)
    assert hold(wait(version="v-6")) == [False]
    assert len(replaced) == 3


def test_a_hold_reports_to_its_caller_the_earlier_wait_of_a_message_that_no_longer_waits(
    waits_of_table: Waits, ledger: Ledger
) -> None:
    replaced: list[str] = []
    waits_of_table.hold([wait()])
    ledger.release(claimed(ledger), "retry", "slow down")
    assert waits_of_table.hold([wait(version="v-2")], lambda _key, version: replaced.append(version)) == [
        True
    ]
    assert replaced == ["v-1"]


def test_a_hold_that_was_written_despite_an_error_does_not_report_itself_as_a_replaced_wait(
    aws: Aws, clock: FakeClock
) -> None:
    def unanswered(real: Any, **arguments: Any) -> Any:
        real(**arguments)
        return {"Responses": [{"Error": {"Code": "InternalServerError"}}]}

    client: Any = Meddler(aws.dynamodb, batch_execute_statement=unanswered)
    replaced: list[str] = []
    waits = Waits(client, LEDGER, TTL, clock)
    assert waits.hold([wait(new=True)], lambda _key, version: replaced.append(version)) == [True]
    assert (aws.item()["wait"]["version"], replaced) == ("v-1", [])


def test_a_hold_of_messages_raises_an_error_of_dynamodb(aws: Aws, clock: FakeClock) -> None:
    def throttled(_real: Any, **_arguments: Any) -> Any:
        raise client_error("ThrottlingException")

    client: Any = Meddler(aws.dynamodb, update_item=throttled)
    with pytest.raises(Exception, match="Throttling"):
        Waits(client, LEDGER, TTL, clock).hold([wait()])


# The lists


def test_the_row_of_a_waiting_message_contains_its_key_lane_reason_time_place_and_window(
    waits_of_table: Waits, clock: FakeClock
) -> None:
    message = mail("ü#1", lane="bulk", to=["a@example.com", "b@example.com"])
    waits_of_table.hold([wait(message, due=LATER + 0.5, window=WINDOW, lines_up=True)])
    (row,) = due(waits_of_table, LATER + 1, lines_up=True)
    assert row == WaitingRow(
        key=Key("ü#1", "mail"),
        version="v-1",
        lane="bulk",
        reason=OUTSIDE_WINDOW,
        at=int(LATER) + 1,  # never early
        place=int(NOW) - 60,
        recipients=2,
        window=WINDOW,
        lines_up=True,
        start=None,
        expires=None,
        waits=True,
    )


def test_each_shard_of_the_waits_lists_its_due_messages_by_time_and_leaves_out_later_messages(
    waits_of_table: Waits,
) -> None:
    for number in range(40):
        waits_of_table.hold([wait(mail(f"m-{number}"), due=LATER - number)])
    rows = due(waits_of_table, LATER - 10)
    assert {row.key.id for row in rows} == {f"m-{number}" for number in range(10, 40)}
    for shard in range(SHARDS):
        times = [row.at for row in waits_of_table.due(shard, LATER)]
        assert times == sorted(times)


def test_due_messages_that_must_join_a_line_are_listed_separately_from_other_due_messages(
    waits_of_table: Waits,
) -> None:
    waits_of_table.hold([wait(mail("a"), window=WINDOW, lines_up=True), wait(mail("b"), "v-2")])
    assert [row.key.id for row in due(waits_of_table)] == ["b"]
    assert [row.key.id for row in due(waits_of_table, lines_up=True)] == ["a"]


def test_the_messages_of_a_line_are_listed_by_place_across_all_shards(waits_of_table: Waits) -> None:
    places = {f"m-{number}": NOW - 1000 + number * 7 % 40 for number in range(40)}
    for id_, place in places.items():
        waits_of_table.hold([wait(mail(id_), reason=DAY_USED_UP, due=NOW, put_at=place, lines_up=True)])
    assert [row.key.id for row in waits_of_table.line("mail")] == sorted(places, key=lambda id_: places[id_])
    assert [*waits_of_table.line("sms")] == due(waits_of_table) == []


def test_a_message_with_a_put_time_in_the_future_gets_the_current_time_as_its_place(
    waits_of_table: Waits,
) -> None:
    waits_of_table.hold([wait(reason=DAY_USED_UP, due=NOW, put_at=NOW + 500, lines_up=True)])
    (row,) = waits_of_table.line("mail")
    assert (row.at, row.place) == (int(NOW), int(NOW))


def test_messages_that_wait_for_a_paused_or_unknown_run_are_listed_by_place_with_its_start(
    waits_of_table: Waits,
) -> None:
    def of(run: str, id_: str, place: float, reason: str) -> Wait:
        start = {"campaign": "weekly", "run": run, "start": 7}
        return wait(mail(id_, campaign_start=start), f"of {id_}", reason=reason, put_at=place)

    waits_of_table.hold(
        [of("r", "a", NOW - 5, PAUSED), of("s", "b", NOW - 9, RUN_UNKNOWN), of("r", "c", NOW - 7, PAUSED)]
    )
    asked: list[tuple[str, str]] = []

    def remains(row: WaitingRow, reason: str) -> bool:
        asked.append((row.key.id, reason))
        return row.start is not None and row.start.run == "r"

    rows = [*waits_of_table.of_runs("mail", none_remains)]
    assert sorted(row.key.id for row in rows) == ["a", "b", "c"]
    assert [row.key.id for row in rows if row.reason == PAUSED] == ["c", "a"]
    assert {row.key.id: row.start and row.start.run for row in rows} == {"a": "r", "b": "s", "c": "r"}
    assert [row.key.id for row in waits_of_table.of_runs("mail", remains)] == ["b"]
    assert ("b", RUN_UNKNOWN) in asked
    assert {reason for id_, reason in asked if id_ != "b"} == {PAUSED}
    assert [*waits_of_table.of_runs("sms", none_remains)] == []


@pytest.mark.parametrize("reason", [PAUSED, RUN_UNKNOWN])
def test_a_message_of_a_paused_or_unknown_run_is_moved_from_its_line_to_the_list_of_its_run(
    waits_of_table: Waits, aws: Aws, reason: str
) -> None:
    start: dict[str, Any] = {"campaign": "weekly", "run": "r", "start": 7}
    waits_of_table.hold([wait(mail(campaign_start=start), reason=DAY_USED_UP, lines_up=True)])
    (row,) = waits_of_table.line("mail")
    assert waits_of_table.wait_for_run(row, reason)
    assert [*waits_of_table.line("mail")] == []
    (moved,) = waits_of_table.of_runs("mail", none_remains)
    assert (moved.key, moved.start, of_ledger(aws.item()).waits_for) == (KEY, CampaignStart(**start), reason)
    waits_of_table.hold([wait(version="v-2")])
    assert not waits_of_table.wait_for_run(moved, reason)


def test_a_claimed_message_is_in_the_list_of_waits_as_no_longer_waiting(
    waits_of_table: Waits, ledger: Ledger
) -> None:
    waits_of_table.hold([wait()])
    claimed(ledger)
    assert [row.waits for row in due(waits_of_table)] == [False]


# Marks


def test_a_message_that_was_handed_over_to_its_queue_is_no_longer_in_the_list_of_waits(
    waits_of_table: Waits, aws: Aws
) -> None:
    waits_of_table.hold([wait()])
    (row,) = due(waits_of_table)
    assert waits_of_table.hand_over(row)
    assert due(waits_of_table) == []
    assert (aws.item()["status"], aws.item()["ttl"]) == ("scheduled", NOW + TTL)
    assert of_ledger(aws.item()).waits_for == ""
    assert not waits_of_table.hand_over(row)


def test_a_wait_that_a_later_hold_has_replaced_is_neither_handed_over_nor_moved(
    waits_of_table: Waits,
) -> None:
    waits_of_table.hold([wait()])
    (row,) = due(waits_of_table)
    waits_of_table.hold([wait(version="v-2")])
    assert not waits_of_table.hand_over(row)
    assert not waits_of_table.move(row, None)
    assert [row.version for row in due(waits_of_table)] == ["v-2"]


def test_a_message_keeps_its_place_if_it_moves_from_a_line_to_a_later_time_and_back(
    waits_of_table: Waits, aws: Aws
) -> None:
    waits_of_table.hold([wait(reason=DAY_USED_UP, due=NOW, lines_up=True)])
    (row,) = waits_of_table.line("mail")
    assert waits_of_table.move(row, LATER)
    assert [*waits_of_table.line("mail")] == []
    (later,) = due(waits_of_table, lines_up=True)
    assert (later.at, later.place, aws.item()["scheduledFor"]) == (int(LATER), row.place, iso(LATER))
    assert waits_of_table.move(later, None)
    assert [*waits_of_table.line("mail")] == [row]
    assert due(waits_of_table, lines_up=True) == []


# The waits before.


def test_the_messages_ahead_of_a_place_in_a_line_are_counted(waits_of_table: Waits) -> None:
    for number in range(20):
        waits_of_table.hold(
            [wait(mail(f"m-{number}"), reason=DAY_USED_UP, due=NOW, put_at=NOW - number, lines_up=True)]
        )
    waits_of_table.hold([wait(mail("m-x"), reason=SEND_AT)])
    assert [waits_of_table.before("mail", int(NOW) - place) for place in (0, 19, 20)] == [19, 0, 0]
    assert waits_of_table.before("sms", int(NOW)) == 0


def test_the_messages_ahead_of_a_place_in_a_line_are_counted_up_to_ten_thousand(
    aws: Aws, clock: FakeClock
) -> None:
    def endless(_real: Any, **arguments: Any) -> Any:
        assert (arguments["Select"], arguments["Limit"]) == ("COUNT", PAGE)
        return {"Count": PAGE, "LastEvaluatedKey": {}}

    client: Any = Meddler(aws.dynamodb, query=endless)
    assert Waits(client, LEDGER, TTL, clock).before("mail", int(NOW)) == MOST_COUNTED
    assert len(client.calls) == MOST_COUNTED // PAGE
