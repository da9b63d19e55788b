"""Webhooks to the endpoints of applications."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="the endpoint",
    channel="webhook",
    unpriced="",
)
