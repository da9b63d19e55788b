"""The harness waits for what must come, tells of the progress, and gives up in time with what is lacking."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from lab.harness.expected import Key
from lab.harness.stage_client import StageClient
from lab.harness.waiter import AT_ONCE, POLL_SECONDS, QUIET_SECONDS, NotSettled, Waiter


@dataclass
class ScriptedStage:
    """A stage of which each look finds the next of these, and at last always the same."""

    found: list[object]
    now: float = 0.0
    told: list[int] = field(default_factory=list)

    def _look(self) -> object:
        return self.found.pop(0) if len(self.found) > 1 else self.found[0]

    def ended(self, keys: list[Key]) -> set[Key]:
        """The next count says how many of all messages, by their numbers, have ended."""
        assert 0 < len(keys) <= AT_ONCE
        count = self._look()
        assert isinstance(count, int)
        return {key for key in keys if int(key[0]) < count}

    def events(self) -> object:
        return {"waiting": {"ses": self._look(), "twilio": 0}}

    def depths(self) -> object:
        return {"mail": self._look()}

    def held(self) -> str:
        return "Queues: all empty."

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def waiter(self) -> Waiter:
        return Waiter(cast(StageClient, self), lambda: self.now, self.sleep)


def numbered(count: int) -> list[Key]:
    return [(str(number), "mail") for number in range(count)]


def test_the_waiter_waits_until_all_messages_have_ended_and_reports_their_number() -> None:
    stage = ScriptedStage([1, 2, 3])
    stage.waiter.until_ended(numbered(3), 10, stage.told.append)
    assert (stage.told, stage.now) == ([1, 2, 3], 2 * POLL_SECONDS)


def test_the_waiter_reads_many_messages_in_several_calls_of_limited_size() -> None:
    stage = ScriptedStage([AT_ONCE + 7])
    stage.waiter.until_ended(numbered(AT_ONCE + 7), 10, stage.told.append)
    assert (stage.told, stage.now) == ([AT_ONCE + 7], 0)


def test_the_waiter_gives_up_in_time_and_reports_the_number_of_ended_messages() -> None:
    stage = ScriptedStage([1])
    with pytest.raises(
        NotSettled, match=r"No progress in 10 s: 1 of 3 messages have ended\. Queues: all empty\."
    ):
        stage.waiter.until_ended(numbered(3), 10, stage.told.append)
    assert 10 < stage.now < 11


def test_the_waiter_does_not_give_up_on_a_slow_machine_that_makes_progress() -> None:
    stage = ScriptedStage([count for count in range(4) for _ in range(30)])
    stage.waiter.until_ended(numbered(3), 10, stage.told.append)
    assert stage.now > 2 * 10


def test_the_waiter_waits_until_the_providers_have_reported_every_event() -> None:
    stage = ScriptedStage([7, 2, 0])
    stage.waiter.until_reported(10)
    assert stage.now == 2 * POLL_SECONDS
    with pytest.raises(NotSettled, match=r"reports are still to come: {'ses': 2}"):
        ScriptedStage([2]).waiter.until_reported(10)


def test_the_waiter_counts_a_period_in_which_every_queue_was_empty_as_quiet() -> None:
    stage = ScriptedStage([0, 0, 5, 0])
    stage.waiter.until_quiet(10)
    assert stage.now == 2 * POLL_SECONDS + QUIET_SECONDS
    with pytest.raises(NotSettled, match="not empty"):
        ScriptedStage([1]).waiter.until_quiet(10)
