"""Prints worlds and steps; with names of conditions, what breaks without each, and the way
there. docs/explanation/never-twice.md has the command."""

import sys
from collections.abc import Iterator

from tests.support.model.channels import CHANNELS
from tests.support.model.explore import Exploration, explore


def table_lines(*without: str) -> Iterator[str]:
    """Of all tables; or of the ways to what breaks without these."""
    asked: dict[str, list[str]] = {}
    for name in CHANNELS:
        found = explore(CHANNELS[name])
        for condition in found.model.named:
            asked.setdefault(condition, []).append(name)
        if not without:
            yield f"| {name} | {found.worlds:,} | {found.steps:,} | {found.broken}"
    for condition in without or sorted(asked):
        name, found = _shortest(condition, asked[condition])
        yield f"| {condition} | {name} | {len(found.trace)} | {found.broken or 'nothing breaks'}"
        if without:
            yield from found.trace


def _shortest(without: str, names: list[str]) -> tuple[str, Exploration]:
    """The channel, of these, in which the fewest steps break something, and what was found there."""
    found = [(explore(CHANNELS[name], without), name) for name in names]
    best, name = min(found, key=lambda each: (not each[0].broken, len(each[0].trace), each[0].worlds))
    return name, best


for line in table_lines(*sys.argv[1:]):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
