"""A file of any size is collected in the memory of one page."""

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from functools import lru_cache

import pytest

from lab.bench.memory import most_megabytes
from mailroom.campaigns.definition import File
from mailroom.campaigns.file_audience import FileAudience
from mailroom.campaigns.file_formats import CHUNK_BYTES
from tests.support import ROOT
from tests.support.unit.audience import LOCATION, Bucket, Content, audience_pages, csv, cursor_page

LINES = 100_000
HEADER = b"id,email,first_name\n"
BLOCK = 2_000
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'lambdas'}"}


def csv_line(number: int) -> str:
    return f"u{number:07},person-{number:07}@example.com,Ann\n"


WIDTH = len(csv_line(0))


@lru_cache(maxsize=3)
def block(at: int) -> bytes:
    return "".join(map(csv_line, range(at * BLOCK, (at + 1) * BLOCK))).encode()


class Generated(Content):
    """A file whose content is created when it is read."""

    def __init__(self, lines: int) -> None:
        self._size = len(HEADER) + lines * WIDTH

    def __len__(self) -> int:
        return self._size

    def read(self, begin: int, end: int) -> bytes:
        begin, end = begin - len(HEADER), min(end, self._size) - len(HEADER)
        text = HEADER[begin : min(end, 0) or None] if begin < 0 else b""
        return text + b"".join(self._parts(max(begin, 0), max(end, 0)))

    def _parts(self, begin: int, end: int) -> Iterator[bytes]:
        size = BLOCK * WIDTH
        for at in range(begin // size, -(-end // size)):
            yield block(at)[max(begin - at * size, 0) : end - at * size]


def collected(lines: int) -> None:
    """Collect all people: each of them once, and in order."""
    count = 0
    for found in audience_pages(csv(Generated(lines), columns=["email"])):
        assert found.faults == []
        for person in found.recipients:
            assert person.key == f"u{count:07}"
            count += 1
    assert count == lines


def main() -> None:
    """In a process of its own, for another's memory may once have been larger: says MB at a tenth, and at
    the end."""
    collected(LINES // 10)
    tenth = most_megabytes()
    collected(LINES)
    sys.stdout.write(f"{tenth} {most_megabytes()}")


def test_the_generated_file_of_these_tests_returns_the_right_bytes_of_a_range() -> None:
    content = Generated(12_000)
    whole = HEADER + "".join(map(csv_line, range(12_000))).encode()
    assert content.read(0, len(content)) == whole
    for begin, end in ((0, 5), (7, 40), (20, 300_000), (220_000, 480_000), (len(whole) - 9, len(whole) + 50)):
        assert content.read(begin, end) == whole[begin:end]


@pytest.mark.process
def test_a_large_file_needs_no_more_memory_than_a_file_of_a_tenth_of_its_size() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "tests.unit.campaigns.test_audience_large_file"],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    tenth, whole = map(float, answer.stdout.split())
    assert whole - tenth < 2


def test_a_page_of_a_thousand_lines_takes_less_than_two_megabytes_of_memory() -> None:
    audience, content = csv(Generated(LINES)), Generated(LINES)
    content.read(0, CHUNK_BYTES)  # the data of the test itself are in memory already
    tracemalloc.start()
    found = audience.page(cursor_page())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.recipients) == 1000
    assert peak < 2 * 1024 * 1024


def test_a_page_of_an_audience_takes_one_request_to_s3_at_any_place_in_the_file() -> None:
    content = Generated(LINES)
    bucket = Bucket(content)
    audience = FileAudience(File(LOCATION, "id"), bucket)  # type: ignore[arg-type]
    first = audience.page(cursor_page())
    assert first.cursor["offset"] == len(HEADER) + 1000 * WIDTH
    middle = first.cursor | {"offset": len(HEADER) + 90_000 * WIDTH, "line": 90_002}
    assert audience.page(cursor_page(middle)).recipients[0].key == "u0090000"
    assert len(bucket.asked) == 2


if __name__ == "__main__":
    main()
