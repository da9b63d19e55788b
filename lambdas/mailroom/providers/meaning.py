"""Meaning of an event for a mail and its recipients, the same for all providers of mail."""

from typing import Literal

from msgspec import Struct

from mailroom.message.outcome import Facts, Status

KINDS = {
    "Permanent": "refused for good by the receiving server",
    "Transient": "not taken in time by the receiving server",
    "Undetermined": "refused without a clear reason",
    "Suppressed": "on the provider's own suppression list",
    "abuse": "reported as spam by the recipient",
}
"""Words for the types of bounces and complaints."""


class Meaning(Struct, frozen=True):
    """Meaning of an event for the mail and its recipients."""

    status: Status | None
    """Status that the event proves; None for an event that only adds attributes to the ledger item."""
    facts: Facts = {}
    addresses: list[str] | None = None
    """Recipients that the event lists, or None if the event is about the whole mail."""
    suppress: Literal["bounce", "complaint"] | None = None
    """Reason to put the recipients on the suppression list; None to leave the list unchanged."""
    detail: str = ""


def bounced(kind: str, subtype: str, code: str, time_ms: int, addresses: list[str] | None = None) -> Meaning:
    """Return the meaning of a bounce; `code` is the last mail server's response, or "" without one.

    The type Permanent is a hard bounce. Transient means that the provider gave up on this mail, or received
    an out-of-office reply. Undetermined does not prove that an address is invalid.
    """
    soft = kind == "Transient"
    facts: Facts = {
        "undeliveredAt" if soft else "bouncedAt": time_ms,
        "bounce_type": kind,
        "bounce_subtype": subtype,
        "diagnostic_code": code,
    }
    name = {"Permanent": "hard bounce", "Transient": "soft bounce"}.get(kind, "bounce")
    detail = f"{name} ({subtype or 'no subtype'})" + (f": {code}" if code else "")
    suppress: Literal["bounce"] | None = "bounce" if kind == "Permanent" else None
    return Meaning("undelivered" if soft else "bounced", filled(facts), addresses, suppress, detail)


def filled(facts: Facts) -> Facts:
    """Return the facts without empty texts."""
    return {name: value for name, value in facts.items() if value != ""}
