"""What a channel is: one descriptor, `CHANNEL` of its package. Whatever differs by channel is read there."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.message.message import Message


class Estimate(Struct, frozen=True, kw_only=True):
    """What one message takes, for `plan` and `cost`."""

    latency: float = 0.1
    """Seconds in a sender with a whole vCPU: the provider's answer and the ledger's writes."""
    computing: float = 0.005
    """Seconds of these that take the vCPU, as the bench measures them for a mail (`cpu_ms_a_mail`)."""
    provider: str = ""
    """Who sends it, where that has one price; `price` is that price in US dollars."""
    price: float = 0.0
    unpriced: str = "its price is not known here"
    """Why the provider's price is not included; "": it is, or nobody takes one."""
    ledger_units: float = 2.0
    """Write units of the ledger: the claim and the completion."""
    suppressible: bool = False
    """Whether its sender looks its recipients up in the suppression list."""
    events: int = 0
    """Events that the provider sends about it."""
    events_apart: bool = False
    """Whether these come too far apart to be written together."""
    events_by_twilio: bool = False
    """Whether Twilio, where the stage has it, sends them by calling the API."""
    callbacks: int = 1
    """Callbacks to its `callback_url` where all goes well."""
    indexed: bool = False
    """Whether the ledger's index of numbers has an entry for it."""
    stores_pdf: bool = False
    note: str = ""
    """What a plan cannot know of the channel."""


class Channel(Struct, frozen=True, kw_only=True):
    """A channel, as all who work with every channel know it. What only operators' tools and the local stage
    need is named as `module:attribute`, so that no function's bundle has it."""

    contract: type[Message]
    choices: list[dict[str, Any]] = []
    """What the contract's types cannot say, as JSON Schema: one attribute or another."""
    delayable: bool = True
    """Whether its queue can delay a message; a FIFO queue cannot."""
    message: str = ""
    """What people call one message, such as text; "": by the channel's name."""
    messages: str
    """What people call its messages, such as Texts."""
    example: Mapping[str, str] = {}
    """What its form on the local stage begins with, by attribute."""
    rendered: bool = False
    """Whether its content is made of templates."""
    providers: Mapping[str, str] = {}
    """How its providers write their names, by what the ledger calls them."""
    sent: str = "{provider} accepted it."
    """What `sent` means where nothing more is said after it."""
    personal: bool = False
    """Whether its recipients are addresses, numbers or devices, by which a person is erased from all channels
    together. Others are erased by the channel's name, and by what the contract calls `addressing`."""
    estimate: Estimate = Estimate()
    checks: Mapping[str, str] | None = None
    """What `doctor` asks about it, by name. None: whether the secrets of its senders can be read."""
    simulator: str = ""
    """The class of its provider's simulator, which takes the inbox; `SECRET` beside it is what it takes as
    credentials. The simulators of Mailroom's own channels share more: see mailroom_local/providers."""
