"""Whether a channel's schema and its contract are of one mind."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed

from mailroom.channels.contracts import CONTRACTS
from mailroom.errors import Invalid
from mailroom.message.message import parse
from mailroom_ops.setup.schema import schema_of


def agree_on(item: dict[str, Any], *, good: bool) -> None:
    """Fail unless both take the item, or neither does."""
    assert Draft202012Validator(schema_of(item["event_type"])).is_valid(item) == good
    if good:
        parse(item, CONTRACTS)
    else:
        with pytest.raises(Invalid):
            parse(item, CONTRACTS)
