"""A pass over dead letters that fails or runs out of time loses no letter, and the next pass continues."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.dead_letters.passes import PUT_BACK_SECONDS
from mailroom.environment import DEAD_LETTERS_KEPT_BACK_SECONDS
from mailroom.errors import Unfinished
from tests.support.unit.dead_letter_office import TABLE, Office, open_office
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import client_error, failing
from tests.support.unit.post import Counted, Log
from tests.support.unit.shared import Aws, FakeClock, claimed, item, mail

DOWN = client_error("InternalServerError", status=500)


@pytest.fixture
def office(aws: Aws, clock: FakeClock) -> Office:
    return open_office(aws, clock)


def refusing(id_: str) -> Callable[..., Any]:
    """Return an update that fails for one message."""
    errors: list[Exception] = [DOWN]

    def call(real: Callable[..., Any], **arguments: Any) -> Any:
        if errors and arguments["Key"]["id"]["S"] == id_:
            raise errors.pop()
        return real(**arguments)

    return call


def logged(log: Log) -> list[str]:
    return [line.get("id", "") for line in log() if line["message"] == "dead letter"]


def test_a_dead_letter_that_cannot_be_handled_delays_no_other_letter_and_is_handled_by_the_next_check(
    office: Office, log: Log, counted: Counted
) -> None:
    office.put("mail-dlq", *(item(id=f"m-{number}") for number in range(12)))
    office.meddle(update_item=refusing("m-3"))
    with pytest.raises(Unfinished, match="1 looks at dead letters failed"):
        office.look()
    assert len(logged(log)) == 11
    assert "m-3" not in logged(log)
    assert office.visible("mail-dlq") == 12
    assert counted() == {"DeadLetters": 11, "DeadLettersNotLookedAt": 1}
    (trouble,) = lines_about(log(), "dead letter not looked at")
    assert (trouble["id"], trouble["event_type"]) == ("m-3", "mail")
    assert office.look() == {"mail-dlq": {"seen": 12, "new": 1}}
    assert len(logged(log)) == len(set(logged(log))) == 12


def test_dead_letters_whose_table_entries_cannot_be_read_are_handled_by_the_next_check(
    office: Office, log: Log
) -> None:
    office.put("mail-dlq", item())
    office.put("mail-bulk-dlq", item(id="s-1"))
    office.meddle(batch_get_item=failing(DOWN))
    with pytest.raises(Unfinished):
        office.look()
    assert len(logged(log)) == 1
    assert (office.visible("mail-dlq"), office.visible("mail-bulk-dlq")) == (1, 1)
    office.look()
    assert sorted(logged(log)) == ["m-1", "s-1"]


def test_a_dead_letter_whose_table_entry_could_not_be_written_is_logged_again(
    office: Office, log: Log
) -> None:
    office.put("mail-dlq", item())
    office.meddle(put_item=failing(DOWN))
    with pytest.raises(Unfinished):
        office.look()
    office.look()
    office.look()
    assert logged(log) == ["m-1", "m-1"]


def test_the_table_entry_of_a_dead_letter_written_by_a_concurrent_check_is_not_replaced(
    office: Office, log: Log, aws: Aws
) -> None:
    def first(real: Callable[..., Any], **arguments: Any) -> Any:
        """Write the entry of another pass first."""
        aws.dynamodb.put_item(TableName=TABLE, Item={**arguments["Item"], "receives": {"N": "99"}})
        return real(**arguments)

    office.put("mail-dlq", item())
    office.meddle(put_item=first)
    office.look()
    assert [entry["receives"] for entry in office.entries()] == [99]


def test_a_queue_that_cannot_be_read_does_not_prevent_the_check_of_other_queues(
    office: Office, log: Log
) -> None:
    def refuse(real: Callable[..., Any], **arguments: Any) -> Any:
        if arguments["QueueUrl"] == office.urls["mail-dlq"]:
            raise client_error("AccessDenied", status=403)
        return real(**arguments)

    office.put("mail-dlq", item())
    office.put("mail-bulk-dlq", item(id="s-1"))
    office.meddle(receive_message=refuse)
    with pytest.raises(Unfinished):
        office.look()
    assert logged(log) == ["s-1"]


def ticking(seconds: float, step: float) -> Callable[[], int]:
    """Return a function for the remaining time, which every call reduces by a step."""
    times = itertools.count(int(seconds * 1000), -int(step * 1000))
    return lambda: next(times)


def test_a_check_of_dead_letters_ends_before_the_functions_time_is_over_and_logs_that_some_remain(
    office: Office, log: Log
) -> None:
    office.put("mail-dlq", *(item(id=f"m-{number}") for number in range(40)))
    counts = office.look("mail-dlq", remaining=ticking(DEAD_LETTERS_KEPT_BACK_SECONDS + 30, 1))["mail-dlq"]
    assert 10 <= counts["seen"] < 40
    assert 0 < counts["new"] <= counts["seen"]
    assert len(logged(log)) == counts["new"]
    assert office.visible("mail-dlq") == 40
    (line,) = lines_about(log(), "dead letters left for the next pass")
    assert (line["queue"], line["seen"]) == ("mail-dlq", counts["seen"])


def test_dead_letters_for_which_a_check_had_no_time_are_handled_by_later_checks(
    office: Office, log: Log
) -> None:
    office.put("mail-dlq", *(item(id=f"m-{number}") for number in range(40)))
    for _ in range(9):
        office.look("mail-dlq", remaining=ticking(DEAD_LETTERS_KEPT_BACK_SECONDS + 20, 1))
    assert len(logged(log)) == len(set(logged(log))) == 40


def test_a_check_of_dead_letters_is_skipped_if_too_little_time_remains(office: Office, log: Log) -> None:
    office.put("mail-dlq", item())
    assert office.look("mail-dlq", remaining=lambda: int(DEAD_LETTERS_KEPT_BACK_SECONDS * 1000)) == {}
    assert "receive_message" not in office.sqs.names()
    assert lines_about(log(), "dead letters left for the next pass")


def test_a_check_of_dead_letters_reserves_time_to_make_every_received_letter_visible_again(
    office: Office, log: Log
) -> None:
    office.put("mail-dlq", *(item(id=f"m-{number}") for number in range(30)))
    spare = DEAD_LETTERS_KEPT_BACK_SECONDS + 15 * PUT_BACK_SECONDS
    assert office.look("mail-dlq", remaining=lambda: int(spare * 1000))["mail-dlq"]["seen"] == 20
    assert lines_about(log(), "dead letters left for the next pass")


def test_a_queue_with_many_dead_letters_does_not_prevent_the_check_of_other_queues(
    office: Office, log: Log
) -> None:
    office.put("mail-dlq", *(item(id=f"m-{number}") for number in range(60)))
    office.put("webhook-dlq", *({"id": f"w-{number}", "event_type": "webhook"} for number in range(3)))
    office.put("mail-bulk-dlq", *({"id": f"s-{number}", "event_type": "mail"} for number in range(50)))
    counts = office.look(remaining=ticking(DEAD_LETTERS_KEPT_BACK_SECONDS + 90, 1))
    assert counts["webhook-dlq"]["new"] == 3
    assert counts["mail-bulk-dlq"]["new"] > 0
    assert counts["mail-dlq"]["new"] > 0


def test_a_check_of_dead_letters_receives_at_most_as_many_as_sqs_allows_in_flight(
    office: Office, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom.dead_letters.queue.MAX_HELD", 20)
    office.put("mail-dlq", *(item(id=f"m-{number}") for number in range(30)))
    assert office.look()["mail-dlq"]["seen"] == 20
    assert lines_about(log(), "dead letters left for the next pass")
    assert office.visible("mail-dlq") == 30


def test_handling_a_dead_letter_again_keeps_the_time_of_the_first_mark(
    office: Office, log: Log, aws: Aws
) -> None:
    office.ledger.release(claimed(office.ledger, mail()), "retry", "throttled")
    office.put("mail-dlq", item())
    office.meddle(put_item=failing(DOWN))
    with pytest.raises(Unfinished):
        office.look()
    first = aws.item()["dead_lettered_at"]
    office.clock.advance(3600)
    office.look()
    assert aws.item()["dead_lettered_at"] == first
