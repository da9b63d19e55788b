"""Campaigns: which of them a stage has, and the functions that work for all of them."""

from typing import Annotated

from pydantic import Field, JsonValue

from mailroom_stacks.settings.sections import Section

CampaignName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]


class Network(Section):
    """Where in a VPC the functions stand. They reach SQS, DynamoDB, S3 and Secrets Manager from there only
    by a NAT gateway or by endpoints of the VPC."""

    subnet_ids: tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...] = Field(min_length=1)
    """Private subnets, best in two zones or more."""
    security_group_ids: tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...] = Field(
        min_length=1, max_length=5
    )
    """Groups that may go out to the databases and to AWS."""


class Campaigns(Section):
    """A stage's campaigns; each is a folder below campaigns/."""

    enabled: tuple[CampaignName, ...] = ()
    """The folders whose campaigns the stage has."""
    overrides: dict[CampaignName, dict[str, JsonValue]] = Field(default_factory=dict)
    """What this stage sets otherwise than campaign.toml, by campaign, in the same sections."""
    network: Network | None = None
    """null leaves the functions outside of any VPC of yours."""


COLLECTORS = 2
"""How many pages of audiences are read at once, each of another campaign's run."""
