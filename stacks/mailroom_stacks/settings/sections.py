"""Base classes and types of values that several sections of the settings share."""

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from mailroom.errors import Invalid
from mailroom.message.window import Window
from mailroom.providers import provider, providers_of

EventType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,15}$")]
DatabaseName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
PROVIDERS_AT_SYNTH = "providers"
"""Placeholder of a base URL that is only set when the app runs, by `-c providers=URL`."""
MEMORY_MB = 256
"""Default memory of a function, in MiB."""
OnUnknown = Literal["resend", "hold"]
"""Actions after a crash that leaves no evidence of whether a message was sent."""
# Credentials are sent to these URLs, so plain HTTP is allowed only for servers on this machine, in a local
# stage.
ORIGIN = r"https://[A-Za-z0-9.-]+(:[0-9]+)?"
LOOPBACK = r"http://127\.0\.0\.1:[0-9]+"
BASE_URL = rf"^(({ORIGIN}|{LOOPBACK})(/[A-Za-z0-9._~-]+)*|{PROVIDERS_AT_SYNTH})$"


if TYPE_CHECKING:
    MailProvider = str
    SmsProvider = str
    FaxProvider = str
else:
    MailProvider, SmsProvider, FaxProvider = (
        Literal[tuple(providers_of(channel))] for channel in ("mail", "sms", "fax")
    )


def hours(window: dict[str, str]) -> dict[str, str]:
    """Validate a window of hours in which messages may be sent, and return it. The window may leave out the
    zone, which may then depend on the message."""
    try:
        msgspec.convert(window, Window).check("UTC" if "zone" not in window else None)
    except msgspec.ValidationError as fault:
        raise ValueError(f"is not a window ({fault}); use from, to, days and zone") from None
    except Invalid as fault:
        raise ValueError(f"is not valid: {fault.field.removeprefix('window.')} {fault.problem}") from None
    return window


class Section(BaseModel):
    """Base class of sections, frozen and strict: a misspelt key or a number in quotes is an error at
    synth."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


def provider_fault(key: str, section: Section, name: str) -> str:
    """Return a sentence if a section does not have exactly one of the settings of which its provider needs
    one, or an empty text. `key` is the setting that the sentence names."""
    descriptor = provider(name)
    settings = [setting for setting in descriptor.one_of if getattr(section, setting) is not None]
    if len(settings) == 1 or not descriptor.one_of:
        return ""
    if len(descriptor.one_of) == 1:
        return f"{key}: is missing; {name} needs {descriptor.needed}."
    return f"{key}: {name} needs exactly one of {' and '.join(descriptor.one_of)}; use {descriptor.needed}."


class HttpProvider(Section):
    """Base class of the sections of a provider with an HTTP API."""

    base_url: str | None = Field(default=None, pattern=BASE_URL)
    """URL of the provider's API if it is not the default URL: https, without a slash at the end. For a local
    stage also http://127.0.0.1:PORT, or the word providers: the URL of the option -c providers=URL, followed
    by the name of the provider or channel."""
