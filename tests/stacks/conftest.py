"""Each stage is synthesized once a run, without bundling."""

from collections.abc import Callable
from functools import cache

import pytest

from stacks.application import synthesize
from tests.stacks.templates import Template, Templates

NO_BUNDLES: dict[str, object] = {"aws:cdk:bundling-stacks": []}


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Templates]:
    """The templates of a stage's stacks, by short name."""

    @cache
    def synthesized(name: str) -> Templates:
        folder = tmp_path_factory.mktemp(name)
        assembly = synthesize({"stage": name, **NO_BUNDLES}, str(folder))
        stacks = {stack.stack_name.rpartition("-")[2]: Template(stack.template) for stack in assembly.stacks}
        return Templates(folder, stacks)

    return synthesized


@pytest.fixture(scope="session")
def dev(stage: Callable[[str], Templates]) -> Templates:
    """Stage dev: no account, the defaults of most settings."""
    return stage("dev")


@pytest.fixture(scope="session")
def prod(stage: Callable[[str], Templates]) -> Templates:
    """Stage prod: everything protected."""
    return stage("prod")
