"""Mail items, read by their contract."""

from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.contract import Mail
from mailroom.errors import Invalid
from mailroom.message.message import parse
from tests.support.unit.shared import item


def read_mail(**changes: Any) -> Mail:
    message = parse(item(**changes), CONTRACTS)
    assert isinstance(message, Mail)
    return message


def problem_of_mail(**changes: Any) -> tuple[str, str]:
    with pytest.raises(Invalid) as caught:
        parse(item(**changes), CONTRACTS)
    return caught.value.field, caught.value.problem


def some(count: int) -> list[str]:
    return [f"n{at}@example.com" for at in range(count)]
