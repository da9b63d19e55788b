"""Faxes by SignalWire."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="SignalWire",
    channel="fax",
    client="mailroom.providers.signalwire.sender:SignalWire",
    url="https://{space}.signalwire.com",
    credentials='{"project", "token"}',
    one_of=("space", "base_url"),
    needed="the space of {space}.signalwire.com",
    unpriced="it differs by country, provider and contract",
)
