"""The descriptor of a channel, `CHANNEL` of its package: the one place for whatever differs by channel."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.message.message import Message


class Estimate(Struct, frozen=True, kw_only=True):
    """Time and money that one message takes, for `plan` and `cost`."""

    latency: float = 0.1
    """Seconds in a sender with a whole vCPU: the provider's response and the ledger's writes."""
    computing: float = 0.005
    """Seconds of `latency` that use the vCPU, as the bench measures them for a mail (`cpu_ms_a_mail`)."""
    provider: str = ""
    """Name of the provider that `price` is for; empty if prices differ or are unknown."""
    price: float = 0.0
    """The provider's price, in US dollars."""
    unpriced: str = "its price is not known here"
    """Reason why the provider's price is left out; empty if `price` covers it or the provider is free."""
    ledger_units: float = 2.0
    """Write units of the ledger: the claim and the completion."""
    suppressible: bool = False
    """Whether the sender looks up recipients in the suppression list."""
    events: int = 0
    """Number of events that the provider sends."""
    events_apart: bool = False
    """Whether the events come too far apart to be written together."""
    events_by_twilio: bool = False
    """Whether the events are calls of the API by Twilio, if the stage has Twilio."""
    callbacks: int = 1
    """Number of callbacks to the message's `callback_url` if all goes well."""
    indexed: bool = False
    """Whether the message has an entry in the ledger's index of numbers."""
    stores_pdf: bool = False
    """Whether the message's PDF is stored in the payload bucket."""
    note: str = ""
    """Sentence about costs or delays that a plan cannot compute."""


class Channel(Struct, frozen=True, kw_only=True):
    """A channel, as code that works with every channel reads it.

    Parts that only operators' tools and the local stage need are named as `module:attribute`, so that the
    functions' bundles leave them out.
    """

    contract: type[Message]
    choices: list[dict[str, Any]] = []
    """Rules of the contract that its types cannot express, as JSON Schema: one attribute or another."""
    delayable: bool = True
    """Whether the channel's queue can delay a message; a FIFO queue cannot."""
    message: str = ""
    """Everyday word for one message, such as text; empty for the channel's name."""
    messages: str
    """Everyday word for several messages, such as Texts."""
    example: Mapping[str, str] = {}
    """Values that the local stage's form begins with, by attribute."""
    rendered: bool = False
    """Whether templates can make the content."""
    providers: Mapping[str, str] = {}
    """Display names of the channel's providers, by their names in the ledger."""
    sent: str = "{provider} accepted it."
    """Meaning of the status `sent` while the provider has reported no later one."""
    personal: bool = False
    """Whether recipients are addresses, numbers or devices. An erasure of a person by one of them covers all
    personal channels together; in other channels it goes by channel and `addressing` of the contract."""
    estimate: Estimate = Estimate()
    checks: Mapping[str, str] | None = None
    """Checks that `doctor` makes, by name. None: only whether the secrets of the senders can be read."""
    simulator: str = ""
    """Class of the provider's simulator, which is made with the inbox; `SECRET` in its module has the
    credentials that it accepts. The simulators of Mailroom's own channels share more: see
    mailroom_local/providers."""
