"""Files that commands keep."""

import os
from pathlib import Path

from mailroom_ops.shared.screen import Refused


def write_whole(path: Path, content: bytes) -> None:
    """Write a file as a whole: a crash leaves the old one or the new one. Raises Refused if that cannot be
    done."""
    draft = path.with_name(f"{path.name}.new")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}.") from None
