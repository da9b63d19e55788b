"""Which contract an `event_type` has. A new channel is a row here."""

from mailroom.channels.fax.contract import Fax
from mailroom.channels.mail.contract import Mail
from mailroom.channels.push.contract import Push
from mailroom.channels.sms.contract import Sms, sms_in
from mailroom.channels.webhook.contract import Webhook
from mailroom.message.message import Message

CONTRACTS: dict[str, type[Message]] = {
    "mail": Mail,
    "sms": Sms,
    "push": Push,
    "fax": Fax,
    "webhook": Webhook,
}


def contracts_of(default_region: str) -> dict[str, type[Message]]:
    """The same for a stage: the text messages' numbers may lack a country, which is then `default_region`
    (ISO 3166, such as US); "": none may."""
    return {**CONTRACTS, "sms": sms_in(default_region)}
