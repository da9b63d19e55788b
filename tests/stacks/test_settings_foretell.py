"""Values that the operator's commands calculate from a stage's settings are those of its templates."""

from typing import Any

import pytest

from mailroom_ops.doctor.checks.stacks import stack_parts
from mailroom_stacks.settings.load import load
from tests.support.stacks.campaign_folders import EVERYTHING
from tests.support.stacks.refusals import with_settings
from tests.support.stacks.templates import Templates
from tests.support.stacks.variants import BY_RESEND, LEAN, OTHERWISE, TWO_PROVIDERS


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("dev", {}),
        ("lean", LEAN),
        ("by_resend", BY_RESEND),
        ("otherwise", OTHERWISE),
        ("everything", EVERYTHING),
        ("two_providers", TWO_PROVIDERS),
    ],
)
def test_the_settings_of_a_stage_foretell_exactly_which_stacks_it_has(
    name: str, changes: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    templates: Templates = request.getfixturevalue(name)
    settings = load(with_settings(changes), "dev")
    assert {*stack_parts(settings)} == templates.stacks.keys() - {"deploy"}
