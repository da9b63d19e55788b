"""Worlds for the fault tests; each ends with its tables gone."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from moto import mock_aws

from tests.faults.campaign_world import CampaignWorld
from tests.faults.fax_world import FaxWorld
from tests.faults.people_world import PeopleWorld
from tests.faults.webhook_world import WebhookWorld
from tests.faults.world import World

World_ = TypeVar("World_", World, FaxWorld, WebhookWorld, PeopleWorld, CampaignWorld)


def _one_after_another(make: Callable[..., World_]) -> Iterator[Callable[..., World_]]:
    """A maker of worlds: a test walks through many, one for each place to stop at."""
    worlds: list[World_] = []

    def next_world(*arguments: Any) -> World_:
        if worlds:
            worlds.pop().close()
        worlds.append(make(*arguments))
        return worlds[-1]

    with mock_aws():
        yield next_world


@pytest.fixture
def new_world() -> Iterator[Callable[..., World]]:
    """Worlds of mail; their argument is `on_unknown`."""
    yield from _one_after_another(World)


@pytest.fixture
def new_fax_world() -> Iterator[Callable[..., FaxWorld]]:
    """Worlds of the fax gateway; their argument is `max_attempts`."""
    yield from _one_after_another(FaxWorld)


@pytest.fixture
def new_webhook_world() -> Iterator[Callable[[], WebhookWorld]]:
    """Worlds of the webhook sender."""
    yield from _one_after_another(WebhookWorld)


@pytest.fixture
def new_campaign_world() -> Iterator[Callable[..., CampaignWorld]]:
    """Worlds of campaigns; their arguments are the audience and the campaign's definition."""
    yield from _one_after_another(CampaignWorld)


@pytest.fixture
def new_people_world() -> Iterator[Callable[[], PeopleWorld]]:
    """Worlds of text messages, pushes and feedback."""
    yield from _one_after_another(PeopleWorld)
