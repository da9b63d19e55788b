"""Names that the descriptor and the contract of your own channel may import. The function `dispatch` imports
them too, so this module imports no adapter."""

from mailroom.channels.channel import Channel, Estimate, Provider
from mailroom.errors import Invalid
from mailroom.message.message import Message, Reference, parse

__all__ = ["Channel", "Estimate", "Invalid", "Message", "Provider", "Reference", "parse"]
