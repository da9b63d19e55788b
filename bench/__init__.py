"""The figures of docs/measured.md, each with its baseline measured in the same run."""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PICTURES = REPOSITORY / "docs" / "pictures"
TOOLS = REPOSITORY / ".local" / "bench" / "bin"
"""What draws the pictures: `make bench` installs it."""
# The functions' library is bundled, not installed: here it is found where it lies.
sys.path.insert(0, str(REPOSITORY / "lambdas"))
