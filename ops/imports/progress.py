"""How far an import has come: a small file beside the source, by which one that was cut off goes on."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from mailroom.campaigns.s3_lines import Mark
from ops.imports.options import Options
from ops.imports.source import Fingerprint
from ops.screen import Refused

VERSION = 1


class Counts(Struct, kw_only=True):
    """Lines, by what became of them. put: they are in the mailbox now. existed: the very same were there;
    among them may be those that this import put before it was cut off. conflict: the id is another
    message's. refused: the line is not as it must be. failed: AWS did not take it, and the import ended; it
    is put when the import goes on."""

    put: int = 0
    existed: int = 0
    conflict: int = 0
    refused: int = 0
    failed: int = 0

    @property
    def lines(self) -> int:
        """All that were seen."""
        return self.put + self.existed + self.conflict + self.refused + self.failed


class Progress(Struct, kw_only=True):
    """Of one file, into one stage of one account (`bucket` names all three): every entry before `offset` is
    in the mailbox or among the refused ones, of which the first `rejected_bytes` bytes are those."""

    version: int
    bucket: str
    fingerprint: Fingerprint
    options: Options
    offset: int
    line: int
    counts: Counts
    rejected_bytes: int = 0

    @property
    def mark(self) -> Mark:
        """Where it goes on."""
        return Mark(self.offset, self.line)


class ProgressFile:
    """The file, replaced as a whole, so that a crash leaves the old one or the new one."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self.path = source.with_name(f"{source.name}.mailroom-progress")
        self._draft = source.with_name(f"{source.name}.mailroom-progress.new")

    def read(self) -> Progress | None:
        """What an import that did not end has left; None: there is none. Raises Refused."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Progress)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            raise Refused(f"{self.path} cannot be read as an import's progress; {_ANEW}") from None

    def write(self, progress: Progress) -> None:
        """Keep it, on the disk. Raises Refused where that cannot be done."""
        try:
            with self._draft.open("wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(progress)) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            self._draft.replace(self.path)
            _settle(self.path.parent)
        except OSError as error:
            raise Refused(f"{self.path} cannot be written: {error.strerror}.") from None

    def remove(self) -> None:
        """The import has ended, or begins anew."""
        self.path.unlink(missing_ok=True)
        self._draft.unlink(missing_ok=True)

    def known(self, bucket: str, fingerprint: Fingerprint, options: Options) -> Progress | None:
        """The progress of the same import. Raises Refused where it is of another one."""
        found = self.read()
        if found is None:
            return None
        if found.version != VERSION or found.fingerprint != fingerprint:
            raise Refused(f"{self._source} has changed since its import was cut off; {_ANEW}")
        if found.bucket != bucket:
            raise Refused(f"{self._source} was being imported into another stage or account; {_ANEW}")
        if found.options != options:
            names = [name for name in options.__struct_fields__ if _differs(name, found.options, options)]
            raise Refused(
                f"{self._source} was being imported with another {' and '.join(names)}; use the same as "
                f"before, or {_ANEW}"
            )
        return found


def first(bucket: str, fingerprint: Fingerprint, options: Options, start: Mark) -> Progress:
    """The progress of an import that begins."""
    return Progress(
        version=VERSION,
        bucket=bucket,
        fingerprint=fingerprint,
        options=options,
        offset=start.offset,
        line=start.line,
        counts=Counts(),
    )


_ANEW = "--restart begins anew, and puts nothing twice that has the same id."


def _differs(name: str, one: Options, other: Options) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


def _settle(folder: Path) -> None:
    """A name that was replaced outlives a power cut once its folder is on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
