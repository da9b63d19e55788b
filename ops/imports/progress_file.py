"""How far an import has come, in a small file beside the source, by which one that was cut off goes on."""

import os
from pathlib import Path

import msgspec

from ops.imports.asked import Asked
from ops.imports.options import Options
from ops.imports.progress import Progress
from ops.screen import Refused

_ANEW = "--restart begins anew, and puts nothing twice that has the same id."
_NUMBERED = (
    "and its ids are made of the lines' numbers: begun anew, a line that has moved would be put twice, or "
    "not at all. Put the file back as it was and let its import end; import what is new as a file of its "
    "own. Or take out what was put already, and say --restart and another --id-prefix: then each line that "
    "is left is a new message."
)


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

    def forget(self, asked: Asked) -> None:
        """Begin anew. Raises Refused where a changed file would then give ids of one line to another."""
        if asked.numbered:
            found = self._readable()
            if found is not None and asked.ids_like(found) and not asked.is_of(found):
                raise self.changed(asked)
        self.remove()

    def changed(self, asked: Asked) -> Refused:
        """What to do with a file that is not the one that was begun."""
        begun = f"{self._source} has changed since its import was begun"
        return Refused(f"{begun}; {_ANEW}" if not asked.numbered else f"{begun}, {_NUMBERED}")

    def known(self, asked: Asked) -> Progress | None:
        """The progress of the same import. Raises Refused where it is of another one."""
        found, options = self.read(), asked.options
        if found is None:
            return None
        if found.bucket != asked.bucket:
            raise Refused(f"{self._source} was being imported into another stage or account; {_ANEW}")
        if not asked.is_of(found):
            raise self.changed(asked)
        if found.options != options:
            names = [name for name in options.__struct_fields__ if _differs(name, found.options, options)]
            raise Refused(
                f"{self._source} was being imported with another {' and '.join(names)}; use the same as "
                f"before, or {_ANEW}"
            )
        return found

    def _readable(self) -> Progress | None:
        try:
            return self.read()
        except Refused:
            raise Refused(
                f"{self.path} cannot be read as an import's progress, so nobody can tell whether "
                f"{self._source.name} has changed since. If it has not, delete {self.path.name}, and begin "
                "anew."
            ) from None


def _differs(name: str, one: Options, other: Options) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


def _settle(folder: Path) -> None:
    """A name that was replaced outlives a power cut once its folder is on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
