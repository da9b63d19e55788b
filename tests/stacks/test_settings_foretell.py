"""What the operator's commands work out of a stage's settings is what its templates have."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from ops.cost import fixed
from stacks.settings.load import load
from tests.support.stacks.campaign_folders import EVERYTHING, of_each_kind
from tests.support.stacks.refusals import REMOVED, with_settings
from tests.support.stacks.variants import variant

MAIL_ALONE: dict[str, Any] = {"channels.sms": REMOVED, "sms": REMOVED, "fax": REMOVED}
OWN_SECRET: dict[str, Any] = {
    "channels.chat": {"handler": "send_push", "lanes": {"normal": {"share": 1}}, "secret": "A token."}
}


@pytest.mark.parametrize(
    "changes", [{}, MAIL_ALONE, OWN_SECRET, EVERYTHING], ids=["dev", "mail", "own", "all"]
)
def test_a_stage_is_paid_for_by_what_its_templates_hold(changes: dict[str, Any], tmp_path: Path) -> None:
    templates = variant(changes, campaigns=of_each_kind(tmp_path))
    counted = fixed.of_templates(each.body for each in templates.stacks.values())
    foretold = fixed.of_settings(load(with_settings(changes), "dev"))
    assert structs.replace(counted, source="settings") == foretold
