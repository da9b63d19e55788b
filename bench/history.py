"""The key figures of each run by date and commit, and what got worse since they were measured before."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench import REPOSITORY

Entry = dict[str, Any]
"""A run's date and commit, and the figures that it measured."""
NOISE = {
    "calls_per_mail": 0.0,
    "write_units_per_mail": 0.0,
    "lone_mail_wait_seconds.prod": 0.0,
    "lone_mail_wait_seconds.dev": 0.0,
    "bundle_mb.send_mail": 0.01,
    "cpu_ratio_method": 0.05,
    "cpu_ratio_mail": 0.05,
    "cpu_ratio_http": 0.1,
    "import_ratio.send_mail": 0.1,
    "rate_ratio_powertools": 0.15,
    "rate_ratio_pattern": 0.15,
    "function_second_ratio": 0.15,
    "seconds_10000": 0.25,
}
"""The key figures, and the share by which each may differ though nothing has changed: 0 for what is counted.
Ratios of CPU time differ less than those of rates; seconds on the emulator are the machine's."""
MORE_IS_BETTER = {"rate_ratio_powertools", "rate_ratio_pattern", "function_second_ratio"}


def commit() -> str:
    """What is measured: the repository's commit, and whether files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    described = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return described.stdout.strip()


def entry(date: str, commit: str, figures: Mapping[str, Any]) -> Entry:
    """The key ones among the figures that were measured now."""
    found = {name: figure for name in NOISE if (figure := _figure(figures, name)) is not None}
    return {"date": date, "commit": commit, **found}


def has_figures(entry: Entry) -> bool:
    """Whether a run measured any of the key figures."""
    return not entry.keys().isdisjoint(NOISE)


def _figure(figures: Mapping[str, Any], name: str) -> float | None:
    whole, _, part = name.partition(".")
    figure = figures.get(whole)
    return figure[part] if part and figure is not None else figure


def worse(now: Entry, past: Sequence[Entry]) -> Iterator[str]:
    """A sentence for each figure that is worse than when it was measured last, by more than its noise."""
    for name, noise in NOISE.items():
        if name not in now:
            continue
        last = next((each for each in reversed(past) if name in each), now)
        lost = (now[name] - last[name]) * (-1 if name in MORE_IS_BETTER else 1)
        if lost > noise * last[name]:
            before = f"{last[name]} on {last['date']} at {last['commit']}"
            yield f"{name} got worse: {now[name]}, and {before} (noise: {noise:.0%})"
