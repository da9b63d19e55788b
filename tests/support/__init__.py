"""Helpers that tests share: one folder for each folder of tests, and modules that several folders use."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The repository's folder."""
