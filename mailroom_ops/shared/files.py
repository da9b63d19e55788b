"""Writes files so that a crash does not leave an incomplete one."""

import os
from pathlib import Path

from mailroom_ops.shared.refusals import Refused


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file atomically: after a crash, the file has either the old content or the new one. Raises
    Refused if the file cannot be written."""
    draft = path.with_name(f"{path.name}.new")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}.") from None
