"""The AWS clients: what may be repeated is, and a mail is asked for once."""

from collections.abc import Callable
from typing import Any

import pytest

from mailroom import clients
from tests.unit.support import Aws

Make = Callable[[], Any]
REPEATABLE: list[Make] = [clients.dynamodb, clients.sqs, clients.s3, clients.scheduler]


def test_a_mail_is_asked_for_once_and_within_its_time(aws: Aws) -> None:
    config = clients.sesv2(9.0).meta.config
    assert config.retries["total_max_attempts"] == 1  # type: ignore[attr-defined]
    assert config.connect_timeout + config.read_timeout <= 9.0  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", REPEATABLE)
def test_what_is_safe_to_repeat_is_repeated_and_bounded(aws: Aws, make: Make) -> None:
    config = make().meta.config
    assert config.retries["total_max_attempts"] == 4
    assert config.read_timeout <= 10


@pytest.mark.parametrize("make", [*REPEATABLE, lambda: clients.sesv2(9.0)])
def test_a_client_is_made_once_a_process(aws: Aws, make: Make) -> None:
    assert make() is make()
