"""The file that is imported: its bytes, and what it is known again by."""

import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from mailroom.campaigns.files.lines import CHUNK_BYTES, Lines, Mark
from ops.screen import Refused

LOOKED_AT = 1024 * 1024
"""Bytes of the file's begin, and of its end, by which it is known again."""
_UNLOCKABLE = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP)
"""What file systems of a network answer that lock no file which is open for reading alone."""


class Fingerprint(Struct, frozen=True):
    """A file's size in bytes, and SHA-256 of its begin and its end."""

    size: int
    begin: str
    end: str


class Source:
    """One file, open for reading. It must not change meanwhile: `fingerprint` tells whether it has."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror}.") from None
        found = os.fstat(self._file.fileno())
        self.size, self._written_at = found.st_size, found.st_mtime_ns

    def close(self) -> None:
        """Let it go, and with it the lock."""
        self._file.close()

    def lock(self) -> None:
        """Keep others from importing the same file meanwhile. Raises Refused where somebody does."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"{self.path} is being imported by another process; wait for it.") from None
        except OSError as error:
            if error.errno not in _UNLOCKABLE:
                raise

    def read(self, offset: int, most: int = CHUNK_BYTES) -> bytes:
        """Bytes from the offset on; none: that is where the file ended when it was opened. Raises Refused
        where it ends earlier now: half a line would be taken for a whole one."""
        found, wanted = b"", max(0, min(most, self.size - offset))
        while len(found) < wanted:
            more = os.pread(self._file.fileno(), wanted - len(found), offset + len(found))
            if not more:
                raise Refused(
                    f"{self.path} has changed since this command began to read it: it is shorter now. Put it "
                    "back as it was, and run the command again."
                )
            found += more
        return found

    def part(self, begin: int, end: int) -> Iterator[bytes]:
        """The bytes between two offsets, a chunk at a time."""
        while begin < end and (chunk := self.read(begin, min(CHUNK_BYTES, end - begin))):
            yield chunk
            begin += len(chunk)

    def lines(self, start: Mark) -> Lines:
        """Its lines from there on."""
        return Lines(self, start)

    def touched(self) -> bool:
        """Whether somebody has written into it since it was opened."""
        found = os.fstat(self._file.fileno())
        return (found.st_size, found.st_mtime_ns) != (self.size, self._written_at)

    def fingerprint(self) -> Fingerprint:
        """As the file is now."""
        size = os.fstat(self._file.fileno()).st_size
        begin, end = (os.pread(self._file.fileno(), LOOKED_AT, at) for at in (0, max(0, size - LOOKED_AT)))
        return Fingerprint(size, hashlib.sha256(begin).hexdigest(), hashlib.sha256(end).hexdigest())


class Consumed:
    """SHA-256 of what of a file has been read, moved on with it: no more of it is in memory than a chunk."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._hash, self._at = hashlib.sha256(), 0

    def upto(self, offset: int) -> str:
        """Of the bytes before an offset. Only what lies behind the last one that was asked for is read."""
        if offset < self._at:
            self._hash, self._at = hashlib.sha256(), 0
        for chunk in self._source.part(self._at, offset):
            self._hash.update(chunk)
        self._at = offset
        return self._hash.hexdigest()
