"""Viewer of the pages behind a team's sign-in: the person, the person's right, and the one filter that masks
what a person without the right `contents` may not see."""

import re
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

from msgspec import Struct

from mailroom.telemetry import impersonal
from mailroom_ops.shared.refusals import Refused

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_TOKEN = re.compile(r"[\w:-]{64,}", re.ASCII)
"""Token of a device. The longest ids of providers have 60 characters."""
_SEAL = "sealed-"
_HEX, _LETTERS = "0123456789abcdef", "ghijklmnopqrstuv"
"""Letters in place of hexadecimal digits, so that a sealed text does not look like a number."""


class Viewer(Struct, frozen=True):
    """Person who has signed in."""

    who: str
    """Issuer and subject of the person's token."""
    name: str
    """Name to show."""
    contents: bool
    """Whether the person has the right `contents`; else the right `read`."""
    key: bytes
    """Secret of the session, 32 bytes."""

    def shown(self, text: str) -> str:
        """Return a text as the person may see it: without `contents`, addresses, telephone numbers and tokens
        of devices are masked."""
        return text if self.contents else _TOKEN.sub(lambda token: f"{token[0][:3]}…", impersonal(text))

    def sealed(self, text: str) -> str:
        """Return a text for a link or a hidden field. A text that the person may not see is encrypted for the
        session, so that the link leads on without showing it."""
        if self.shown(text) == text:
            return text
        digits = self._fernet().encrypt(text.encode()).hex()
        return _SEAL + digits.translate(str.maketrans(_HEX, _LETTERS))

    def opened(self, text: str) -> str:
        """Return the text of which `sealed` made this one. Raises Refused for a text of another session."""
        if not text.startswith(_SEAL):
            return text
        from cryptography.fernet import InvalidToken

        try:
            digits = text.removeprefix(_SEAL).translate(str.maketrans(_LETTERS, _HEX))
            return self._fernet().decrypt(bytes.fromhex(digits)).decode()
        except (InvalidToken, ValueError):
            raise Refused(
                "This link is from another sign-in. Find the message or the person again."
            ) from None

    def _fernet(self) -> "Fernet":
        # Imported here, because most requests need no cryptography.
        from cryptography.fernet import Fernet

        return Fernet(urlsafe_b64encode(self.key))
