"""Parsers and functions with input that is nearly right: they refuse it without a crash, process its
neighbours, and their work is in proportion to the input. With FUZZ_MINUTES, the tests try new examples for
that time."""

import io
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from mailroom import telemetry
from mailroom.errors import MAX_FIELD, MAX_PROBLEM
from tests.support.fuzz.batch_takers import BATCHES, GOOD
from tests.support.fuzz.inputs import SECRET
from tests.support.fuzz.parsers import PARSERS
from tests.support.fuzz.work import assert_linear
from tests.support.run_report import FUZZED
from tests.support.unit.shared import Aws

GROWING = [name for name, parser in PARSERS.items() if parser.grown is not None]
MINUTES = float(os.environ.get("FUZZ_MINUTES", "0"))
"""Seconds for which all tests together try new examples. With 0, each tries the same few."""
SHARE = MINUTES * 60 / (len(PARSERS) + len(BATCHES) + len(GROWING))
SIZE = 32_000 if MINUTES else 8_000
FEW = settings(
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
MANY = settings(database=None, suppress_health_check=list(HealthCheck))


class Log(io.StringIO):
    """Return the log lines since the last look."""

    def look(self) -> list[dict[str, Any]]:
        """The lines."""
        found = [json.loads(line) for line in self.getvalue().split("\n") if line]
        self.seek(0)
        self.truncate()
        return found


@pytest.fixture
def fuzz_log(monkeypatch: pytest.MonkeyPatch) -> Log:
    stream = Log()
    monkeypatch.setattr(telemetry.logger.registered_handler, "stream", stream)
    return stream


Note = Callable[[str, object], None]


def fuzzed(inputs: st.SearchStrategy[Any], tried: Callable[[Any], bool], examples: int, note_: Note) -> None:
    """Try so many inputs, or more if time is left; `tried` returns whether an input was refused. Their number
    is noted for the table."""
    counts: Counter[bool] = Counter()

    def one(value: Any) -> None:
        note(f"{value!r:.3000}")
        telemetry.metrics.clear_metrics()
        counts[tried(value)] += 1

    ends = time.monotonic() + SHARE
    try:
        while True:
            chosen = (
                settings(MANY, max_examples=8 * examples) if MINUTES else settings(FEW, max_examples=examples)
            )
            chosen(given(inputs)(one))()
            if time.monotonic() >= ends:
                break
    finally:
        note_(FUZZED, [counts.total(), counts[True]])


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_accepts_a_random_input_or_refuses_it_with_a_short_reason(
    aws: Aws, fuzz_log: Log, record_property: Note, name: str
) -> None:
    parser = PARSERS[name]
    take = parser.open(aws)

    def tried(value: Any) -> bool:
        refused = False
        try:
            take(value)
        except parser.refusals as fault:
            said, refused = str(fault), True
            assert 3 < len(said) <= MAX_FIELD + MAX_PROBLEM + 2
            assert not (parser.private and SECRET in said), said
        lines = fuzz_log.look()
        assert not [line for line in lines if "exception" in line]
        assert not (parser.private and SECRET in json.dumps(lines)), lines
        return refused

    fuzzed(parser.inputs, tried, 15, record_property)


@pytest.mark.parametrize("name", BATCHES)
def test_a_bad_record_of_a_batch_is_kept_or_returned_and_the_good_records_are_handled(
    aws: Aws, fuzz_log: Log, record_property: Note, name: str
) -> None:
    run = BATCHES[name].open(aws)

    def tried(bad: Any) -> bool:
        ended = run(bad)
        lines = fuzz_log.look()
        note(json.dumps(lines, indent=1)[:4000])
        assert not [line["exception"] for line in lines if "exception" in line]
        assert ended.done == {*GOOD}
        assert not ended.good_back
        assert ended.back or ended.kept
        return ended.back

    fuzzed(BATCHES[name].inputs, tried, 15, record_property)


@pytest.mark.parametrize("name", GROWING)
def test_the_work_of_a_parser_is_at_most_proportional_to_its_input(
    aws: Aws, fuzz_log: Log, record_property: Note, name: str
) -> None:
    parser = PARSERS[name]
    take, as_input = parser.open(aws), parser.grown
    assert as_input is not None

    def tried(growing: Any) -> bool:
        refused = False

        def work(size: int) -> Callable[[], None]:
            value = as_input(growing.of(size))

            def once() -> None:
                nonlocal refused
                try:
                    take(value)
                except parser.refusals:
                    refused = True

            return once

        assert_linear(work, SIZE)
        fuzz_log.look()
        return refused

    fuzzed(parser.growing, tried, 6, record_property)
