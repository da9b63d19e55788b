"""A plugin for pytest: each example of a template is a test, which renders it in each language.

pytest -p mailroom_ops.templates.plugin templates
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mailroom.content.templates import EXAMPLES
from mailroom_ops.templates.folder import TO, TemplateFolder, TemplateName


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> "ExampleFile | None":
    """A file of examples, at <templates>/<channel>/<template>/examples/<name>.json."""
    channel = file_path.parents[2].name if len(file_path.parents) > 2 else ""
    if file_path.suffix == ".json" and file_path.parent.name == EXAMPLES and channel in TO:
        file: ExampleFile = ExampleFile.from_parent(parent, path=file_path)
        return file
    return None


class ExampleFile(pytest.File):
    """An example, as a file with one test."""

    def collect(self) -> Iterator["ExampleTest"]:
        test: ExampleTest = ExampleTest.from_parent(self, name="renders")
        yield test


class ExampleTest(pytest.Item):
    """The example renders, and its template has no other fault."""

    def runtest(self) -> None:
        """Raise AssertionError with what is wrong, by file and line."""
        _, template, channel, root = self.path.parents[:4]
        named = TemplateName(channel.name, template.name)
        wrong = list(TemplateFolder(root).faults(named, only=self.path.stem))
        if wrong:
            raise AssertionError("\n".join(wrong))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:  # noqa: ARG002 - pytest's
        """The faults alone: a traceback through here says nothing."""
        return str(excinfo.value)
