"""The only mail of an idle stage waits for no pace."""

import pytest

from bench import idle_stage_wait


@pytest.mark.process
def test_a_lone_mail_of_prod_and_dev_is_submitted_at_once() -> None:
    assert idle_stage_wait.measure() == {"lone_mail_wait_seconds": {"prod": 0, "dev": 0}}
