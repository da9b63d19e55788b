"""What tests share: a folder for each folder of tests, and what several of those share beside them."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The repository's folder."""
