"""An import that somebody wants, by which a progress is known to be its own."""

from collections.abc import Callable

from msgspec import Struct

from mailroom.campaigns.files.lines import Mark
from ops.imports.entries import Entries
from ops.imports.items import Items
from ops.imports.options import Options
from ops.imports.progress import VERSION, Counts, Progress
from ops.imports.source import Consumed, Fingerprint, Source


class Asked(Struct, frozen=True):
    """An import that somebody wants: which bucket, which file, how. `numbered`: ids are made of the lines'
    numbers, and so another message's once a line has moved. `consumed` tells SHA-256 up to an offset."""

    bucket: str
    fingerprint: Fingerprint
    options: Options
    numbered: bool
    consumed: Callable[[int], str]

    def is_of(self, found: Progress) -> bool:
        """Whether the progress is of the file as it is now."""
        same = found.version == VERSION and found.fingerprint == self.fingerprint
        return same and found.consumed == self.consumed(found.offset)

    def ids_like(self, found: Progress) -> bool:
        """Whether both give ids in the same way, into the same mailbox."""
        one, other = self.options, found.options
        same = (one.id_prefix, one.id_column) == (other.id_prefix, other.id_column)
        return same and self.bucket == found.bucket

    def first(self, start: Mark) -> Progress:
        """The progress of an import that begins."""
        return Progress(
            version=VERSION,
            bucket=self.bucket,
            fingerprint=self.fingerprint,
            options=self.options,
            offset=start.offset,
            line=start.line,
            counts=Counts(),
        )


def asked_of(source: Source, bucket: str, options: Options, entries: Entries, items: Items) -> Asked:
    """What is to be imported. A file without a header tells by its first entry what its lines have."""
    entry = None if entries.header else next(entries.after(entries.start), None)
    columns = entries.header if entry is None else [*(entry.values or ())]
    consumed = Consumed(source).upto
    return Asked(bucket, source.fingerprint(), options, items.numbered(columns), consumed)
