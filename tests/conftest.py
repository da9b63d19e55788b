"""What every test needs before the library is imported: no test ever reaches a real account."""

import os
from pathlib import Path

import pytest

os.environ.update(
    AWS_ACCESS_KEY_ID="test",
    AWS_SECRET_ACCESS_KEY="test",
    AWS_DEFAULT_REGION="us-east-1",
    POWERTOOLS_SERVICE_NAME="test",
    POWERTOOLS_METRICS_NAMESPACE="Mailroom",
)

_HERE = Path(__file__).parent
_TOGETHER = ("pipeline", "stacks", "postgres")
"""Folders whose tests share what takes long to make: a running stage, a synthesized app, a server."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep together what one process should run where `make test` runs several: those folders, else a file.

    Said here, for by the time of the hook below the scheduler has read it.
    """
    folder, *rest = item.path.relative_to(_HERE).parts
    item.add_marker(pytest.mark.xdist_group(folder if folder in _TOGETHER else "/".join([folder, *rest])))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The pipeline comes first: it is the longest, and the others fill the rest of the time."""
    items.sort(key=lambda item: "pipeline" not in item.path.parts)
