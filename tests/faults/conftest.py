"""Worlds for the fault tests; each ends with its tables gone."""

from collections.abc import Callable, Iterator

import pytest
from moto import mock_aws

from tests.faults.world import OnUnknown, World


@pytest.fixture
def new_world() -> Iterator[Callable[..., World]]:
    """A maker of worlds: a test walks through many, one for each place to stop at."""
    worlds: list[World] = []

    def make(on_unknown: OnUnknown = "resend") -> World:
        if worlds:
            worlds.pop().close()
        worlds.append(World(on_unknown))
        return worlds[-1]

    with mock_aws():
        yield make
