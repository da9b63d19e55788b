"""What goes to a provider with a message and comes back with its events: which message, and which attempt.

The attempt tells a message's lives apart: what arrives late about an attempt that was given up, or about the
life before an operator's resend, says nothing about the present one.
"""

import base64
import binascii
import re

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.message.address import has_control

MAX_ID_BYTES = 180
"""Base64url of it is 240 characters: within the 256 of an SES tag's value."""
MAX_ATTEMPT = 999_999_999
"""What a reference has room for. DynamoDB takes no number of more than 38 digits."""
_FORM = re.compile(r"([A-Za-z0-9_-]{2,240})(?:\.([1-9][0-9]{0,8}))?", re.ASCII)


class Reference(Struct, frozen=True):
    """The id of a message, and the attempt at it (counted from 1)."""

    id: str
    attempt: int = 1

    @property
    def text(self) -> str:
        """Base64url of the id, unpadded, and `.2` for a second attempt: fit for a header and a URL's path."""
        coded = encoded(self.id)
        return coded if self.attempt == 1 else f"{coded}.{self.attempt}"


def encoded(id_: str) -> str:
    """Base64url of an id, unpadded: fit for an SES tag as well, which takes no dot."""
    return base64.urlsafe_b64encode(id_.encode()).rstrip(b"=").decode()


def read(text: str) -> Reference:
    """The reference that `text` is. Raises Malformed for anything that `Reference.text` never makes."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise Malformed("not a reference of ours")
    coded, attempt = form.groups()
    try:
        id_ = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise Malformed("not a reference of ours") from None
    # One id, one reference: other spellings of the same bits were not made here.
    if encoded(id_) != coded or has_control(id_) or len(id_.encode()) > MAX_ID_BYTES or attempt == "1":
        raise Malformed("not a reference of ours")
    return Reference(id_, int(attempt or 1))
