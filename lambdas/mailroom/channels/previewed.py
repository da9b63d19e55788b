"""Preview of a message, which is made by `preview.py`."""

from msgspec import Struct


class Preview(Struct, frozen=True, kw_only=True):
    """Preview of a message: its content as the recipient would receive it."""

    headers: dict[str, str] = {}
    """Headers of a mail, including the subject."""
    subject: str = ""
    """Subject of a mail, or title of a push."""
    html: str | None = None
    text: str | None = None
    attachments: list[str] = []
    """Names of a mail's attached files."""
    segments: int = 0
    """Number of segments of a text message; 0 for a message with media, and in other channels."""
    encoding: str = ""
    """Encoding of a text message's segments: GSM-7 or UCS-2."""
    encoding_reason: str = ""
    """Sentence that names the characters which require the encoding UCS-2; empty for GSM-7."""
    unused: list[str] = []
    """Attributes of the item that neither the contract nor the template uses."""
