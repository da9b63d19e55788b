"""AWS on one machine: emulator, deployment, stream pump, provider simulators, and the demo."""

import sys
from pathlib import Path

# The functions' library is bundled, not installed: here it is found where it lies.
sys.path.append(str(Path(__file__).parents[1] / "lambdas"))
