"""Providers, to which the channels' messages are submitted. Each has a package with a descriptor `PROVIDER`,
its sender, events and tables of refusals; no provider imports the package of another one."""

from importlib import import_module

from mailroom.channels.channel import Provider

MODULES = {
    "ses": "mailroom.providers.ses",
    "resend": "mailroom.providers.resend",
    "twilio": "mailroom.providers.twilio",
    "aws": "mailroom.providers.aws_sms",
    "sns": "mailroom.providers.sns",
    "signalwire": "mailroom.providers.signalwire",
    "telnyx": "mailroom.providers.telnyx",
    "webhook": "mailroom.providers.webhooks",
}
"""Packages of the built-in providers, by the names that settings and the ledger use."""


def provider(name: str) -> Provider:
    """Return the descriptor of a provider of Mailroom. It imports the package of this provider only."""
    descriptor: Provider = import_module(MODULES[name]).PROVIDER
    return descriptor


def built_in() -> dict[str, Provider]:
    """Return the descriptors of all providers of Mailroom, by name."""
    return {name: provider(name) for name in MODULES}


def providers_of(channel: str) -> dict[str, Provider]:
    """Return the descriptors of a built-in channel's providers, by name."""
    return {name: row for name, row in built_in().items() if row.channel == channel}


def client_modules(channel: str) -> list[str]:
    """Return the modules that the sender of a channel imports by name, which depends on its provider."""
    rows = {name: row for name, row in providers_of(channel).items() if row.client}
    return [*(MODULES[name] for name in rows), *(row.client.partition(":")[0] for row in rows.values())]


def reader_modules() -> list[str]:
    """Return the modules with the readers of all providers' events, and with the descriptors that name
    them."""
    names = [name for row in built_in().values() for name in (*row.events.values(), row.topic_events)]
    return [*MODULES.values(), *dict.fromkeys(name.partition(":")[0] for name in names if name)]
