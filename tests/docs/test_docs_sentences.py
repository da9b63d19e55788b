"""Each command that a sentence of the wheel or of a new folder names is there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.test_docs_commands import require_command
from tests.support import ROOT

COMMAND = re.compile(r"`mailroom ([^`\n]+)`|^ *Example: mailroom (.+)$", re.MULTILINE)
FOLDER = ROOT / "mailroom_ops" / "setup" / "project"
FILES = sorted(
    file
    for package in ("lambdas", "stacks", "mailroom_ops", "mailroom_local")
    for file in (ROOT / package).rglob("*")
    if file.suffix in {".py", ".md", ".yml", ".html", ".js"}
)


def strings(file: Path) -> Iterator[str]:
    """Yield the texts of a file: of a module its strings, with x for what they fill in."""
    text = file.read_text()
    if file.suffix != ".py":
        yield text
        return
    if "mailroom " not in text:
        return  # parsing takes a hundred times as long
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield "".join(part if isinstance(part, str) else "x" for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_every_mailroom_command_in_a_string_of_the_wheels_code_is_valid() -> None:
    commands = {
        (command or example, file)
        for file in FILES
        for text in strings(file)
        for command, example in COMMAND.findall(text)
    }
    assert len(commands) > 80
    for command, file in commands:
        require_command(command, f"{file}")


def test_every_mailroom_command_in_the_files_of_a_new_project_folder_is_valid() -> None:
    lines = [
        line
        for file in FOLDER.rglob("*")
        if file.suffix in {".md", ".yml"}
        for line in re.findall(r"^ *(?:- run: )?mailroom ([^\n|>#]+)", file.read_text(), re.MULTILINE)
    ]
    for file in FOLDER.rglob("*.py"):
        calls = re.findall(r'\["mailroom", ([^\]]+)\]', file.read_text())
        lines += [" ".join(re.findall(r'"([^"]+)"', call)) for call in calls]
    assert len(lines) > 10
    assert "template render --all" in lines
    for line in lines:
        require_command(line.removesuffix(" 2"), line)
