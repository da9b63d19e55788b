"""Fixtures of the tests of dead letters."""

import pytest

from tests.support.unit.dead_letter_office import Office, open_office
from tests.support.unit.shared import Aws, FakeClock


@pytest.fixture
def office(aws: Aws, clock: FakeClock) -> Office:
    """Return an office with empty queues."""
    return open_office(aws, clock)
