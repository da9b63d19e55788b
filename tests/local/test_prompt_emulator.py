"""Reasons why the emulator reacts quickly: it waits at streams, and looks at queues by itself."""

import asyncio
import threading
from typing import Any

import pytest

from mailroom_local.stage.emulated import prompt

Answer = tuple[int, dict[str, str], bytes]
NOTHING: Answer = (200, {}, b'{"Records": [], "NextShardIterator": "next"}')
SOMETHING: Answer = (200, {}, b'{"Records": [{"eventID": "1"}], "NextShardIterator": "next"}')
REFUSED: Answer = (400, {}, b'{"__type": "ExpiredIteratorException"}')


def ask_emulator(monkeypatch: pytest.MonkeyPatch, *answers: Any, news: int = 1) -> tuple[Any, int]:
    """Return the response of GetRecords if the emulator's responses were these in turn, and the number of its
    looks. Each look finds `news` more records than the one before, of all streams."""
    monkeypatch.setattr(prompt, "LOOK_SECONDS", 0.001)
    given = iter(answers)
    looks = 0

    async def handle(action: str) -> Any:
        nonlocal looks
        looks += 1
        return next(given, NOTHING)

    return asyncio.run(_one(prompt.waiting(handle, lambda: looks * news))), looks


async def _one(handle: prompt.Handle) -> Any:
    return await handle("GetRecords")


def test_the_emulator_reads_a_stream_for_a_get_records_request_until_it_has_a_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ask_emulator(monkeypatch, NOTHING, NOTHING, SOMETHING) == (SOMETHING, 3)


def test_the_emulator_returns_any_get_records_response_other_than_an_empty_page_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ask_emulator(monkeypatch, REFUSED, SOMETHING) == (REFUSED, 1)


def test_the_emulator_reads_an_empty_stream_again_only_after_a_write_or_its_waiting_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prompt, "RECORDS_SECONDS", 0.05)
    assert ask_emulator(monkeypatch, news=0) == (NOTHING, 2)


def test_the_emulator_polls_queues_regularly_even_if_no_message_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prompt, "TICK_SECONDS", 0.01)
    wake = threading.Event()
    prompt.ticking(wake)
    for _ in range(2):
        assert wake.wait(10)
        wake.clear()
