"""Settings that restrict the recipients of a stage, and their rules."""

import re
from collections.abc import Collection, Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from mailroom_stacks.settings.channels import ADDRESS
from mailroom_stacks.settings.sections import EventType, Section
from mailroom_stacks.settings.sms import NUMBER

_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]*[a-z0-9]")
_PREFIX = re.compile(r"\+[1-9][0-9]{3,14}")
_OF_CHANNEL = re.compile(r"([a-z][a-z0-9]{0,15}):[!-~]{1,1024}")


def _recipient(text: str) -> str:
    """Validate an entry of `only`, and return it in the form in which it is compared with recipients of
    messages."""
    if _PREFIX.fullmatch(text) or _OF_CHANNEL.fullmatch(text):
        return text
    lower = text.lower()  # addresses in the suppression list are in lower case
    if ADDRESS.fullmatch(lower) or _DOMAIN.fullmatch(lower):
        return lower
    raise ValueError(
        "is not a recipient; use an address (ada@example.com), a domain (example.com; letters beyond ASCII "
        "as xn--), a number prefix (+1202555; four digits or more), or CHANNEL:RECIPIENT (push:arn:aws:sns:…)"
    )


class Recipients(Section):
    """Recipients to whom the stage may send, on all channels except webhook."""

    only: tuple[Annotated[str, AfterValidator(_recipient)], ...] = ()
    """Allowed recipients: mail addresses, domains, prefixes of numbers, and other recipients as
    CHANNEL:RECIPIENT."""
    redirect_to: dict[EventType, str] = Field(default_factory=dict)
    """Recipient, by channel, who gets the messages to all other recipients instead. Without an entry, such
    messages are suppressed."""


def recipients_faults(recipients: Recipients, rows: Collection[str]) -> Iterator[str]:
    """Yield violations of the rules of the section `recipients`. `rows` are the names in the section
    `channels`."""
    for index, entry in enumerate(recipients.only):
        channel = _OF_CHANNEL.fullmatch(entry)
        if channel and channel[1] in {*_TARGETS, "fax"}:
            yield (
                f"recipients.only.{index}: {entry!r:.120} names a channel; write the address or number alone."
            )
    for name, target in recipients.redirect_to.items():
        yield from _redirect(f"recipients.redirect_to.{name}", name, target, rows)


def _redirect(key: str, name: str, target: str, rows: Collection[str]) -> Iterator[str]:
    if name not in rows:
        # Redirected faxes would stay in the message groups of their own numbers, so several of them could
        # call the same line at a time.
        yield f"{key}: cannot be redirected; use {', '.join(rows)}."
    else:
        form, example = _TARGETS.get(name, _ANY)
        if not form.fullmatch(target):
            yield f"{key}: {target!r:.120} cannot get the channel's messages; use {example}."


_TARGETS = {
    "mail": (
        re.compile(rf"(?!.*[A-Z])(?=.{{1,254}}$){ADDRESS.pattern}", re.ASCII),
        "one address without a name, in lower case, such as testers@example.com",
    ),
    "sms": (re.compile(NUMBER), "one number in E.164, such as +12025550123"),
}
_ANY = (re.compile(r"[!-~]{1,1024}"), "a recipient of the channel")
