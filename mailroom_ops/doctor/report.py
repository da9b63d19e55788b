"""What `doctor` answers, and how a check says what it found."""

from functools import partial
from typing import Literal

from msgspec import Struct

State = Literal["ok", "warning", "failed", "skipped"]


class CheckFinding(Struct, frozen=True):
    """One thing that was examined: a sentence about it, and what fixes it; "" where nothing has to be."""

    state: State
    sentence: str
    fix: str = ""


class Checked(Struct, frozen=True):
    """One finding, with the check that it comes from."""

    subject: str
    check: str
    state: State
    sentence: str
    fix: str


class Diagnosis(Struct, frozen=True):
    """All findings about a stage. `state` is the worst there is; `at` is ISO 8601, UTC."""

    stage: str
    account: str
    region: str
    at: str
    state: State
    counts: dict[State, int]
    checks: list[Checked]


ok = partial(CheckFinding, "ok")
"""The subject is as it should be."""
warning = partial(CheckFinding, "warning")
"""Messages go out all the same; somebody should know."""
failed = partial(CheckFinding, "failed")
"""Messages do not go out, or an earlier failure still needs repair."""
skipped = partial(CheckFinding, "skipped")
"""The subject was not examined, and why."""


def worst(states: list[State]) -> State:
    """`failed` before `warning` before `ok`; `skipped` where nothing was examined."""
    order: tuple[State, ...] = ("failed", "warning", "ok", "skipped")
    return next((each for each in order if each in states), "skipped")
