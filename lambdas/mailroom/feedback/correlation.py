"""Which message a mail's event is about: what went along with the mail comes back with it."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.message.message import Reference

HEADER = "x-correlation-id"
ID_TAG, ATTEMPT_TAG = "correlation", "attempt"


class Header(Struct, frozen=True):
    """A header of the mail as it was handed to SES."""

    name: str = ""
    value: str | None = None


def find(
    headers: Sequence[Header], tags: Mapping[str, Sequence[str]], *, truncated: bool
) -> Reference | None:
    """The reference in a mail's header, else in its tags; None: the mail is not Mailroom's.

    The header wins where the two disagree: it is in the mail itself and no contract lets a producer write it,
    while a tag may come from elsewhere, such as a default of the configuration set. Several headers that
    differ are none. The last of a `truncated` list may be cut, and half a reference is another's: it is not
    read.

    What cannot be read is another program's: many write an X-Correlation-ID of their own, and their mails go
    through the stage's configuration set where it is their identity's default. Every mail of Mailroom's has a
    reference in both.
    """
    whole = headers[:-1] if truncated else headers
    written = [each.value.strip() for each in whole if each.name.lower() == HEADER and each.value]
    by_header, by_tags = _only(_readable(written)), _only(_readable(_texts(tags)))
    if by_header is not None and by_tags is not None and by_header.id == by_tags.id:
        return max(by_header, by_tags, key=lambda each: each.attempt)
    return by_header or by_tags


def _texts(tags: Mapping[str, Sequence[str]]) -> list[str]:
    """The tags as a reference; SES takes no dot in a tag, so the attempt has one of its own."""
    ids, attempts = tags.get(ID_TAG), tags.get(ATTEMPT_TAG)
    if not ids:
        return []
    return [f"{ids[0]}.{attempts[0]}" if attempts and attempts[0] != "1" else ids[0]]


def _readable(texts: Iterable[str]) -> set[Reference]:
    found = set()
    for each in texts:
        try:
            found.add(Reference.read(each))
        except Malformed:
            continue
    return found


def _only(references: set[Reference]) -> Reference | None:
    return references.pop() if len(references) == 1 else None
