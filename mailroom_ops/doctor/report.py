"""Findings of checks, and the diagnosis that `doctor` prints."""

from functools import partial
from typing import Literal

from msgspec import Struct

State = Literal["ok", "warning", "failed", "skipped"]


class CheckFinding(Struct, frozen=True):
    """Result of a check."""

    state: State
    sentence: str
    fix: str = ""
    """Command or step that fixes the subject; empty if it is in order."""


class Checked(Struct, frozen=True):
    """Finding with the check that it comes from."""

    subject: str
    check: str
    state: State
    sentence: str
    fix: str


class Diagnosis(Struct, frozen=True):
    """Findings about a stage. `state` is the worst of their states; `at` is ISO 8601, UTC."""

    stage: str
    account: str
    region: str
    at: str
    state: State
    counts: dict[State, int]
    checks: list[Checked]


ok = partial(CheckFinding, "ok")
"""The subject is in order."""
warning = partial(CheckFinding, "warning")
"""Messages are sent, but a person should know about the subject."""
failed = partial(CheckFinding, "failed")
"""Messages are not sent, or an earlier failure still needs repair."""
skipped = partial(CheckFinding, "skipped")
"""The subject was not examined, for the reason in the sentence."""


def worst(states: list[State]) -> State:
    """Return the worst state: `failed`, then `warning`, then `ok`. `skipped` if all checks were skipped."""
    order: tuple[State, ...] = ("failed", "warning", "ok", "skipped")
    return next((state for state in order if state in states), "skipped")
