"""What an adapter may say of one submit. Any exception instead means that the outcome is unknown."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sent:
    """The provider accepted the message and calls it `provider_id`."""

    provider_id: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Proved not sent, and worth another try; `after`: the least wait, in seconds."""

    reason: str
    after: float = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """Permanent and the message's own fault: it ends as failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """Proved not sent, by a fault of ours (sender, credentials, account): an alarm, not a failed message."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotFound:
    """A look-up's answer: the provider never got it, so submitting it is safe."""


@dataclass(frozen=True, slots=True)
class Unknowable:
    """A look-up's answer: this provider cannot tell; the channel's `on_unknown` decides."""


Outcome = Sent | Retry | Rejected | Misconfigured
Evidence = Sent | NotFound | Unknowable
