"""A function's code is unpacked once for all workers that run it.

MiniStack unpacks it anew for each, a thousand files and more: that takes its one core, which bounds the whole
pipeline, for up to half a second a worker. A worker's folder becomes a link to the one that all share; as on
AWS, where it is read-only, no function writes to it. This file runs with the emulator's own Python and
packages.
"""

import hashlib
import tempfile
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ministack.core import lambda_runtime

_unpacking = threading.Lock()


class Shared(zipfile.ZipFile):
    """An archive that is in one folder at most, whatever other places want it."""

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        """Let the empty folder `path` be a link to where the archive is unpacked. The archive's file goes: up
        to 24 MB for each worker is more than the disk of a busy machine takes without waiting."""
        archive = Path(str(self.filename))
        content = archive.read_bytes()
        shared = Path(tempfile.gettempdir(), f"code-{hashlib.sha256(content).hexdigest()}")
        with _unpacking:
            if not shared.exists():
                super().extractall(shared, members, pwd)
        Path(path).rmdir()
        Path(path).symlink_to(shared)
        archive.unlink()


def share() -> None:
    """Let MiniStack's workers share what is unpacked."""
    lambda_runtime.zipfile = SimpleNamespace(**{**vars(zipfile), "ZipFile": Shared})
