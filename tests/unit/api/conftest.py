"""The API of most tests."""

import pytest

from tests.support.unit.api_requests import Api
from tests.support.unit.shared import Aws, FakeClock


@pytest.fixture
def api(request: pytest.FixtureRequest, aws: Aws, clock: FakeClock) -> Api:
    """An API. API of the test's module has the settings that differ."""
    return Api(clock, **getattr(request.module, "API", {}))
