"""An emulator for all tests of a process. Each file of tests begins with an empty one."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.local.emulator import emptied, emulated


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the process's emulator, with whatever earlier tests have left."""
    with emulated(tmp_path_factory.mktemp("emulator")) as url:
        yield url


@pytest.fixture(scope="module")
def url(emulator: str) -> str:
    """The URL of the emulator, emptied for this file."""
    return emptied(emulator)


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A bench as BENCH of the test's module makes it."""
    with request.module.BENCH() as bench:
        yield bench
