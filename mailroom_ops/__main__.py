"""`mailroom`, or `python -m mailroom_ops`: the operator's commands."""

from mailroom_ops.cli import app


def main() -> None:
    """Run the command that the arguments name."""
    app(prog_name="mailroom")


if __name__ == "__main__":
    main()
