"""Stages that many tests look at, without bundles. Each is synthesized once, whatever processes there are."""

from collections.abc import Callable

import pytest

from tests.support.stacks.campaign_folders import AUDIENCES, EVERYTHING, changes_for, of_each_kind
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import (
    BY_RESEND,
    EVERY_ALARM,
    LEAN,
    OTHERWISE,
    PUSH,
    PUSH_ROW,
    TWO_PROVIDERS,
    variant,
)


@pytest.fixture(scope="session")
def templates_of_stage() -> Callable[[str], Templates]:
    """The templates of a stage's stacks, by short name."""
    return lambda name: variant({}, name)


@pytest.fixture(scope="session")
def dev(templates_of_stage: Callable[[str], Templates]) -> Templates:
    """Stage dev: no account, the defaults of most settings."""
    return templates_of_stage("dev")


@pytest.fixture(scope="session")
def prod(templates_of_stage: Callable[[str], Templates]) -> Templates:
    """Stage prod: everything protected."""
    return templates_of_stage("prod")


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Stage dev with a campaign for each kind of audience, and with every alarm."""
    campaigns = of_each_kind(tmp_path_factory.mktemp("whole"))
    return variant({**changes_for(*AUDIENCES), **EVERY_ALARM}, campaigns=campaigns)


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Stage dev with all that can be switched on, AWS for SMS and a VPC among it."""
    return variant(EVERYTHING, campaigns=of_each_kind(tmp_path_factory.mktemp("everything")))


@pytest.fixture(scope="session")
def by_resend() -> Templates:
    """Stage dev, whose mails Resend sends."""
    return variant(BY_RESEND)


@pytest.fixture(scope="session")
def two_providers() -> Templates:
    """Return stage dev, whose mails and texts have two providers."""
    return variant(TWO_PROVIDERS)


@pytest.fixture(scope="session")
def lean() -> Templates:
    """Stage dev with little in it."""
    return variant(LEAN)


@pytest.fixture(scope="session")
def otherwise() -> Templates:
    """Stage dev with all settings changed that may be changed at any time."""
    return variant(OTHERWISE)


@pytest.fixture(scope="session")
def every_function() -> Templates:
    """Stage dev with every function that there is, as stage local has them."""
    return variant({"push": PUSH, "channels.push": PUSH_ROW, **changes_for("weekly-followers")})


@pytest.fixture(params=["dev", "prod", "whole"])
def each_stage(request: pytest.FixtureRequest) -> Templates:
    """Return dev, prod, and a stage with campaigns of every kind, one after the other."""
    templates: Templates = request.getfixturevalue(request.param)
    return templates
