"""DynamoDB throttles an import: it slows down, and loses no line."""

from collections.abc import Iterator
from typing import Any

import pytest

from mailroom.mailbox import PutResult
from ops.imports.importing import FIRST_WAIT, GIVE_UP_AFTER, LONGEST_WAIT, PacedWriter

PUT, THROTTLED = PutResult("accepted"), PutResult("failed", "PutItem: ThrottlingException")
ITEM: dict[str, Any] = {"id": "a", "event_type": "mail"}


class Writer:
    """Gives the answers that it is told, one a put, and takes everything after that."""

    def __init__(self, *answers: PutResult) -> None:
        self._answers: Iterator[PutResult] = iter(answers)
        self.puts = 0

    def put(self, item: Any) -> PutResult:
        self.puts += 1
        return next(self._answers, PUT)


class Time:
    """Passes while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def braked(*answers: PutResult) -> tuple[PacedWriter, Writer, Time]:
    writer, time = Writer(*answers), Time()
    return PacedWriter(writer, sleep=time.sleep, now=lambda: time.now), writer, time  # type: ignore[arg-type]


def test_a_put_that_is_throttled_is_made_again_until_it_goes_through() -> None:
    brake, writer, time = braked(*[THROTTLED] * 6)
    assert brake.put(ITEM) == PUT
    assert (writer.puts, brake.throttled) == (7, 6)
    assert len(time.slept) == 6
    assert time.slept[-1] > time.slept[0]


def test_the_others_slow_down_as_well_and_speed_up_again() -> None:
    brake, _, time = braked(THROTTLED)
    brake.put(ITEM)
    rested = brake.wait
    assert 0 < rested < FIRST_WAIT
    brake.put(ITEM)
    assert len(time.slept) == 2
    assert brake.wait < rested
    for _ in range(100):
        brake.put(ITEM)
    assert brake.wait == 0


def test_what_several_workers_hear_at_once_slows_them_down_once() -> None:
    brake, _, _ = braked()
    for _ in range(16):
        assert brake._may_pass(THROTTLED)
    assert brake.wait == FIRST_WAIT


def test_nobody_waits_longer_than_the_longest_wait() -> None:
    brake, _, time = braked(*[THROTTLED] * 20)
    assert brake.put(ITEM) == PUT
    assert max(time.slept) <= LONGEST_WAIT * 1.5


def test_an_outage_ends_the_import_after_its_patience_and_the_line_counts_as_failed() -> None:
    brake, _, time = braked(*[THROTTLED] * 10_000)
    assert brake.put(ITEM) == THROTTLED
    assert GIVE_UP_AFTER <= time.now - 1000 < GIVE_UP_AFTER + 2 * LONGEST_WAIT
    assert brake.put(ITEM).state == "failed"


def test_patience_counts_from_the_first_put_that_fails_and_not_from_before_there_were_any() -> None:
    brake, _, time = braked(THROTTLED, PUT, THROTTLED)
    time.now += GIVE_UP_AFTER + 1  # as long as the file's first lines are none that are put
    assert brake.put(ITEM) == PUT
    time.now += GIVE_UP_AFTER + 1
    assert brake.put(ITEM) == PUT


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "ExpiredToken"])
def test_what_no_waiting_mends_ends_it_at_once(code: str) -> None:
    refused = PutResult("failed", f"PutItem: {code}")
    brake, writer, time = braked(refused)
    assert brake.put(ITEM) == refused
    assert (writer.puts, time.slept) == (1, [])


def test_what_dynamodb_refuses_is_the_lines_own_fault_and_stops_nobody() -> None:
    refused = PutResult("refused", "item: is over 400 KB", "item")
    brake, _, _ = braked(refused)
    assert brake.put(ITEM) == refused
    assert brake.put(ITEM) == PUT
