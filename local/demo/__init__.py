"""The demo: messages on all channels and a campaign, on a stage of its own, with a check of every outcome."""

import sys
from pathlib import Path

# Its checks use the functions' library, which is not installed: here it is found where it lies.
sys.path.insert(0, str(Path(__file__).parents[2] / "lambdas"))
