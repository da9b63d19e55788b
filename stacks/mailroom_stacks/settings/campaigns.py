"""Campaigns of a stage, and the functions that work for all of them."""

from typing import Annotated

from pydantic import Field, JsonValue

from mailroom_stacks.settings.sections import Section

CampaignName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]


class Network(Section):
    """VPC in which the functions of campaigns run. From there they can reach SQS, DynamoDB, S3 and Secrets
    Manager only through a NAT gateway or VPC endpoints."""

    subnet_ids: tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...] = Field(min_length=1)
    """Private subnets, preferably in two or more availability zones."""
    security_group_ids: tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...] = Field(
        min_length=1, max_length=5
    )
    """Security groups with access to the databases and to AWS."""


class Campaigns(Section):
    """Campaigns of a stage. Each campaign is a folder below campaigns/."""

    enabled: tuple[CampaignName, ...] = ()
    """Names of the campaigns of the stage, which are their folders below campaigns/."""
    overrides: dict[CampaignName, dict[str, JsonValue]] = Field(default_factory=dict)
    """Settings by campaign that override those in its campaign.toml for this stage, in the same sections."""
    network: Network | None = None
    """VPC of the functions; null means that they are not in a VPC of yours."""


COLLECTORS = 2
"""Maximum number of pages of audiences that are read at a time. The pages of one run are read one after the
other."""
