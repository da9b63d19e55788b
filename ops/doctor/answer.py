"""What `doctor` answers, and how a check says what it found."""

from typing import Literal

from msgspec import Struct

State = Literal["ok", "warning", "failed", "skipped"]


class CheckFinding(Struct, frozen=True):
    """One thing that was examined: a sentence about it, and what mends it; "" where nothing has to be."""

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


def ok(sentence: str) -> CheckFinding:
    """The subject is as it should be."""
    return CheckFinding("ok", sentence)


def warning(sentence: str, fix: str = "") -> CheckFinding:
    """Messages go out all the same; somebody should know."""
    return CheckFinding("warning", sentence, fix)


def failed(sentence: str, fix: str = "") -> CheckFinding:
    """Messages do not go out, or an earlier failure still needs repair."""
    return CheckFinding("failed", sentence, fix)


def skipped(sentence: str) -> CheckFinding:
    """The subject was not examined, and why."""
    return CheckFinding("skipped", sentence)


def worst(states: list[State]) -> State:
    """`failed` before `warning` before `ok`; `skipped` where nothing was examined."""
    order: tuple[State, ...] = ("failed", "warning", "ok", "skipped")
    return next((each for each in order if each in states), "skipped")
