"""Faxes by Telnyx."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="Telnyx",
    channel="fax",
    client="mailroom.providers.telnyx.sender:Telnyx",
    url="https://api.telnyx.com",
    credentials='{"api_key"}',
    one_of=("connection_id",),
    needed="the id of the fax application",
    day_limit=True,
    unpriced="it differs by country, provider and contract",
)
