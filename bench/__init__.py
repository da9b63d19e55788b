"""The figures of docs/measured.md, each with its baseline measured in the same run."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
# The functions' library is bundled, not installed: here it is found where it lies.
