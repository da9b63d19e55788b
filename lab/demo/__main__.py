"""`make demo`: messages on all channels, on a stage of its own, and every outcome checked. A campaign is
killed half-way and started again. Exits 0 only if everything is right."""

import sys

from mailroom_local.commands import console, starting
from lab.demo.run import run

if __name__ == "__main__":
    with starting():
        code = run(console)
        console.print("\nTo send some yourself, and see them in a browser: make up")
    sys.exit(code)
