"""Worlds for the fault tests: a test walks through many, one for each place to stop at."""

import logging
from collections.abc import Iterator

import pytest

from tests.support.faults.campaign_world import CampaignWorld
from tests.support.faults.fax_world import FaxWorld
from tests.support.faults.outside import PLACES
from tests.support.faults.sms_and_push_world import PeopleWorld
from tests.support.faults.world import World


@pytest.fixture(autouse=True)
def _places(request: pytest.FixtureRequest) -> Iterator[None]:
    """Count the places of each test for the summary at the end of a run."""
    PLACES.clear()
    yield
    request.node.user_properties.extend(PLACES.items())


@pytest.fixture(autouse=True)
def _unlogged(request: pytest.FixtureRequest) -> Iterator[None]:
    """To write tens of thousands of tracebacks takes longer than what they are about."""
    if "caplog" not in request.fixturenames and not getattr(request.module, "READS_THE_LOG", False):
        logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def new_world() -> type[World]:
    """Worlds of mail; their argument is `on_unknown`."""
    return World


@pytest.fixture
def new_fax_world() -> type[FaxWorld]:
    """Worlds of the fax gateway; their argument is `max_attempts`."""
    return FaxWorld


@pytest.fixture
def new_campaign_world() -> type[CampaignWorld]:
    """Worlds of campaigns; their arguments are the audience and the campaign's definition."""
    return CampaignWorld


@pytest.fixture
def new_people_world() -> type[PeopleWorld]:
    """Worlds of text messages, pushes and feedback."""
    return PeopleWorld


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make repairs call AWS in the same order in each world, so that a test stops at each call."""
    monkeypatch.setattr("mailroom_ops.repair.corrector.WORKERS", 1)
    monkeypatch.setattr("mailroom_ops.repair.resender.WORKERS", 1)
    monkeypatch.setattr("mailroom_ops.repair.repairs.SEGMENTS", 1)
