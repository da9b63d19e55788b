"""AWS in process for each test that asks for it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from mailroom_ops.campaigns.deployed import DeployedCampaigns
from mailroom_ops.console.site import Site
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.campaign import NOW, CampaignStage
from tests.support.ops.console import Browser
from tests.support.ops.message import deployed
from tests.support.ops.shared import BUCKET, Shelf, client
from tests.support.stacks.refusals import OURS


@pytest.fixture(scope="session", autouse=True)
def _stages_of_our_own() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mailroom_ops.costs.configured_lanes.CDK_JSON", OURS)
        yield


@pytest.fixture
def shelf_in_s3() -> Iterator[Shelf]:
    with mock_aws(), in_memory_dynamodb():
        s3 = client("s3")
        s3.create_bucket(Bucket=BUCKET)
        yield Shelf(s3)


@pytest.fixture
def stage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A stage as STAGE of the test's module makes it; without one, a stage that is deployed and empty."""
    with getattr(request.module, "STAGE", deployed)(monkeypatch) as stage:
        yield stage


@pytest.fixture
def browser(stage: Any) -> Browser:
    """A browser that is let in."""
    return Browser(stage.session).enter()


@pytest.fixture
def site(stage: Any) -> Site:
    return Site(stage.session, "dev")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CampaignStage]:
    with mock_aws(), in_memory_dynamodb():
        world = CampaignStage(tmp_path)
        monkeypatch.setattr("mailroom_ops.campaigns.files.PROJECT", tmp_path)
        monkeypatch.setattr("mailroom_ops.messages.items.TEMPLATES", tmp_path / "templates")
        monkeypatch.setattr("boto3.Session", lambda: world.session)
        monkeypatch.setattr(
            "mailroom_ops.campaigns.commands.DeployedCampaigns", partial(DeployedCampaigns, clock=lambda: NOW)
        )
        yield world
