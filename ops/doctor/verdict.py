"""What a check says, and what a check is."""

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

from ops.doctor.look import Look

State = Literal["ok", "warning", "failed", "skipped"]


class Verdict(Struct, frozen=True):
    """One thing that was looked at: a sentence about it, and what mends it; "" where nothing has to be."""

    state: State
    sentence: str
    fix: str = ""


class Check(Struct, frozen=True):
    """One question about a stage. `run` may raise whatever AWS answers."""

    subject: str
    name: str
    run: Callable[[Look], Iterator[Verdict]]


class Checked(Struct, frozen=True):
    """One verdict, with the check that it comes from."""

    subject: str
    check: str
    state: State
    sentence: str
    fix: str


class Diagnosis(Struct, frozen=True):
    """All of a stage's. `state` is the worst there is; `at` is ISO 8601, UTC."""

    stage: str
    account: str
    region: str
    at: str
    state: State
    counts: dict[State, int]
    checks: list[Checked]


def ok(sentence: str) -> Verdict:
    """It is as it should be."""
    return Verdict("ok", sentence)


def warning(sentence: str, fix: str = "") -> Verdict:
    """Messages go out all the same; somebody should know."""
    return Verdict("warning", sentence, fix)


def failed(sentence: str, fix: str = "") -> Verdict:
    """Messages do not go out, or what went wrong already waits to be mended."""
    return Verdict("failed", sentence, fix)


def skipped(sentence: str) -> Verdict:
    """It was not looked at, and why."""
    return Verdict("skipped", sentence)


def worst(states: list[State]) -> State:
    """`failed` before `warning` before `ok`; `skipped` where nothing was looked at."""
    order: tuple[State, ...] = ("failed", "warning", "ok", "skipped")
    return next((each for each in order if each in states), "skipped")
