"""The one builder of a command's run in tests."""

from collections.abc import Mapping
from typing import Any

from typer.testing import CliRunner, Result


def run_app(
    app: Any,
    *words: object,
    typed: str | None = None,
    columns: int = 200,
    environment: Mapping[str, str | None] | None = None,
) -> Result:
    """Run the words of an app at a terminal of this width, with `typed` as the input."""
    variables = {"COLUMNS": f"{columns}", **(environment or {})}
    return CliRunner().invoke(app, [f"{word}" for word in words], input=typed, env=variables)
