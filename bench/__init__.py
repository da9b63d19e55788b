"""The figures of docs/reference/limits.md, each with its baseline measured in the same run."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
SHORT = os.environ.get("SHORT") == "1"
"""Whether bench, proof, chaos and oracle take their short form, which shows that they run and that their sums
hold. Its figures measure nothing."""


def size(whole: int, short: int) -> int:
    """Return the number of something that a tool makes: the usual one, or that of its short form."""
    return short if SHORT else whole


def figures(name: str) -> Path:
    """Return the file that a tool writes its figures to. Files of short forms are never committed."""
    folder = REPOSITORY / ".local" / "short" if SHORT else REPOSITORY / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name
