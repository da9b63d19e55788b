"""Files and rows of cdk.json that docs/how-to/add-a-channel.md shows."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support import ROOT

PAGE = ROOT / "docs" / "how-to" / "add-a-channel.md"
BLOCK = re.compile(r"^\*\*`(?P<path>[^`]+)`\*\*[^\n]*\n\n```\w+\n(?P<text>.*?)^```$", re.M | re.S)
ROWS = re.compile(r"in \*\*`cdk\.json`\*\*, by stage:\n\n```json\n(?P<text>.*?)^```$", re.M | re.S)


def blocks() -> Iterator[tuple[str, str]]:
    """Each file's path in the project, and its text."""
    for found in BLOCK.finditer(PAGE.read_text()):
        yield found["path"], found["text"]


def channel_rows() -> dict[str, Any]:
    """The rows of `channels`, by stage."""
    found = ROWS.search(PAGE.read_text())
    assert found is not None
    wanted: dict[str, Any] = json.loads(found["text"])
    return wanted
