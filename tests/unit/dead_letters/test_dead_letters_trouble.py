"""A pass over dead letters that fails or runs out of time loses none, and the next pass continues."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mailroom.dead_letters.inspector import PUT_BACK_SECONDS
from mailroom.environment import DEAD_LETTERS_KEPT_BACK_SECONDS
from mailroom.errors import Unfinished
from tests.support.unit.dead_letter_office import Office
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import client_error, failing
from tests.support.unit.post import Counted, Log

DOWN = client_error("InternalServerError", status=500)


def refuse_message(id_: str) -> Callable[..., Any]:
    """Return an update that fails for one message."""
    errors: list[Exception] = [DOWN]

    def call(real: Callable[..., Any], **arguments: Any) -> Any:
        if errors and arguments["Key"]["id"]["S"] == id_:
            raise errors.pop()
        return real(**arguments)

    return call


def test_a_message_that_cannot_be_marked_does_not_delay_others_and_is_marked_by_the_next_pass(
    office: Office, log: Log, counted: Counted
) -> None:
    office.put_claimed("mail-dlq", 12)
    office.meddle(update_item=refuse_message("mail-dlq-3"))
    with pytest.raises(Unfinished, match="1 inspections of dead letters failed"):
        office.look()
    assert (office.marked("mail-dlq"), office.visible("mail-dlq")) == (11, 12)
    assert counted() == {"DeadLettersNotLookedAt": 1}
    (trouble,) = lines_about(log(), "dead letter not marked")
    assert (trouble["id"], trouble["event_type"]) == ("mail-dlq-3", "mail")
    office.look()
    assert office.marked("mail-dlq") == 12


@pytest.mark.parametrize("call", ["batch_get_item", "receive_message"])
def test_a_queue_that_cannot_be_inspected_does_not_delay_other_queues(office: Office, call: str) -> None:
    office.put_claimed("mail-dlq", 1)
    office.put_claimed("mail-bulk-dlq", 1)
    office.meddle(**{call: failing(DOWN)})
    with pytest.raises(Unfinished):
        office.look()
    assert (office.marked("mail-dlq"), office.marked("mail-bulk-dlq")) == (0, 1)
    assert (office.visible("mail-dlq"), office.visible("mail-bulk-dlq")) == (1, 1)
    office.look()
    assert office.marked("mail-dlq") == 1


def ticking(seconds: float, step: float) -> Callable[[], int]:
    """Return a function for the remaining time, which every call reduces by a step."""
    times = itertools.count(int(seconds * 1000), -int(step * 1000))
    return lambda: next(times)


def test_a_pass_ends_before_the_functions_time_is_over_and_later_passes_mark_the_rest(
    office: Office, log: Log
) -> None:
    office.put_claimed("mail-dlq", 40)
    seen = office.look("mail-dlq", remaining=ticking(DEAD_LETTERS_KEPT_BACK_SECONDS + 30, 1))["mail-dlq"]
    assert 10 <= seen < 40
    assert 0 < office.marked("mail-dlq") <= seen
    assert office.visible("mail-dlq") == 40
    (line,) = lines_about(log(), "dead letters left for the next pass")
    assert (line["queue"], line["seen"]) == ("mail-dlq", seen)
    for _ in range(6):
        office.look("mail-dlq", remaining=ticking(DEAD_LETTERS_KEPT_BACK_SECONDS + 30, 1))
    assert office.marked("mail-dlq") == 40


def test_a_pass_is_skipped_if_too_little_time_remains(office: Office, log: Log) -> None:
    office.put_claimed("mail-dlq", 1)
    assert office.look("mail-dlq", remaining=lambda: int(DEAD_LETTERS_KEPT_BACK_SECONDS * 1000)) == {}
    assert "receive_message" not in office.sqs.names()
    assert lines_about(log(), "dead letters left for the next pass")


def test_a_pass_reserves_time_to_make_every_received_letter_visible_again(office: Office) -> None:
    office.put_claimed("mail-dlq", 30)
    spare = DEAD_LETTERS_KEPT_BACK_SECONDS + 15 * PUT_BACK_SECONDS
    assert office.look("mail-dlq", remaining=lambda: int(spare * 1000)) == {"mail-dlq": 20}
    assert office.visible("mail-dlq") == 30


def test_a_queue_with_many_dead_letters_does_not_prevent_the_inspection_of_other_queues(
    office: Office,
) -> None:
    office.put_claimed("mail-dlq", 60)
    office.put_claimed("webhook-dlq", 3)
    office.look(remaining=ticking(DEAD_LETTERS_KEPT_BACK_SECONDS + 90, 1))
    assert office.marked("webhook-dlq") == 3
    assert 0 < office.marked("mail-dlq") < 60


def test_a_pass_receives_at_most_as_many_dead_letters_as_sqs_allows_in_flight(
    office: Office, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom.dead_letters.queue.MAX_HELD", 20)
    office.put_claimed("mail-dlq", 30)
    assert office.look() == {"mail-dlq": 20}
    assert lines_about(log(), "dead letters left for the next pass")
    assert office.visible("mail-dlq") == 30
