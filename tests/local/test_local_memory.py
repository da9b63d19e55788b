"""The most memory of a process: its own, whatever its parent had."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab.bench.memory import most_megabytes, most_megabytes_until_its_end

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells it")
MB = 1024 * 1024


def test_the_memory_of_a_child_process_does_not_include_that_of_its_parent() -> None:
    large = bytearray(b"x" * (200 * MB))
    own = "from lab.bench.memory import most_megabytes; print(most_megabytes())"
    small = float(subprocess.run([sys.executable, "-c", own], capture_output=True, check=True).stdout)
    assert 0 < small < 100 < len(large) / MB < most_megabytes()


def test_the_measured_maximum_memory_of_a_process_includes_memory_that_it_has_released() -> None:
    passing = f"import time; bytearray(b'x' * {200 * MB}); time.sleep(0.5)"
    process = subprocess.Popen([sys.executable, "-c", passing])
    assert most_megabytes_until_its_end(process) > 200
    assert process.returncode == 0


def test_the_memory_of_an_ended_process_counts_as_zero() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert most_megabytes(process.pid) == 0
