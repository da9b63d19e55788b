"""The sections of stages in cdk.json."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mailroom_ops.shared.files import write_whole
from mailroom_ops.shared.refusals import Refused


class CdkJson:
    """File cdk.json. If it is missing or empty, it is written with the content that the CDK needs."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises Refused if it is not JSON, or if its section for stages is missing
        or invalid."""
        self._path = path
        try:
            text = path.read_text("utf-8") if path.exists() else ""
            self._document = json.loads(text.strip() or "{}")
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror}.") from None
        except ValueError as error:
            raise Refused(f"{path} is not JSON: {error}. Repair the file first.") from None
        stages = _stages(self._document)
        if stages is None:
            raise Refused(
                f"{path} has no section for stages, or one that is not an object of objects. Add "
                f'"mailroom": {{}} to its "context", or correct it there, or remove {path}.'
            )
        self.stages = stages

    def write(self, stage: str, section: Mapping[str, Any]) -> None:
        """Replace the section of a stage, and keep the other content of the file. Raises Refused if the file
        cannot be written."""
        document = self._document or {"app": "python3 app.py", "context": {"stage": stage}}
        context = {**document["context"], "mailroom": {**self.stages, stage: section}}
        text = json.dumps({**document, "context": context}, indent=2, ensure_ascii=False)
        write_whole(self._path, f"{text}\n".encode())


def _stages(document: Any) -> dict[str, Any] | None:
    """Return the sections of the stages, or None if `context.mailroom` or a section in it is not an
    object."""
    stages = document
    for name in ("context", "mailroom") if document else ():
        stages = stages.get(name) if isinstance(stages, dict) else None
    sections = isinstance(stages, dict) and all(isinstance(section, dict) for section in stages.values())
    return stages if sections else None
