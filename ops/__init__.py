"""The operator's command line."""

import sys
from pathlib import Path

# The functions' library is bundled, not installed: here it is found where it lies.
sys.path.insert(0, str(Path(__file__).parents[1] / "lambdas"))
