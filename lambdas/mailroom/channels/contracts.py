"""Which contract an `event_type` has. A new channel is a row here."""

from mailroom.channels.mail import Mail
from mailroom.message import Message

CONTRACTS: dict[str, type[Message]] = {"mail": Mail}
