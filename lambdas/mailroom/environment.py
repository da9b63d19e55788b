"""A function's settings, as its stack put them into the environment."""

import os
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

Seconds = Annotated[float, Meta(ge=0)]
T = TypeVar("T", bound=Struct)


class Common(Struct, frozen=True, kw_only=True, rename="upper"):
    """What every function that writes the ledger knows."""

    ledger_table: str
    ledger_ttl_seconds: Seconds
    payload_bucket: str


class Sender(Common, frozen=True, kw_only=True, rename="upper"):
    """A worker's own: its queue, and the numbers that the stack derived for it."""

    channel: str
    queue_url: str
    lease_seconds: Seconds
    pace_seconds: Seconds
    on_unknown: Literal["resend", "hold"]
    backoff_seconds: Seconds
    backoff_cap_seconds: Seconds
    misconfigured_seconds: Seconds
    submit_seconds: Seconds
    record_seconds: Seconds


class MailSender(Sender, frozen=True, kw_only=True, rename="upper"):
    """A mail sender's."""

    mail_senders: list[str]
    configuration_set: str
    max_attachment_bytes: int
    templates: str = "templates/mail"


class Dispatch(Common, frozen=True, kw_only=True, rename="upper"):
    """Dispatch's: the queue of each channel and lane, and where schedules go."""

    routes: dict[str, dict[str, str]]
    schedule_group: str
    schedule_role_arn: str
    schedule_target_arn: str
    schedule_dead_letter_arn: str


class DispatchScheduled(Dispatch, frozen=True, kw_only=True, rename="upper"):
    """The same, and the table that scheduled items are read back from."""

    mailbox_table: str
    queue_url: str


def read(kind: type[T]) -> T:
    """The settings of `kind` from the environment; lists and maps stand there as JSON.

    Raises msgspec.ValidationError that names the variable at fault.
    """
    values: dict[str, Any] = {}
    for each in msgspec.structs.fields(kind):
        text = os.environ.get(each.encode_name)
        if text is not None:
            values[each.encode_name] = _json(each.encode_name, text) if text.startswith(("[", "{")) else text
    return msgspec.convert(values, kind, strict=False)


def _json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise msgspec.ValidationError(f"`{name}` is not JSON: {error}") from None
