"""`python -m mailroom_local.stage`: install the emulator of AWS, which a local stage needs, into its own
virtual environment."""

import sys

from mailroom_local.stage import emulator
from mailroom_ops.shared.screen import Refused

if __name__ == "__main__":
    try:
        emulator.install()
    except Refused as refused:
        sys.exit(f"{refused}")
