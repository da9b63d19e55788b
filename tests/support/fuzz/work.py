"""Measures work: the number of executed lines of Python, which is the same on every machine, and CPU time for
work without lines, such as pattern matching."""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

FEW_LINES = 2_000
"""Most lines that an error message may cost, at any size of the input."""
BETWEEN = 8
"""Limit between linear and quadratic work. Four times the size makes linear work 4 times as long and
quadratic work 16 times."""
SHORT = 0.06
"""CPU seconds below which a comparison is not reliable."""
ROUNDS = 3
"""Comparisons before work counts as too slow. A busy machine slows down one comparison; quadratic work slows
down all."""


def lines_of(work: Callable[[], object]) -> int:
    """Return the number of lines of Python that the work executes."""
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
    """Return the least CPU seconds of several runs, because other load on the machine can only add time."""
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def assert_linear_time(work: Callable[[int], Callable[[], object]], size: int) -> None:
    """Assert that the time of `work(size)` is at most proportional to the size.

    Two sizes are compared, so the machine's speed cancels out.
    """
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
    """Assert that the lines and the time of `work(size)` are at most proportional to the size."""
    few, many = (lines_of(work(each)) for each in (size // 8, size // 2))
    # Checks that apply only to long inputs may cost a line for each character.
    assert many <= max(BETWEEN * few, size // 2) + FEW_LINES, (
        f"{few} lines at {size // 8}, {many} at {size // 2}"
    )
    assert_linear_time(work, size * 8)
