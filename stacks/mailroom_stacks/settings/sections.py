"""What sections of the settings are made of: the parts that queues and functions have in common, and
the kinds of values that several sections have."""

from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from mailroom.errors import Invalid
from mailroom.message.window import Window

EventType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,15}$")]
DatabaseName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
PROVIDERS_AT_SYNTH = "providers"
"""A base URL that is known only when the app runs: `-c providers=URL`."""
API_SECONDS = 29
"""API Gateway gives a function 30 s."""
# Credentials go there: plain HTTP is for simulators, whose address only the app's context has.
ORIGIN = r"https://[A-Za-z0-9.-]+(:[0-9]+)?"
BASE_URL = rf"^({ORIGIN}(/[A-Za-z0-9._~-]+)*|{PROVIDERS_AT_SYNTH})$"


def hours(window: dict[str, str]) -> dict[str, str]:
    """The hours in which messages may go out. Their zone may be that of each message."""
    try:
        msgspec.convert(window, Window).check("UTC" if "zone" not in window else None)
    except msgspec.ValidationError as fault:
        raise ValueError(f"is no window ({fault}); use from, to, days and zone") from None
    except Invalid as fault:
        raise ValueError(f"has a wrong {fault.field.removeprefix('window.')}: {fault.problem}") from None
    return window


class Section(BaseModel):
    """Frozen and strict: a misspelt key or a number in quotes stops synth instead of being guessed at."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


FIXED: dict[str, Any] = {"fixed": True}
"""Marks what is no setting."""


def fixed(value: object) -> Any:
    """A value that no deployer turns, where it is needed and beside its reason. `load` refuses it in
    cdk.json: only the profile of the stage on this machine has others."""
    return Field(default=value, json_schema_extra=FIXED)


class HttpProvider(Section):
    """A provider that is called by HTTP."""

    base_url: str | None = Field(default=None, pattern=BASE_URL)
    """The address of the provider's API where it is not the usual one: https, without a slash at its end; or
    providers, whose address the app gets by -c providers=URL."""


class Function(Section):
    """What an invocation may use."""

    timeout_seconds: int = fixed(60)
    memory_mb: int = fixed(256)


class Polling(Section):
    """How Lambda reads a queue. It takes 10 at once, and more only where it may wait for them."""

    batch_size: int = fixed(10)
    batch_window_seconds: int = fixed(0)
    maximum_concurrency: int = fixed(2)


class Redelivery(Function):
    """A function, and how often its queue delivers again before the dead-letter queue; `maxReceiveCount` is
    derived from it."""

    longest_throttling_seconds: int = fixed(3_600)
    """The longest time a provider may refuse without a message being dead-lettered for it."""
    crash_allowance: int = fixed(5)
    """Receives beside those, for functions that die and workers that meet another's lease."""


class QueueWorker(Redelivery, Polling):
    """A queue and the one function that reads it."""


class FailurePolicy(Section):
    """What a sender does around a submit, and after one that did not end well."""

    record_seconds: int = fixed(5)
    """What is kept back after a submit, so that its outcome can still be recorded."""
    on_unknown: Literal["resend", "hold"] = "resend"
    """What follows a crash without evidence: send again (at least once) or fail as unknown (at most once)."""
    resend_delays_seconds: tuple[int, ...] = fixed((0, 1_800, 7_200))
    """`resend` sends again so often, each time when the lease is over and so long after the try before; then
    the message becomes a dead letter. A wait is a visibility time-out, of which SQS allows 12 hours."""
    misconfigured_seconds: int = fixed(10)
    """The wait after a fault of ours: short, so that the dead-letter queue's alarm comes soon."""


class Backoff(Section):
    """How long a record waits that the provider would not take."""

    backoff_seconds: int = fixed(5)
    """The wait after the first throttled receive; it doubles from there."""
    backoff_cap_seconds: int = fixed(900)
    """The longest wait between two receives."""
