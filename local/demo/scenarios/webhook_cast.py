"""What the demo's machines want to hear: callbacks about some mails and all faxes, and webhooks in their own
right."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from local.demo.checks.callbacks import CALLBACKS, MESSAGES
from local.demo.scenarios.faxes import Fax, Told
from local.demo.scenarios.mails import Item, Message

TOLD = 5
"""So many messages of each kind have a callback_url, beside the first that fails."""
PAYLOADS: Mapping[str, Any] = {
    "webhook-map": {"order": 7, "lines": [{"sku": "a-1", "paid": True}], "note": None},
    "webhook-list": ["a", 1, {"b": "c"}],
    "webhook-umlauts": {"name": "Zoë Müller", "emoji": "📠"},
    "webhook-told-twice": {"answer": "503 first"},
}
TITLES = {"mail": "Mail", "sms": "SMS", "push": "Push"}
SENTENCES = {
    "sent": "{title} sent successfully",
    "delivered": "{title} delivered",
    "bounced": "{title} bounced",
    "undelivered": "{title} could not be delivered",
    "failed": "Failed to send {channel}: ",
}


def webhooks(providers: str) -> list[Item]:
    """Mailbox items, one for each payload; the last one's endpoint fails at first."""
    return [
        {
            "id": id_,
            "event_type": "webhook",
            "url": f"{providers}/receiver/{'flaky/1' if 'twice' in id_ else 'ok'}/{MESSAGES}/{id_}",
            "payload": payload,
        }
        for id_, payload in PAYLOADS.items()
    ]


def curious(messages: Sequence[Message], providers: str, first: int = TOLD) -> list[Message]:
    """The messages, of which the first few and the first that fails have a callback_url."""
    ids = {message.key for message in [*messages[:first], *_failing(messages)[:1]]}
    return [_with_url(each, providers) if each.key in ids else each for each in messages]


def expected(messages: Sequence[Message], faxes: Sequence[Fax], max_attempts: int) -> dict[str, list[Told]]:
    """The callbacks that must come, by the message's id."""
    told = {fax.id: fax.told(max_attempts) for fax in faxes}
    for message in messages:
        if "callback_url" in message.item:
            told[message.key[0]] = _told(message)
    return told


def _told(message: Message) -> list[Told]:
    """That it was sent, and how it ended."""
    channel = message.key[1]
    statuses = [message.status] if message.reason or message.status == "sent" else ["sent", message.status]
    return [(status, SENTENCES[status].format(title=TITLES[channel], channel=channel)) for status in statuses]


def _failing(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message.reason]


def _with_url(message: Message, providers: str) -> Message:
    url = f"{providers}/receiver/ok/{CALLBACKS}/{message.key[0]}"
    return replace(message, item={**message.item, "callback_url": url})
