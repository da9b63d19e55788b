"""Table of all providers, for code that needs more than one of them."""

from collections.abc import Mapping

from msgspec import structs

from mailroom.channels.channel import Channel, Provider
from mailroom.channels.contracts import CHANNELS
from mailroom.providers import built_in


def with_own(channels: Mapping[str, Channel]) -> dict[str, Provider]:
    """Return the descriptors of the providers of Mailroom and of own channels, by name. A provider of
    Mailroom keeps its name if an own channel uses the name too. Raises TypeError, which names the channel, if
    a channel's provider is not a Provider."""
    providers = built_in()
    for channel, descriptor in channels.items():
        for name, row in descriptor.providers.items():
            if not isinstance(row, Provider):
                raise TypeError(f"channel {channel}: providers[{name!r}] must be a Provider, with a title")
            providers.setdefault(name, structs.replace(row, channel=channel))
    return providers


PROVIDERS = with_own(CHANNELS)
"""Descriptors of all providers by name, including those of the deployer's own channels."""
