"""`mailroom`, or `python -m ops`: the operator's commands."""

from ops.cli import app

app(prog_name="mailroom")
