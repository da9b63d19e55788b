"""cdk.json: the sections of stages in it, and how one of them is changed."""

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mailroom_ops.files import write_whole
from mailroom_ops.screen import Refused

_WIDTH = 104
"""Characters of a line, with its indentation and without its key, that an object or a list may take before
it gets a line for each of its entries."""


class CdkJson:
    """The file as it is. A file that is not there, or is empty, gets all that the CDK needs."""

    def __init__(self, path: Path) -> None:
        """Raises Refused where the file is not JSON, or has no place for stages."""
        self._path = path
        try:
            found = path.read_bytes().decode() if path.exists() else ""  # with the line ends that it has
            self._text = found if found.strip() else "{}\n"
            self._document = json.loads(self._text)
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror}.") from None
        except ValueError as error:
            raise Refused(f"{path} is not JSON: {error}. Repair the file first.") from None
        stages = _stages(self._document)
        if stages is None:
            raise Refused(
                f'{path} has no place for stages. Add "mailroom": {{}} to its "context", or remove the file.'
            )
        self.stages = stages

    def with_stage(self, name: str, section: Mapping[str, Any]) -> str:
        """The file's text with this section of a stage. What else the file says stays; the file's own form
        becomes that of this command."""
        if self.stages.get(name) == section:
            return self._text
        document = self._document or {"app": "python app.py", "context": {"stage": name}}
        context = {**document["context"], "mailroom": {**self.stages, name: section}}
        text = _lines({**document, "context": context}, "") + "\n"
        return text.replace("\n", "\r\n") if "\r\n" in self._text else text

    def compared(self, text: str) -> Iterator[str]:
        """The lines by which another text differs."""
        lines = (self._text.splitlines(), text.splitlines())
        return difflib.unified_diff(*lines, self._path.name, self._path.name, lineterm="")

    def write(self, text: str) -> None:
        """Replace the file. Raises Refused where that cannot be done."""
        write_whole(self._path, text.encode())


def _stages(document: Any) -> dict[str, Any] | None:
    """The sections of the stages; None: the document has no place for them, or one is no section."""
    stages = document
    for name in ("context", "mailroom") if document else ():
        stages = stages.get(name) if isinstance(stages, dict) else None
    sections = isinstance(stages, dict) and all(isinstance(each, dict) for each in stages.values())
    return stages if sections else None


def _written(value: Any, indent: str) -> str:
    line = _line(value)
    return line if len(indent) + len(line) <= _WIDTH or not value else _lines(value, indent)


def _lines(value: Any, indent: str) -> str:
    inner = indent + "  "
    match value:
        case Mapping():
            entries = [f"{_line(key)}: {_written(each, inner)}" for key, each in value.items()]
            return "{\n" + ",\n".join(inner + each for each in entries) + f"\n{indent}}}"
        case list():
            return "[\n" + ",\n".join(inner + _written(each, inner) for each in value) + f"\n{indent}]"
    return _line(value)


def _line(value: Any) -> str:
    match value:
        case Mapping() if value:
            return f"{{ {', '.join(f'{_line(key)}: {_line(each)}' for key, each in value.items())} }}"
        case list():
            return f"[{', '.join(map(_line, value))}]"
    return json.dumps(value, ensure_ascii=False)
