"""Random worlds whose channel is removed from the settings and added again, while messages wait: each wait
ends, and no content is stored for longer than the wait and a spare time, or for less."""

from collections.abc import Iterator
from typing import Any

import pytest

from mailroom.clock import epoch
from mailroom.ledger import contents
from mailroom.ledger.waits import LISTS_OF_CHANNEL
from tests.faults.test_waiting_worlds import DAY, RandomWorld
from tests.support.faults.world import HOUR, MAIL

SEEDS = range(12)
STEPS = 40
SPARE_SECONDS = 2 * HOUR
"""Spare time of contents in these worlds, so that DynamoDB deletes contents while a world lasts."""


@pytest.fixture(autouse=True)
def _short_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "SPARE_SECONDS", SPARE_SECONDS)


class ChangingWorld(RandomWorld):
    """World whose only channel comes and goes. Its queues, with their messages, stay."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, keyed=seed % 2 == 0)
        self.invalid: set[str] = set()
        """Messages that may end as invalid: they were put, or were without an outcome, while the channel was
        removed."""
        self.release()  # the rule runs each minute, so it has seen the channel before the removal

    def play(self) -> None:
        if self.random.random() < 0.15:
            self.channels = () if self.channels else ("mail",)
        elif not self.channels and self.random.random() < 0.2:
            self._stay_removed()
        super().play()
        self._expire()

    def deliver(self, url: str = MAIL) -> None:
        if self.channels:
            super().deliver(url)

    def _put(self) -> None:
        super()._put()
        self._note()

    def _step(self) -> None:
        self._note()
        super()._step()
        self._expire()

    def _note(self) -> None:
        """Note which messages may end as invalid now."""
        if not self.channels:
            self.invalid |= {name for name in self.puts if "completedAt" not in self.found(name)}
            self.invalid |= {name for name in self.puts if self.found(name).get("status") == "failed"}

    def _stay_removed(self) -> None:
        """Let a day pass without the channel, and then two hours: a crash before may have left the lease of a
        round, so the first hour may skip it."""
        for hours in (24, 1, 1):
            self.clock.now = (self.clock.now // HOUR + hours) * HOUR
            self._step()
        lists = tuple(f"{name}#mail#" for name in LISTS_OF_CHANNEL)
        waiting = [item["waits_in"] for item in self._items() if "waits_in" in item]
        assert not [name for name in waiting if name.startswith(lists)]

    def _items(self) -> Iterator[dict[str, Any]]:
        return (self.found(item["id"]["S"]) for item in [*self.dynamodb.tables["ledger"].items.values()])

    def _expire(self) -> None:
        """Delete contents as DynamoDB deletes them after their ttl, and judge the others."""
        table = self.dynamodb.tables["contents"].items
        for key, content in [*table.items()]:
            ttl = int(content["ttl"]["N"])
            if ttl < self.clock.now:
                del table[key]
                continue
            put = self.puts[content["message"]["S"].partition("#")[2]]
            if "expires_at" in put:
                assert ttl <= int(epoch(put["expires_at"]) + SPARE_SECONDS)
            if put["lane"] == "normal":  # the message waits for a window that opens within a day
                assert ttl <= self.clock.now + DAY + SPARE_SECONDS

    def finish(self) -> None:
        if not self.channels:
            self._stay_removed()
            self.channels = ("mail",)
        super().finish()
        assert not [item["id"] for item in self._items() if "wait" in item]

    def _judge_end(self, name: str) -> None:
        end, sends = self.end(name), self.sends()[name]
        if end == "failed: invalid":
            assert (name in self.invalid, sends) == (True, 0), name
        elif (
            end == "failed: outcome_unknown"
        ):  # the worker died, and the message expired during the day without the channel
            assert (name in self.doubted, sends <= 1) == (True, True), name
        else:
            super()._judge_end(name)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_wait_of_a_message_ends_even_if_its_channel_is_removed_and_functions_crash_at_random(
    seed: int,
) -> None:
    world = ChangingWorld(seed)
    for _ in range(STEPS):
        world.play()
    world.finish()
