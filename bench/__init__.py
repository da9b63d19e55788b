"""The figures of docs/measured.md, each with its baseline measured in the same run."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
# The functions' library is bundled, not installed: here it is found where it lies.
SHORT = os.environ.get("SHORT") == "1"
"""Whether bench, proof, chaos and oracle take their short form, which shows that they run and that their sums
hold. Its figures measure nothing."""


def size(whole: int, short: int) -> int:
    """How much of something a tool makes: its usual number, or that of its short form."""
    return short if SHORT else whole


def figures(name: str) -> Path:
    """The file that a tool writes its figures to. The short form's are never committed."""
    folder = REPOSITORY / ".local" / "short" if SHORT else REPOSITORY / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name
