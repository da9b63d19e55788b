"""What the demo's machines want to hear: callbacks about some mails and all faxes, and webhooks in their own
right."""

from collections.abc import Mapping, Sequence
from typing import Any

from local.demo.callbacks import CALLBACKS, MESSAGES
from local.demo.cast import Item, Message
from local.demo.fax_cast import Fax, Told

TOLD = 5
"""So many mails have a callback_url, beside the first that fails."""
PAYLOADS: Mapping[str, Any] = {
    "webhook-map": {"order": 7, "lines": [{"sku": "a-1", "paid": True}], "note": None},
    "webhook-list": ["a", 1, {"b": "c"}],
    "webhook-umlauts": {"name": "Zoë Müller", "emoji": "📠"},
    "webhook-told-twice": {"answer": "503 first"},
}
SENT: Told = ("sent", "Mail sent successfully")
FAILED: Told = ("failed", "Failed to send mail: ")


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


def curious(messages: Sequence[Message], providers: str) -> list[Message]:
    """The mails, of which the first few and the first that fails have a callback_url."""
    ids = {message.key for message in [*messages[:TOLD], *_failing(messages)[:1]]}
    return [_with_url(each, providers) if each.key in ids else each for each in messages]


def expected(messages: Sequence[Message], faxes: Sequence[Fax], max_attempts: int) -> dict[str, list[Told]]:
    """The callbacks that must come, by the message's id."""
    told = {fax.id: fax.told(max_attempts) for fax in faxes}
    for message in messages:
        if "callback_url" in message.item:
            told[message.key[0]] = [FAILED if message.reason else SENT]
    return told


def _failing(messages: Sequence[Message]) -> list[Message]:
    return [message for message in messages if message.reason]


def _with_url(message: Message, providers: str) -> Message:
    url = f"{providers}/receiver/ok/{CALLBACKS}/{message.key[0]}"
    return Message({**message.item, "callback_url": url}, message.reason)
