"""Which contract an `event_type` has. A new channel is a row here."""

from mailroom.channels.fax import Fax
from mailroom.channels.mail import Mail
from mailroom.channels.webhook import Webhook
from mailroom.message import Message

CONTRACTS: dict[str, type[Message]] = {"mail": Mail, "fax": Fax, "webhook": Webhook}
