"""What the commands about recipients answer, as JSON has it. Times are ISO 8601 in UTC."""

from typing import Literal

from msgspec import Struct

from mailroom.clock import iso
from mailroom.recipients.choices import OptOut, Reason, Suppression

Ses = Literal["lifted", "not_listed", "failed", "not_asked"]
"""What became of an address on SES's own list; no other channel has one there."""


class Suppressed(Struct, frozen=True):
    """Why a recipient gets nothing more on a channel, and since when; `message_id` is the message whose event
    told it ("": none), `detail` is for people."""

    recipient: str
    channel: str
    reason: Reason
    since: str
    detail: str
    message_id: str


class SuppressionsAnswer(Struct, frozen=True):
    """The answer of `suppressions list`, the newest first, and of `suppressions show`."""

    stage: str
    suppressions: list[Suppressed]


class Lifted(Struct, frozen=True):
    """The answer of `suppressions lift`: what was taken off a channel's list, as it stood there."""

    stage: str
    channel: str
    lifted: list[Suppressed]
    ses: Ses


class OptedOut(Struct, frozen=True):
    """A recipient wants nothing more of a topic; `by` is how that was said."""

    recipient: str
    topic: str
    since: str
    by: Literal["one_click", "page", "operator"]


class PreferencesAnswer(Struct, frozen=True):
    """The answer of `preferences`: what the recipient has opted out of now; of `opt-in`, what it had."""

    stage: str
    opt_outs: list[OptedOut]


def suppressed(found: Suppression) -> Suppressed:
    """An entry of the list in the form of the answer."""
    since = iso(found.at / 1000)
    return Suppressed(found.recipient, found.channel, found.reason, since, found.detail, found.message_id)


def opted_out(found: OptOut) -> OptedOut:
    """A choice in the form of the answer."""
    by: Literal["one_click", "page", "operator"] = "one_click" if found.by == "one-click" else found.by
    return OptedOut(found.recipient, found.topic, iso(found.opted_out_at / 1000), by)
