"""Table of all providers, for code that needs more than one of them."""

from msgspec import structs

from mailroom.channels.channel import Provider
from mailroom.channels.contracts import CHANNELS
from mailroom.providers import MODULES, provider

PROVIDERS: dict[str, Provider] = {name: provider(name) for name in MODULES}
"""Descriptors of all providers by name, including those of the deployer's own channels."""
for _channel, _descriptor in CHANNELS.items():
    for _name, _provider in _descriptor.providers.items():
        PROVIDERS[_name] = structs.replace(_provider, channel=_channel)
