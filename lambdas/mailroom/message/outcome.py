"""What an adapter may say of one submit. Any exception instead means that the outcome is unknown."""

from msgspec import Struct

Facts = dict[str, str | int]
"""Attributes of a ledger item, by their names."""


class Sent(Struct, frozen=True):
    """The provider accepted the message and calls it `provider_id`; `facts` are kept with it."""

    provider_id: str
    facts: Facts = {}


class Retry(Struct, frozen=True):
    """Proved not sent, and worth another try; `after`: the least wait, in seconds."""

    reason: str
    after: float = 0


class Rejected(Struct, frozen=True):
    """Permanent and the message's own fault: it ends as failed. `gone`: its recipient is no more, and no
    later message will reach it either."""

    reason: str
    gone: bool = False


class Misconfigured(Struct, frozen=True):
    """Proved not sent, by a fault of ours (sender, credentials, account): an alarm, not a failed message."""

    reason: str


class NotFound(Struct, frozen=True):
    """A look-up's answer: the provider never got it, so submitting it is safe."""


class Unknowable(Struct, frozen=True):
    """A look-up's answer: this provider cannot tell; the channel's `on_unknown` decides."""


Outcome = Sent | Retry | Rejected | Misconfigured
Evidence = Sent | NotFound | Unknowable
