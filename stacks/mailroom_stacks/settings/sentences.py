"""Describes errors of settings, each in one sentence that names the key and valid values."""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

SHORT = 120
"""Maximum number of characters of a value in a sentence, so that a long query does not fill the screen."""


class SettingsError(Exception):
    """An invalid setting, described by a sentence for the person who edits cdk.json."""


def sentence(error: ValidationError, prefix: str) -> str:
    """Return a sentence about the first fault in `error`. `prefix` is prepended to the key, such as
    "mailroom.dev."."""
    key = ".".join(part[:SHORT] for part in path_of(error))
    return f"{prefix}{key}: {_complaint(error.errors()[0])}."


def path_of(error: ValidationError) -> list[str]:
    """Return the parts of the key of the first fault in `error`."""
    return [str(part) for part in error.errors()[0]["loc"] if part != "[key]"]


def _complaint(fault: ErrorDetails) -> str:
    value = repr(fault["input"])
    beginning = value if len(value) <= SHORT else f"{value[:SHORT]}…"
    match fault["type"]:
        case "missing":
            return "is missing; add it"
        case "extra_forbidden":
            return "is not a setting; correct its name, or remove it"
        case "value_error":
            return f"{beginning} {fault['ctx']['error']}"
    # pydantic's messages begin with the kind of the value, such as "Input should be" or "String should
    # match".
    return f"{beginning} should{fault['msg'].partition(' should')[2]}"


def number(value: object) -> str:
    """Return a number as text without a needless fraction: 1.0 as 1, 0.2857142 as 0.286."""
    if not isinstance(value, float):
        return str(value)
    return str(int(value)) if value.is_integer() else f"{value:.3g}"
