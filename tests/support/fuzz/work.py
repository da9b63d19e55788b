"""Work, counted: lines of Python, which are the same on every machine; and the processor's time for what
runs no lines, such as a pattern."""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

FEW_LINES = 2_000
"""What a refusal's own sentence may cost at any size."""
BETWEEN = 8
"""Between 4 and 16: what four times the size makes of linear work, and of quadratic."""
SHORT = 0.06
"""Seconds of the processor in which nothing can be told."""
ROUNDS = 3
"""Comparisons before work counts as too much: a busy machine slows one of them, quadratic work all."""


def lines_of(work: Callable[[], object]) -> int:
    """The lines of Python that it runs."""
    lines = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """The processor's seconds, the least of so many runs: what else the machine does can only add."""
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def assert_linear_time(work: Callable[[int], Callable[[], object]], size: int) -> None:
    """`work(size)` takes time in proportion to the size at most. Two sizes are compared, so the machine's
    speed cancels out."""
    large = work(size)
    if seconds(large) < SHORT:
        return
    small = work(size // 4)
    little = much = 0.0
    for _ in range(ROUNDS):
        little, much = seconds(small, 3), seconds(large, 3)
        if much < max(SHORT, BETWEEN * little):
            return
    raise AssertionError(f"{little:.3f} s at {size // 4}, {much:.3f} s at {size}")


def assert_linear(work: Callable[[int], Callable[[], object]], size: int) -> None:
    """`work(size)` makes no more than in proportion to the size: neither lines nor time."""
    few, many = (lines_of(work(each)) for each in (size // 8, size // 2))
    # What is looked at only where it is long may cost a line a character from there on.
    assert many <= max(BETWEEN * few, size // 2) + FEW_LINES, (
        f"{few} lines at {size // 8}, {many} at {size // 2}"
    )
    assert_linear_time(work, size * 8)
