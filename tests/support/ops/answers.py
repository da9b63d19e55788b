"""Whether what a command printed is what its schema says."""

import json
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed

from ops.answers import schema_of


def valid(command: str, text: str) -> Any:
    """The JSON that a command printed; fails where it is not as the command's schema says."""
    document = json.loads(text)
    faults = [error.message for error in Draft202012Validator(schema_of(command)).iter_errors(document)]
    assert not faults, faults
    return document
