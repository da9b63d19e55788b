"""Faxes by SignalWire."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="SignalWire",
    channel="fax",
    client="mailroom.providers.signalwire.sender:SignalWire",
)
