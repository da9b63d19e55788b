"""Check mails, SMS and pushes: the providers' inbox and the ledger against the scenarios."""

import base64
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from local.demo.client import Item, Key
from local.demo.scenarios import Scenario
from local.demo.scenarios.pushes import MARK
from mailroom.channels.contracts import CONTRACTS
from mailroom.message.outcome import Status

UNKNOWN = "something that names no message"
Ledger = Mapping[Key, Mapping[str, Any]]


@dataclass(frozen=True)
class MessageCheck:
    """`accepted` counts messages that the provider accepted, `sent_twice` those that it accepted more than
    once. `lost` counts messages that have not ended, or should have been sent and were not. The last two must
    be 0."""

    messages: int
    accepted: int
    rejected: int
    suppressed: int
    sent_twice: int
    lost: int
    segments: int = 0
    reasons: list[dict[str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def check_messages(
    scenarios: Sequence[Scenario], accepted: Mapping[str, Sequence[Item]], ledger: Ledger
) -> MessageCheck:
    """Compare; `accepted` is what the providers have, by the message's id."""
    rows = {each.id: ledger.get(each.key, {}) for each in scenarios}
    own = {each.id: accepted.get(each.id, ()) for each in scenarios}
    failed = [each.id for each in scenarios if rows[each.id].get("status") == "failed"]
    return MessageCheck(
        messages=len(scenarios),
        accepted=sum(1 for each in own.values() if each),
        rejected=len(failed),
        suppressed=sum(row.get("status") == "suppressed" for row in rows.values()),
        sent_twice=sum(len(each) > 1 for each in own.values()),
        lost=sum(_is_lost(each, rows[each.id], own[each.id]) for each in scenarios),
        segments=sum(int(row.get("segments", 0)) for row in rows.values()),
        reasons=[{"id": id_, **error_of(rows[id_])} for id_ in failed],
        failures=[fault for each in scenarios for fault in faults(each, rows[each.id], own[each.id])],
    )


def faults(scenario: Scenario, row: Mapping[str, Any], accepted: Sequence[Item]) -> list[str]:
    """What is wrong with a message, in sentences; the first says the most."""
    id_, wanted = scenario.id, 0 if scenario.reason else 1
    found = []
    if _is_lost(scenario, row, accepted):
        found.append(f"{id_} is lost: {described(row)}.")
    elif row["status"] != scenario.status:
        found.append(f"{id_} should be {scenario.status}; the ledger says {described(row)}.")
    found += _row_faults(scenario, row) if row else []
    if len(accepted) != wanted:
        found.append(f"{id_} was accepted {len(accepted)} times instead of {wanted}.")
    if scenario.key[1] == "mail":
        elsewhere = [each["to"] for each in accepted if each["to"] != scenario.address]
        found += [f"{id_} went to {to} instead of {scenario.address}." for to in elsewhere]
    if row and accepted and row.get("provider_id") not in {each["provider_id"] for each in accepted}:
        found.append(f"{id_}: the provider does not know {row.get('provider_id')!r}, the ledger's id of it.")
    return found


def unexpected(accepted: Iterable[str], known: Collection[str]) -> list[str]:
    """A sentence for each message that a provider got and no scenario has."""
    return [f"A provider got {id_}, which was not sent." for id_ in accepted if id_ not in known]


def by_message(inbox: Iterable[Item]) -> dict[str, list[Item]]:
    """The inbox's mails, SMS and pushes by the id of the message that each carries."""
    found: dict[str, list[Item]] = defaultdict(list)
    for each in inbox:
        content = each["content"]
        if each["channel"] == "mail":
            found[id_of_mail(each)].append(each)
        elif each["channel"] == "sms":
            found[_decoded(content["callback"].rpartition("/")[2])].append(each)
        elif each["channel"] == "push":
            mark = re.search(rf'"{MARK}": "([^"]+)"', json.dumps(content["payloads"]))
            found[mark[1] if mark else UNKNOWN].append(each)
    return dict(found)


def id_of_mail(mail: Item) -> str:
    """The id of the message that a mail was sent for, from its header."""
    return _decoded(mail["content"]["headers"].get("X-Correlation-ID", ""))


def totals(ledger: Ledger) -> dict[str, dict[str, int]]:
    """How many messages of each channel have each status, both in their usual order."""
    counts = Counter((event_type, str(row.get("status"))) for (_, event_type), row in ledger.items())
    return {
        channel: {status: counts[channel, status] for status in get_args(Status) if counts[channel, status]}
        for channel in CONTRACTS
    }


def described(row: Mapping[str, Any]) -> str:
    return f"{row.get('status')}, {row.get('error', 'no error')}" if row else "not in the ledger"


def error_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Code and message of a ledger item's error; empty without one."""
    error = row.get("error") or {}
    return {"code": str(error.get("code", "")), "message": str(error.get("message", ""))}


def _is_lost(scenario: Scenario, row: Mapping[str, Any], accepted: Sequence[Item]) -> bool:
    return "completedAt" not in row or (not scenario.reason and not accepted)


def _row_faults(scenario: Scenario, row: Mapping[str, Any]) -> list[str]:
    """Where the ledger item differs: its reason, its facts, its recipients' outcomes."""
    id_, found = scenario.id, []
    reason = error_of(row)["message"]
    if scenario.reason not in reason:
        found.append(f"{id_}: the reason {reason!r} does not name {scenario.reason!r}.")
    for name, value in scenario.facts.items():
        if row.get(name) != value:
            found.append(f"{id_}: {name} should be {value!r}; the ledger says {row.get(name)!r}.")
    outcomes = {who: entry.get("status") for who, entry in row.get("recipients", {}).items()}
    if scenario.recipients and outcomes != scenario.recipients:
        wanted = dict(scenario.recipients)
        found.append(f"{id_}: its recipients should be {wanted}; the ledger says {outcomes}.")
    return found


def _decoded(reference: str) -> str:
    """Base64url of the id; a further attempt's has its number after a dot."""
    coded = reference.partition(".")[0]
    try:
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode() or UNKNOWN
    except ValueError:
        return UNKNOWN
