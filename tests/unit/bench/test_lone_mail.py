"""The only mail of an idle stage waits for no pace."""

import pytest

from bench import lone


@pytest.mark.process
def test_a_lone_mail_of_prod_and_dev_is_submitted_at_once() -> None:
    assert lone.measure() == {"lone_mail_wait_seconds": {"prod": 0, "dev": 0}}
