"""Each stage is synthesized once a run, without bundling."""

from collections.abc import Callable
from functools import cache

import pytest

from stacks.application import synthesize
from tests.stacks.campaign_folders import AUDIENCES, changes_for, of_each_kind
from tests.stacks.templates import Templates
from tests.stacks.variants import NO_BUNDLES, templates_of, variant


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Templates]:
    """The templates of a stage's stacks, by short name."""

    @cache
    def synthesized(name: str) -> Templates:
        folder = tmp_path_factory.mktemp(name)
        assembly = synthesize({"stage": name, **NO_BUNDLES}, str(folder))
        return Templates(folder, templates_of(assembly, name))

    return synthesized


@pytest.fixture(scope="session")
def dev(stage: Callable[[str], Templates]) -> Templates:
    """Stage dev: no account, the defaults of most settings."""
    return stage("dev")


@pytest.fixture(scope="session")
def prod(stage: Callable[[str], Templates]) -> Templates:
    """Stage prod: everything protected."""
    return stage("prod")


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Stage dev with a campaign for each kind of audience."""
    folder = tmp_path_factory.mktemp("whole")
    campaigns = of_each_kind(folder)
    out = folder / "out"
    return Templates(out, variant(out, changes_for(*AUDIENCES), campaigns=campaigns))
