"""Where a look at dead letters fails, or time runs short: nothing is lost, and the next pass goes on."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mailroom.dead_letters.passes import PUT_BACK_SECONDS
from mailroom.environment import DEAD_LETTERS_KEPT_BACK_SECONDS
from mailroom.errors import Unfinished
from tests.support.unit.dead_letter_office import TABLE, Office, open_office
from tests.support.unit.events import lines_about
from tests.support.unit.fakes import client_error, failing
from tests.support.unit.shared import Aws, FakeClock, claimed, item, mail

Log = Callable[[], list[dict[str, Any]]]
Counted = Callable[[], dict[str, float]]
DOWN = client_error("InternalServerError", status=500)


@pytest.fixture
def office(aws: Aws, clock: FakeClock) -> Office:
    return open_office(aws, clock)


def refusing(id_: str, times: int = 1) -> Callable[..., Any]:
    """A ledger that is out of reach for one message."""
    left = [DOWN] * times

    def call(real: Callable[..., Any], **arguments: Any) -> Any:
        if left and arguments["Key"]["id"]["S"] == id_:
            raise left.pop()
        return real(**arguments)

    return call


def told(log: Log) -> list[str]:
    return [line.get("id", "") for line in log() if line["message"] == "dead letter"]


def test_a_letter_whose_look_fails_is_put_back_and_comes_in_the_next_pass_and_the_others_do_not_wait(
    office: Office, log: Log, counted: Counted
) -> None:
    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(12)))
    office.meddle(update_item=refusing("m-3"))
    with pytest.raises(Unfinished, match="1 looks at dead letters failed"):
        office.look()
    assert len(told(log)) == 11
    assert "m-3" not in told(log)
    assert office.visible("mail-dlq") == 12
    assert counted() == {"DeadLetters": 11, "DeadLettersNotLookedAt": 1}
    (trouble,) = lines_about(log(), "dead letter not looked at")
    assert (trouble["id"], trouble["event_type"]) == ("m-3", "mail")
    assert office.look() == {"mail-dlq": {"seen": 12, "new": 1}}
    assert len(told(log)) == len(set(told(log))) == 12


def test_where_the_memory_cannot_be_read_nothing_is_told_and_all_is_put_back(
    office: Office, log: Log
) -> None:
    office.put("mail-dlq", item())
    office.put("scheduled-dlq", item(id="s-1"))
    office.meddle(batch_get_item=failing(DOWN))
    with pytest.raises(Unfinished):
        office.look()
    assert len(told(log)) == 1
    assert (office.visible("mail-dlq"), office.visible("scheduled-dlq")) == (1, 1)
    office.look()
    assert sorted(told(log)) == ["m-1", "s-1"]


def test_a_line_that_could_not_be_remembered_comes_again_rather_than_never(office: Office, log: Log) -> None:
    office.put("mail-dlq", item())
    office.meddle(put_item=failing(DOWN))
    with pytest.raises(Unfinished):
        office.look()
    office.look()
    office.look()
    assert told(log) == ["m-1", "m-1"]


def test_a_memory_that_stands_already_is_no_fault_and_stays_as_it_is(
    office: Office, log: Log, aws: Aws
) -> None:
    def first(real: Callable[..., Any], **arguments: Any) -> Any:
        """Another pass was faster, after this one had read."""
        aws.dynamodb.put_item(TableName=TABLE, Item={**arguments["Item"], "receives": {"N": "99"}})
        return real(**arguments)

    office.put("mail-dlq", item())
    office.meddle(put_item=first)
    office.look()
    assert [each["receives"] for each in office.told()] == [99]


def test_a_queue_that_cannot_be_read_does_not_keep_the_pass_from_the_others(office: Office, log: Log) -> None:
    def refuse(real: Callable[..., Any], **arguments: Any) -> Any:
        if arguments["QueueUrl"] == office.urls["mail-dlq"]:
            raise client_error("AccessDenied", status=403)
        return real(**arguments)

    office.put("mail-dlq", item())
    office.put("scheduled-dlq", item(id="s-1"))
    office.meddle(receive_message=refuse)
    with pytest.raises(Unfinished):
        office.look()
    assert told(log) == ["s-1"]


def test_a_read_of_the_memory_that_comes_in_parts_is_asked_for_again(office: Office, log: Log) -> None:
    def part(real: Callable[..., Any], RequestItems: Any) -> Any:  # noqa: N803 - boto3's own name
        asked = RequestItems[TABLE]
        reply = real(RequestItems={TABLE: {**asked, "Keys": asked["Keys"][:3]}})
        if asked["Keys"][3:]:
            reply["UnprocessedKeys"] = {TABLE: {**asked, "Keys": asked["Keys"][3:]}}
        return reply

    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(10)))
    office.look()
    office.meddle(batch_get_item=part)
    office.look("mail-dlq")
    assert office.dynamodb.names() == ["batch_get_item"] * 4
    assert len(told(log)) == 10


def test_a_memory_that_is_throttled_for_long_is_a_fault_and_no_empty_answer(office: Office, log: Log) -> None:
    def none(real: Callable[..., Any], RequestItems: Any) -> Any:  # noqa: N803 - boto3's own name
        return {"Responses": {}, "UnprocessedKeys": RequestItems}

    office.put("mail-dlq", item())
    office.meddle(batch_get_item=none)
    with pytest.raises(Unfinished):
        office.look()
    assert told(log) == []


def ticking(seconds: float, each: float) -> Callable[[], int]:
    """A function's time left, which every question costs."""

    def left() -> Iterator[int]:
        now = seconds
        while True:
            yield int(now * 1000)
            now -= each

    times = left()
    return lambda: next(times)


def test_a_pass_ends_in_time_and_says_that_letters_are_left(office: Office, log: Log) -> None:
    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(40)))
    found = office.look("mail-dlq", remaining=ticking(DEAD_LETTERS_KEPT_BACK_SECONDS + 30, 1))["mail-dlq"]
    assert 10 <= found["seen"] < 40
    assert 0 < found["new"] <= found["seen"]
    assert len(told(log)) == found["new"]
    assert office.visible("mail-dlq") == 40
    (line,) = lines_about(log(), "dead letters left for the next pass")
    assert (line["queue"], line["seen"]) == ("mail-dlq", found["seen"])


def test_further_passes_come_to_what_an_earlier_one_had_no_time_for(office: Office, log: Log) -> None:
    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(40)))
    for _ in range(9):
        office.look("mail-dlq", remaining=ticking(DEAD_LETTERS_KEPT_BACK_SECONDS + 20, 1))
    assert len(told(log)) == len(set(told(log))) == 40


def test_without_time_nothing_is_received(office: Office, log: Log) -> None:
    office.put("mail-dlq", item())
    assert office.look("mail-dlq", remaining=lambda: int(DEAD_LETTERS_KEPT_BACK_SECONDS * 1000)) == {}
    assert "receive_message" not in office.sqs.names()
    assert lines_about(log(), "dead letters left for the next pass")


def test_the_time_to_put_letters_back_grows_with_them(office: Office, log: Log) -> None:
    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(30)))
    spare = DEAD_LETTERS_KEPT_BACK_SECONDS + 15 * PUT_BACK_SECONDS
    assert office.look("mail-dlq", remaining=lambda: int(spare * 1000))["mail-dlq"]["seen"] == 20
    assert lines_about(log(), "dead letters left for the next pass")


def test_a_queue_of_very_many_letters_does_not_keep_a_pass_from_the_others(office: Office, log: Log) -> None:
    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(60)))
    office.put("webhook-dlq", *({"id": f"w-{at}", "event_type": "webhook"} for at in range(3)))
    office.put("scheduled-dlq", *({"id": f"s-{at}", "event_type": "mail"} for at in range(50)))
    found = office.look(remaining=ticking(DEAD_LETTERS_KEPT_BACK_SECONDS + 90, 1))
    assert found["webhook-dlq"]["new"] == 3
    assert found["scheduled-dlq"]["new"] > 0
    assert found["mail-dlq"]["new"] > 0


def test_a_pass_holds_no_more_than_sqs_lets_anybody_hold(
    office: Office, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom.dead_letters.queue.MAX_HELD", 20)
    office.put("mail-dlq", *(item(id=f"m-{at}") for at in range(30)))
    assert office.look()["mail-dlq"]["seen"] == 20
    assert lines_about(log(), "dead letters left for the next pass")
    assert office.visible("mail-dlq") == 30


def test_a_letter_that_fails_is_marked_already_and_the_next_pass_finds_the_first_mark(
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
