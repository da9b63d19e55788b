"""Settings of SMS, besides those in `channels.sms`, and their rules."""

import re
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Annotated

from pydantic import AfterValidator, Field

from mailroom.channels.channel import Provider
from mailroom.providers import provider, providers_of
from mailroom_stacks.settings.api import Api, share_of_route
from mailroom_stacks.settings.channels import Channel
from mailroom_stacks.settings.sections import HttpProvider, SmsProvider, provider_fault


def _region(code: str) -> str:
    # The package is imported only here, because few stages have the setting, and synth does not need it
    # otherwise.
    from phonenumbers import SUPPORTED_REGIONS

    if code not in SUPPORTED_REGIONS:
        raise ValueError("is not a country; write its ISO 3166 code in two capitals, such as US or GB")
    return code


Region = Annotated[str, AfterValidator(_region)]

_SERVICE = "MG[0-9a-f]{32}"
NUMBER = r"\+[1-9][0-9]{6,14}"
_SENDER = "|".join(row.sender for row in providers_of("sms").values())


def _word(text: str) -> str:
    if not any(character.isalnum() for character in text):
        raise ValueError("needs a letter or a digit; case, spaces and punctuation are ignored")
    return text


Word = Annotated[str, Field(max_length=40), AfterValidator(_word)]


class Sms(HttpProvider):
    """Provider and sender of SMS, and the words by which people opt out and in."""

    provider: SmsProvider
    """Provider of SMS: Twilio, or AWS End User Messaging."""
    messaging_service_sid: str | None = Field(default=None, pattern=f"^{_SERVICE}$")
    """SID of a Messaging Service of Twilio, which chooses the sending number."""
    fallback: SmsProvider | None = None
    """Second provider, which sends the texts that the first has certainly not sent: `mailroom docs
    two-providers`. Its limits are in `channels.sms.fallback`. If both have an HTTP API, `base_url` is for the
    first one, and the second one has its default URL."""
    fallback_sender: str | None = Field(default=None, pattern=rf"^({_SENDER}|{_SERVICE})$")
    """Sender at the second provider, as in `sender`, or for twilio the SID of a Messaging Service."""
    sender: str | None = Field(default=None, pattern=rf"^({_SENDER})$")
    """Own number in E.164, such as +12025550123; for aws also a sender id, the id of a number, a pool or an
    RCS agent, or an ARN. An RCS agent sends no media, and only to phones with RCS."""
    default_region: Region | None = None
    """Country of numbers without a country code, such as US; null means that all numbers need a country
    code."""
    stop_words: tuple[Word, ...] = Field(default=(), max_length=100)
    """Further words by which people opt out of text messages, besides the standard words such as STOP."""
    start_words: tuple[Word, ...] = Field(default=(), max_length=100)
    """Further words by which people opt in again, besides START, UNSTOP and YES. A word in both lists opts
    out."""

    @property
    def url(self) -> str:
        """URL of the provider's API, without a slash at its end."""
        return self.base_url or provider(self.provider).url

    @property
    def by_provider(self) -> Mapping[str, "Sms"]:
        """Settings of each provider, the first provider first. For the fallback, `provider` and the sender
        are those of the fallback. `base_url` is for the first provider with an HTTP API."""
        sections: dict[str, Sms] = {self.provider: self}
        if self.fallback is not None:
            name, field = self.fallback_sender, "sender"
            if name is not None and re.fullmatch(_SERVICE, name):
                field = "messaging_service_sid"
            url = None if provider(self.provider).url else self.base_url
            senders = {"sender": None, "messaging_service_sid": None, field: name}
            values = {"provider": self.fallback, "base_url": url, **senders}
            sections[self.fallback] = self.model_copy(update=values)
        return sections


def sms_faults(sms: Sms, api: Api, row: Channel | None) -> Iterator[str]:
    """Yield violations of the rules of the section `sms`. `row` is the setting `channels.sms`, or None if the
    rate of its status callbacks need not be checked."""
    if sms.fallback == sms.provider:
        yield f"sms.fallback: {sms.fallback!r} is sms.provider already; use the other provider, or null."
    elif sms.fallback is not None and sms.fallback_sender is None:
        yield f"sms.fallback_sender: is missing; use {provider(sms.fallback).needed}."
    for key, section in zip(("sms.sender", "sms.fallback_sender"), sms.by_provider.values(), strict=False):
        yield from _sender_faults(key, section)
    rates = {"": row.messages_per_second, "fallback.": row.fallback.messages_per_second} if row else {}
    for (part, rate), name in zip(rates.items(), sms.by_provider, strict=False):
        yield from _callbacks(api, rate, part, provider(name))


def _sender_faults(key: str, sms: Sms) -> Iterator[str]:
    """Yield violations of the rules of a provider's sender, whose setting is `key`."""
    descriptor = provider(sms.provider)
    if violation := provider_fault(key, sms, sms.provider):
        yield violation
    elif sms.sender is not None and not re.fullmatch(descriptor.sender, sms.sender):
        yield f"{key}: {sms.sender!r} is not a sender of {sms.provider}; use {descriptor.needed}."


def _callbacks(api: Api, messages_per_second: float, section: str, descriptor: Provider) -> Iterator[str]:
    """Yield a violation if requests could be throttled that the provider does not repeat after the response
    429. `section` is the part of channels.sms with the setting `messages_per_second`: empty, or
    `fallback.`"""
    coming = descriptor.unrepeated * messages_per_second
    if api.throttles["callbacks"].rate < coming:
        share = share_of_route("callbacks")
        enough = ceil(round(ceil(coming) / share, 6))
        yield (
            f"api.requests_per_second: {api.requests_per_second} would throttle status callbacks, and "
            f"{descriptor.title} does not repeat callbacks that got 429; use {enough} or more "
            f"({descriptor.unrepeated} x "
            f"channels.sms.{section}messages_per_second {messages_per_second:g} / their share "
            f"{share:g})."
        )
