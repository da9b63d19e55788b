"""Report at the end of a run: the seconds of the tests by folder, the files that take the most CPU time, and
where functions were stopped."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

FUZZED = "fuzzed"
"""The property of a fuzz test: how many inputs it tried, and how many of these were refused."""


FILES = 10
"""Number of files in the report."""


def report_lines(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Yield a line for each folder, the longest first; then the sum, the files with the most CPU time, and
    the crash points if there are any.

    Seconds are those of each test with its fixtures. CPU time includes child processes that have ended: those
    of a stage count for the test at which it ends.
    """
    told = [*reports]
    seconds: defaultdict[str, float] = defaultdict(float)
    cpu: defaultdict[str, float] = defaultdict(float)
    cpu_of_files: defaultdict[str, float] = defaultdict(float)
    tests: Counter[str] = Counter()
    places: Counter[str] = Counter()
    for report in told:
        file = report.nodeid.split("::")[0]
        _, folder, *files = file.split("/")
        folder = folder if files else "docs"
        seconds[folder] += report.duration
        used = vars(report)["cpu"]
        cpu[folder] += used
        cpu_of_files[file] += used
        if report.when == "call":
            tests[folder] += 1
        if report.when == "teardown":
            counts = dict(report.user_properties)  # crash points of tests/faults
            places.update({name: count for name, count in counts.items() if name != FUZZED})
    for folder in sorted(seconds, key=lambda each: -seconds[each]):
        yield f"{folder:<10}{tests[folder]:>6} tests{seconds[folder]:>8.0f} s{cpu[folder]:>8.0f} s of CPU"
    sums = sum(seconds.values()), sum(cpu.values())
    yield f"{'together':<10}{tests.total():>6} tests{sums[0]:>8.0f} s{sums[1]:>8.0f} s of CPU"
    for file in sorted(cpu_of_files, key=lambda each: -cpu_of_files[each])[:FILES]:
        yield f"{cpu_of_files[file]:>6.1f} s of CPU  {file}"
    if places:
        yield "crash points: " + ", ".join(f"{count:,} {name}" for name, count in places.most_common())
    if os.environ.get("FUZZ_MINUTES"):
        yield from _fuzzed(told)


def _fuzzed(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """A line a fuzzed parser: how many inputs were tried and refused, and whether one was a fault of ours."""
    yield f"{'':<76}{'tried':>10}{'refused':>9}  fault"
    for report in reports:
        found: Any = dict(report.user_properties).get(FUZZED)
        if report.when == "call" and found is not None:
            name = report.nodeid.partition("::test_")[2].replace("[", ": ").rstrip("]").replace("_", " ")
            test, _, parser = name.partition(": ")
            shown = f"{parser:<24}{test:.50}"
            yield f"{shown:<76}{found[0]:>10,}{found[1]:>9,}  {'no' if report.passed else 'YES'}"
