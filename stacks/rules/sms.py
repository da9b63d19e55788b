"""Rules of the SMS channel."""

import re
from collections.abc import Iterator

from stacks.settings import Api, Channel, Sms
from stacks.settings.sms import NUMBER

TWILIOS = ("messaging_service_sid", "base_url")
AWSS = ("configuration_set",)


def broken_sms(sms: Sms, api: Api, row: Channel | None) -> Iterator[str]:
    """Rules of the section `sms`, whose row of `channels` is `row`."""
    if sms.provider == "twilio":
        yield from _twilio(sms)
        if row is not None:
            yield from _callbacks(api, row)
    else:
        yield from _aws(sms)


def _twilio(sms: Sms) -> Iterator[str]:
    yield from _not_for(sms, AWSS)
    if (sms.messaging_service_sid is None) == (sms.sender is None):
        yield (
            "sms.sender: twilio needs either sender or messaging_service_sid, and one of them alone; "
            "use a number of yours in E.164, such as +12025550123."
        )
    elif sms.sender is not None and not re.fullmatch(NUMBER, sms.sender):
        yield (
            f"sms.sender: {sms.sender!r} is no number in E.164, and provider is twilio; write it like "
            "+12025550123."
        )


def _aws(sms: Sms) -> Iterator[str]:
    yield from _not_for(sms, TWILIOS)
    if sms.sender is None:
        yield (
            "sms.sender: is missing; aws needs a number in E.164, a sender id, or the id or ARN of a number "
            "or pool."
        )


def _not_for(sms: Sms, others: tuple[str, ...]) -> Iterator[str]:
    """What one provider has no use for would be there in vain."""
    other = "aws" if sms.provider == "twilio" else "twilio"
    for name in others:
        if getattr(sms, name) is not None:
            yield f"sms.{name}: is {other}'s, and provider is {sms.provider}; remove it."


CALLBACKS = 5
"""Status callbacks for one message: accepted, queued, sending, sent, delivered."""


def _callbacks(api: Api, row: Channel) -> Iterator[str]:
    """Twilio does not repeat a callback that was answered 429."""
    coming = CALLBACKS * row.messages_per_second
    if api.requests_per_second < coming:
        yield (
            f"api.requests_per_second: {api.requests_per_second} would turn away status callbacks, and "
            f"Twilio does not repeat what was answered 429; use {-int(-coming // 1)} or more ({CALLBACKS} x "
            f"channels.sms.messages_per_second {row.messages_per_second:g})."
        )
