"""`python -m mailroom_local.stage`: install the emulator, which a local stage needs besides this
environment."""

import sys

from mailroom_local.stage import emulator
from mailroom_ops.shared.screen import Refused

if __name__ == "__main__":
    try:
        emulator.install()
    except Refused as refused:
        sys.exit(f"{refused}")
