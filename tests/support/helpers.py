"""Helpers of tests by name: functions, fixtures and classes, in more files than a reader can tell apart."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

MOST_FILES = 2
"""Files that may define a helper of the same name."""
PROGRAM = "main"
"""The usual name of a program's function, which no test calls."""


def repeated(folder: Path) -> list[str]:
    """Return a line for each name of a helper that more files below a folder define."""
    files = defaultdict(set)
    for file in sorted(folder.rglob("*.py")):
        for name in helpers_in(file.read_text()):
            files[name].add(str(file.relative_to(folder)))
    return [
        f"{name}: {', '.join(sorted(paths))}"
        for name, paths in sorted(files.items())
        if len(paths) > MOST_FILES and name != PROGRAM
    ]


def helpers_in(code: str) -> Iterator[str]:
    """Yield the names of a module's classes, and of its functions that are helpers.

    A fixture that has its own name as a parameter extends the fixture of a folder above.
    """
    for node in ast.parse(code).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("test_"):
            extends = node.name in {parameter.arg for parameter in node.args.args}
            if not extends:
                yield node.name
