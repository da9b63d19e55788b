"""The channels that are a row each, and what mail needs beside its row."""

import re
from email.utils import parseaddr
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from stacks.settings.sections import Backoff, Function, Patience, Polling, Redelivery, Section

LaneName = Literal["normal", "bulk"]

_ADDRESS = re.compile(r"[\w!#$%&'*+/=?^`{|}~.-]+@([A-Za-z0-9-]+\.)+[A-Za-z0-9-]+", re.ASCII)


def _address(sender: str) -> str:
    """A sender is `a@b.c` or `Name <a@b.c>`."""
    # What the function that sends refuses would dead-letter every mail.
    if not _ADDRESS.fullmatch(parseaddr(sender)[1]):
        raise ValueError("is no mail address; write 'name@example.com' or 'Name <name@example.com>'")
    return sender


class Lane(Polling):
    """One of a channel's queues, with its part of the channel's rate."""

    share: float = Field(ge=0.01, le=1)
    """The part of `messages_per_second` that this lane gets."""


class Channel(Function, Redelivery, Patience, Backoff):
    """A row: everything that makes a queue, dead-letter queue and sender for each lane of an event type."""

    handler: str = Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")
    """The file in lambdas/, without its ending, whose `handler` runs."""
    lanes: dict[LaneName, Lane] = Field(min_length=1)
    """normal, and bulk where a campaign must not delay the rest."""
    messages_per_second: float = Field(default=1, ge=0.1, le=100_000)
    """What the provider allows, over all lanes."""
    submit_seconds: int = Field(default=10, ge=1, le=300)
    """The longest that one submit may take, HTTP time-outs included."""


class Mail(Section):
    """What the mail channel needs beside its row."""

    senders: tuple[Annotated[str, AfterValidator(_address)], ...] = Field(min_length=1)
    """The addresses that a message's `from` may name; the first is the default."""
    configuration_set: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,64}$")
    """The name of the SES configuration set; mailroom-{stage} by default."""
    max_attachment_bytes: int = Field(default=7_000_000, ge=1, le=28_000_000)
    """All attachments of a mail; SES takes 40 MB with base64's third on top, and throttles above 10 MB."""
