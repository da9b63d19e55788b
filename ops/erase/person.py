"""Who is erased: one mail address, number, device token or endpoint, in all of its spellings."""

import re
from typing import Literal

from mailroom.ledger.erasure import ERASED
from mailroom.message.address import bare, readable, spellings, to_e164
from ops.screen import Refused

Kind = Literal["mail", "number", "device"]
_DEVICE = re.compile(r"[!-~]{16,2048}")
"""Shorter ones are typing errors rather than tokens, and would be found all over the place."""
_BETWEEN = r"[\s().\-]{0,3}"
"""What people write between the digits of a number."""


class Person:
    """`recipient` is the one form that messages are compared with. `region` is where numbers without their
    country are dialled in this stage ("": every number needs its country). Raises Refused."""

    def __init__(self, typed: str, region: str = "") -> None:
        self._region = region or None
        self.kind, self.recipient = _read(typed.strip())
        self._pattern = _pattern(self.kind, self.recipient)

    def is_named_by(self, value: str) -> bool:
        """Whether a recipient, as an item has it, is this one. What cannot be read as a recipient at all
        names whom it mentions."""
        if self.kind == "device":
            # The suppression list has the token behind the name of its application.
            return value == self.recipient or value.endswith(f"#{self.recipient}")
        try:
            read = bare(value) if self.kind == "mail" else self._number(value)
        except ValueError:
            return self.is_in(value)
        return read == self.recipient

    def is_kept_as(self, name: str) -> bool:
        """Whether a name that was stored for one recipient is this one's: the same, and the one of before."""
        return name in spellings(self.recipient) or self.is_named_by(name)

    def is_in(self, text: str) -> bool:
        """Whether a text mentions them."""
        return self._pattern.search(text) is not None

    def may_be_in(self, id_: str) -> bool:
        """The same of the id of one of their own messages, where anything may stand before and after."""
        return self.recipient.removeprefix("+").casefold() in id_.casefold()

    def out_of(self, text: str) -> str:
        """The text without them."""
        return self._pattern.sub(ERASED, text)

    def _number(self, value: str) -> str:
        if "@" in value:  # digits before an @ are somebody's mail address
            raise ValueError("is a mail address")
        return to_e164(value, self._region)


def _read(typed: str) -> tuple[Kind, str]:
    try:
        return "mail", bare(typed)
    except ValueError:
        pass
    try:
        if "@" not in typed:
            return "number", to_e164(typed)
    except ValueError:
        pass
    if "@" not in typed and _DEVICE.fullmatch(typed) and not typed.lstrip("+").isdigit():
        return "device", typed
    raise Refused(
        f"{typed!r:.80} is no mail address, no number such as +16175551234, no device's token and no "
        "endpoint's ARN"
    )


def _pattern(kind: Kind, recipient: str) -> re.Pattern[str]:
    """Finds them in a text, and nobody whose address merely ends or begins so."""
    if kind == "mail":
        local, _, domain = recipient.rpartition("@")
        names = {re.escape(each) for each in (domain, readable(domain))}
        text = rf"(?<![\w.+-]){re.escape(local)}(?:@|%40)(?:{'|'.join(sorted(names))})(?![\w-]|\.\w)"
        return re.compile(text, re.IGNORECASE)
    if kind == "number":
        digits = _BETWEEN.join(recipient.removeprefix("+"))
        return re.compile(rf"(?<!\d)\+?{digits}(?!\d)")
    return re.compile(rf"(?<![\w-]){re.escape(recipient)}(?![\w-])")
