"""The entry point of `mailroom`, and of `python -m mailroom_ops`."""

import sys


def main() -> None:
    """Run the command that the program's arguments name."""
    try:
        from mailroom_ops.cli import app
    except ModuleNotFoundError as missing:  # only the client's packages are installed
        sys.exit(f"{missing}. The commands need more packages: install mailroom-cdk[deploy], or [local].")
    app(prog_name="mailroom")


if __name__ == "__main__":
    main()
