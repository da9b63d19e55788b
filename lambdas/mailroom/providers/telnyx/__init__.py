"""Faxes by Telnyx."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="Telnyx",
    channel="fax",
    client="mailroom.providers.telnyx.sender:Telnyx",
)
