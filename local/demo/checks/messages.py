"""What became of the SMS or the pushes against what should have: pure, so that it can be tested."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from local.demo.checks.accepted import Entry
from local.demo.scenarios.mails import Message

Ledger = Mapping[tuple[str, str], Mapping[str, Any]]


@dataclass(frozen=True)
class ChannelVerdict:
    """`accepted` counts messages that the provider accepted. `sent_twice` counts those that it accepted more
    than once, and `lost` those that ended nowhere: both must be 0."""

    messages: int
    accepted: int
    rejected: int
    suppressed: int
    sent_twice: int
    lost: int
    segments: int = 0
    reasons: list[dict[str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def judge_channel(
    messages: Sequence[Message], accepted: Mapping[str, Sequence[Entry]], ledger: Ledger
) -> ChannelVerdict:
    """Compare; `accepted` is what the provider has, by the message's id."""
    rows = {message.key: ledger.get(message.key, {}) for message in messages}
    own = {message.item["id"]: accepted.get(message.item["id"], ()) for message in messages}
    failed = [message for message in messages if rows[message.key].get("status") == "failed"]
    return ChannelVerdict(
        messages=len(messages),
        accepted=sum(1 for each in own.values() if each),
        rejected=len(failed),
        suppressed=sum(row.get("status") == "suppressed" for row in rows.values()),
        sent_twice=sum(len(each) > 1 for each in own.values()),
        lost=sum("completedAt" not in row for row in rows.values()),
        segments=sum(int(row.get("segments", 0)) for row in rows.values()),
        reasons=[{"id": message.item["id"], **_error(rows[message.key])} for message in failed],
        failures=[
            fault
            for message in messages
            for fault in faults(message, rows[message.key], own[message.item["id"]])
        ],
    )


def faults(message: Message, row: Mapping[str, Any], accepted: Sequence[Entry]) -> list[str]:
    """What is wrong with a message, in sentences; the first tells the most."""
    id_ = message.item["id"]
    found = []
    if "completedAt" not in row:
        found.append(f"{id_} is lost: {described(row)}.")
    elif row["status"] != message.status:
        found.append(f"{id_} should be {message.status}; the ledger says {described(row)}.")
    found += told_wrong(message, row) if row else []
    if len(accepted) != message.accepted:
        found.append(f"{id_} was accepted {len(accepted)} times instead of {message.accepted}.")
    ids = {each["provider_id"] for each in accepted}
    if row and accepted and row.get("provider_id") not in ids:
        found.append(f"{id_}: the provider does not know {row.get('provider_id')!r}, the ledger's id of it.")
    return found


def told_wrong(message: Message, row: Mapping[str, Any]) -> list[str]:
    """What the ledger item says otherwise than it must: its reason, its facts, its recipients' outcomes."""
    id_, found = message.item["id"], []
    said = _error(row)["message"]
    if message.reason not in said:
        found.append(f"{id_}: the reason {said!r} does not name {message.reason!r}.")
    for name, value in message.facts.items():
        if row.get(name) != value:
            found.append(f"{id_}: {name} should be {value!r}; the ledger says {row.get(name)!r}.")
    outcomes = {who: entry.get("status") for who, entry in row.get("recipients", {}).items()}
    if message.recipients and outcomes != message.recipients:
        found.append(
            f"{id_}: its recipients should be {dict(message.recipients)}; the ledger says {outcomes}."
        )
    return found


def described(row: Mapping[str, Any]) -> str:
    """Where a ledger item stands."""
    return f"{row.get('status')}, {row.get('error', 'no error')}" if row else "not in the ledger"


def _error(row: Mapping[str, Any]) -> dict[str, str]:
    error = row.get("error") or {}
    return {"code": str(error.get("code", "")), "message": str(error.get("message", ""))}
