"""What the end of a run says: the seconds of all tests by folder, and where functions were stopped."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import pytest


def lines(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """A line a folder, the longest first; then the sum, and the crash points where there are any.

    Seconds are those of each test with its fixtures, so what runs side by side counts twice.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    tests: Counter[str] = Counter()
    places: Counter[str] = Counter()
    for report in reports:
        _, folder, *files = report.nodeid.split("::")[0].split("/")
        folder = folder if files else "docs"
        seconds[folder] += report.duration
        if report.when == "call":
            tests[folder] += 1
        if report.when == "teardown":
            places.update(dict(report.user_properties))  # the counts of tests/faults
    for folder in sorted(seconds, key=lambda each: -seconds[each]):
        yield f"{folder:<10}{tests[folder]:>6} tests{seconds[folder]:>8.0f} s"
    yield f"{'together':<10}{tests.total():>6} tests{sum(seconds.values()):>8.0f} s"
    if places:
        yield "crash points: " + ", ".join(f"{count:,} {name}" for name, count in places.most_common())
