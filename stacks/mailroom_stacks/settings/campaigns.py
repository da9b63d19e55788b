"""Campaigns of a stage, and the functions that work for all of them."""

from typing import Annotated

from pydantic import Field, JsonValue

from mailroom_stacks.settings.sections import Section

CampaignName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]


class Network(Section):
    """Place of the functions in a VPC. From there they reach SQS, DynamoDB, S3 and Secrets Manager only by a
    NAT gateway or by endpoints of the VPC."""

    subnet_ids: tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...] = Field(min_length=1)
    """Private subnets, best in two zones or more."""
    security_group_ids: tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...] = Field(
        min_length=1, max_length=5
    )
    """Groups with access to the databases and to AWS."""


class Campaigns(Section):
    """Campaigns of a stage; each is a folder below campaigns/."""

    enabled: tuple[CampaignName, ...] = ()
    """Folders of the stage's campaigns."""
    overrides: dict[CampaignName, dict[str, JsonValue]] = Field(default_factory=dict)
    """Settings by campaign that override its campaign.toml in this stage, in the same sections."""
    network: Network | None = None
    """null: the functions stand outside of any VPC of yours."""


COLLECTORS = 2
"""Pages of audiences that are read at once, each of another campaign's run."""
