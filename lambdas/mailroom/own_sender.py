"""Names that the adapter and the function of your own channel may import."""

from mailroom.delivery.adapter import ProviderAdapter, ProviderClient, WithoutLookUp, credentials
from mailroom.delivery.delivery import Adapter, Delivery, Session, to_people
from mailroom.delivery.worker import Worker
from mailroom.environment import Sender, SuppressingSender
from mailroom.environment import read as read_settings
from mailroom.errors import ConnectError, InvalidRequest, OutcomeUnknown
from mailroom.http.https import Answer
from mailroom.http.provider_api import ProviderApi, refusal
from mailroom.message.outcome import (
    Conflict,
    DayUsedUp,
    Evidence,
    Misconfigured,
    NotFound,
    NotReady,
    Outcome,
    Rejected,
    Repeatable,
    Retry,
    Sent,
    Unknowable,
)
from mailroom.telemetry import instrumented, redact

__all__ = ["Adapter", "Answer", "Conflict", "ConnectError", "DayUsedUp", "Delivery", "Evidence"]
__all__ += ["InvalidRequest", "Misconfigured", "NotFound", "NotReady", "Outcome", "OutcomeUnknown"]
__all__ += ["ProviderAdapter", "ProviderApi", "ProviderClient", "Rejected", "Repeatable", "Retry", "Sender"]
__all__ += ["Sent", "Session", "SuppressingSender", "Unknowable", "WithoutLookUp", "Worker"]
__all__ += ["credentials", "instrumented", "read_settings", "redact", "refusal", "to_people"]
