"""Whom an event is about, in the one form that the suppression list knows."""

from collections.abc import Iterable

from mailroom.message import address
from mailroom.message.address import to_e164
from mailroom.telemetry import logger


def mailbox(text: str) -> str | None:
    """A mail address bare and in lower case, its domain in ASCII; None: it cannot be read."""
    try:
        return address.bare(text)
    except ValueError:
        return None


def number(text: str | None, region: str) -> tuple[str, ...]:
    """The number of an SMS in E.164; () where none can be read, as of a number that the provider hides."""
    if not text:
        return ()
    try:
        return (to_e164(text, region or None),)
    except ValueError:
        logger.warning("the recipient of an event cannot be read")
        return ()


class Destination:
    """Whom a mail went to; `several`: not to one mailbox alone.

    A bounce names whom the last server on the way tried, the Final-Recipient of RFC 3464: after a forwarding
    that is somebody to whom the mail was never sent. So nobody but the mail's own recipients is believed to
    be meant. Of a mail to one mailbox every event is about that one. Where the mail's recipients are not told
    at all, the event is taken at its word.
    """

    def __init__(self, destination: Iterable[str]) -> None:
        read = {each: mailbox(each) for each in destination}
        self.known = tuple(dict.fromkeys(each for each in read.values() if each is not None))
        self.several = len({form or text for text, form in read.items()}) > 1
        self._told = bool(read)

    def among(self, named: Iterable[str]) -> tuple[str, ...]:
        """The mail's recipients among `named`, each once."""
        if self._told and not self.several:
            return self.known
        read = {each: mailbox(each) for each in named}
        meant = {each: form for each, form in read.items() if form and (form in self.known or not self._told)}
        if len(meant) < len(read):
            logger.warning("recipients of an event left out", recipients=len(read) - len(meant))
        return tuple(dict.fromkeys(meant.values()))
