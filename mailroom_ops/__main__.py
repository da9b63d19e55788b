"""`mailroom`, or `python -m mailroom_ops`: the operator's commands."""

import sys


def main() -> None:
    """Run the command that the arguments name."""
    try:
        from mailroom_ops.cli import app
    except ModuleNotFoundError as missing:  # who only sends has installed the client alone
        sys.exit(f"{missing}. The commands need more packages: install mailroom-cdk[deploy], or [local].")
    app(prog_name="mailroom")


if __name__ == "__main__":
    main()
