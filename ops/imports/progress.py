"""How far an import has come."""

from msgspec import Struct

from mailroom.campaigns.files.lines import Mark
from ops.imports.options import Options
from ops.imports.source import Fingerprint

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
    in the mailbox or among the refused ones, of which the first `rejected_bytes` bytes are those. `consumed`
    is SHA-256 of what stands before the offset."""

    version: int
    bucket: str
    fingerprint: Fingerprint
    options: Options
    offset: int
    line: int
    counts: Counts
    consumed: str = ""
    rejected_bytes: int = 0

    @property
    def mark(self) -> Mark:
        """Where it goes on."""
        return Mark(self.offset, self.line)
