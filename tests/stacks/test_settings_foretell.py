"""What the operator's commands work out of a stage's settings is what its templates have."""

from pathlib import Path
from typing import Any

import pytest

from mailroom_ops.doctor.checks.stacks import stack_parts
from mailroom_stacks.settings.load import load
from tests.support.stacks.campaign_folders import EVERYTHING, of_each_kind
from tests.support.stacks.refusals import REMOVED, with_settings
from tests.support.stacks.variants import EVERY_ALARM, variant

MAIL_ALONE: dict[str, Any] = {"channels.sms": REMOVED, "sms": REMOVED, "fax": REMOVED}
FURTHER: dict[str, Any] = {
    "channels.chat": {"handler": "send_push", "lanes": {"normal": {"share": 1}}, "secret": "A token."},
    "deploy": {
        "provider": "github",
        "subjects": ["repo:acme/mailroom:environment:dev"],
        "qualifier": "maildev",
    },
}


STAGES = {
    "dev": {},
    "mail alone": MAIL_ALONE,
    "mails by Resend": {"mail.provider": "resend"},
    "a row and a role": FURTHER,
    "everything": EVERYTHING,
    "every alarm": EVERY_ALARM,
}


@pytest.mark.parametrize("changes", STAGES.values(), ids=STAGES)
def test_the_stacks_of_a_stage_are_those_that_are_written(changes: dict[str, Any], tmp_path: Path) -> None:
    templates = variant(changes, campaigns=of_each_kind(tmp_path))
    assert {*stack_parts(load(with_settings(changes), "dev"))} == templates.stacks.keys() - {"deploy"}
