"""AWS in process for each test that asks for it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from moto import mock_aws

from mailroom_ops.campaigns.deployed import DeployedCampaigns
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.campaign import NOW, World
from tests.support.ops.shared import BUCKET, Shelf, client
from tests.support.stacks.refusals import OURS


@pytest.fixture(scope="session", autouse=True)
def _stages_of_our_own() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mailroom_ops.costs.configured_lanes.CDK_JSON", OURS)
        yield


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with mock_aws(), in_memory_dynamodb():
        s3 = client("s3")
        s3.create_bucket(Bucket=BUCKET)
        yield Shelf(s3)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with mock_aws(), in_memory_dynamodb():
        world = World(tmp_path)
        monkeypatch.setattr("mailroom_ops.campaigns.files.PROJECT", tmp_path)
        monkeypatch.setattr("mailroom_ops.messages.items.TEMPLATES", tmp_path / "templates")
        monkeypatch.setattr("boto3.Session", lambda: world.session)
        monkeypatch.setattr(
            "mailroom_ops.campaigns.commands.DeployedCampaigns", partial(DeployedCampaigns, clock=lambda: NOW)
        )
        yield world
