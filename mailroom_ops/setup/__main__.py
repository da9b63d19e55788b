"""The command that makes a project folder before any package is installed."""

import sys
from pathlib import Path

from mailroom_ops.setup.project_folder import make

USAGE = "Run this: PYTHONPATH=<wheel> python3 -P -m mailroom_ops.setup FOLDER"
"""Command for a shell. Without -P, Python would prefer a package in the current folder to the wheel."""

if __name__ == "__main__":
    try:
        (name,) = sys.argv[1:] or ("mail",)
        print(make(Path(name).expanduser(), wheel=Path(__file__).parents[2]))
    except ValueError as error:
        sys.exit(f"{error} {USAGE}")
