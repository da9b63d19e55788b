"""A file that one process of this machine works with at a time."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ops.screen import Refused

_UNLOCKABLE = (errno.ENOLCK, errno.EOPNOTSUPP)
"""What file systems of a network answer that know no locks."""


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Keep others off the file meanwhile; it is made where there is none, readable for its owner alone.
    Raises Refused with `busy` where somebody works with it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _open(path, busy)
    try:
        yield
    finally:
        os.close(file)  # and with it the lock goes, as it does with a process that dies


def _open(path: Path, busy: str) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(file, busy)
            if _stands(file, path):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _lock(file: int, busy: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused(busy) from None
    except OSError as error:
        if error.errno not in _UNLOCKABLE:
            raise


def _stands(file: int, path: Path) -> bool:
    """Whether the path is the file's yet: whoever had it before may have removed it between open and lock,
    and a lock on what nobody finds any more keeps nobody off."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    own = os.fstat(file)
    return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)
