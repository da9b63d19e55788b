"""Check the faxes: the providers' log and the ledger against the scenarios."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from local.demo.checks.messages import Ledger, described, error_of
from local.demo.scenarios.faxes import FaxScenario

Call = Mapping[str, Any]
"""An entry of the provider's log: a fax that it accepted."""


@dataclass(frozen=True)
class FaxCheck:
    """`attempts` are faxes that the provider accepted. `lines_in_order` counts numbers whose queue's order is
    known and was kept. `most_at_once` is the most faxes under way to one number, and must be 1. `sent_twice`
    counts faxes that were delivered more than once. `longest` is the longest call, `seconds` the time from
    the first put to the last end."""

    faxes: int
    numbers: int
    delivered: int
    failed: int
    attempts: int
    lines_in_order: int
    most_at_once: int
    sent_twice: int
    lost: int
    longest: float
    seconds: float
    reasons: list[dict[str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def check_faxes(
    faxes: Sequence[FaxScenario], log: Sequence[Call], ledger: Ledger, most_attempts: int, seconds: float
) -> FaxCheck:
    """Compare; `most_attempts` is the stage's max_attempts."""
    calls = _by_fax(log)
    delivered = {id_ for id_, of in calls.items() if any(each["status"] == "delivered" for each in of)}
    lost = [fax for fax in faxes if "completedAt" not in ledger.get(fax.key, {})]
    ended = [fax for fax in faxes if fax not in lost]
    failed = [fax for fax in faxes if ledger.get(fax.key, {}).get("status") == "failed"]
    twice = delivered_twice(log)
    lines = _lines(faxes)
    disordered = [line for line, ids in lines.items() if not _in_order(ids, calls)]
    unknown = calls.keys() - {fax.id for fax in faxes}
    return FaxCheck(
        faxes=len(faxes),
        numbers=len({fax.line for fax in faxes if fax.line}),
        delivered=len(delivered),
        failed=len(failed),
        attempts=len(log),
        lines_in_order=len(lines) - len(disordered),
        most_at_once=max((len(each["overlaps"]) + 1 for each in log), default=0),
        sent_twice=len(twice),
        lost=len(lost),
        longest=round(max((each["ended"] - each["created"] for each in log if each["ended"]), default=0), 1),
        seconds=round(seconds, 2),
        reasons=[{"id": fax.id, **error_of(ledger[fax.key])} for fax in failed],
        failures=[
            *(f"{fax.id} is lost: {described(ledger.get(fax.key, {}))}." for fax in lost),
            *(f"{id_} was delivered {count} times." for id_, count in twice.items()),
            *(
                f"A fax to {each['to']} met {len(each['overlaps'])} other faxes on its line."
                for each in overlapping(log)
            ),
            *(f"The faxes to {line} went in another order than they were queued in." for line in disordered),
            *(f"A provider got {id_}, which was not sent." for id_ in unknown),
            *(
                fault
                for fax in ended
                for fault in _faults(fax, calls.get(fax.id, []), ledger[fax.key], most_attempts)
            ),
        ],
    )


def delivered_twice(log: Sequence[Call]) -> dict[str, int]:
    """The faxes that were delivered more than once, and how often."""
    delivered = Counter(_fax_of(each) for each in log if each["status"] == "delivered")
    return {id_: count for id_, count in delivered.items() if count > 1}


def overlapping(log: Sequence[Call]) -> list[Call]:
    """The calls that met another one on their line."""
    return [each for each in log if each["overlaps"]]


def _faults(fax: FaxScenario, calls: Sequence[Call], row: Mapping[str, Any], most: int) -> list[str]:
    wanted = "sent" if fax.delivered else "failed"
    faults = []
    if row["status"] != wanted:
        faults.append(f"{fax.id} should be {wanted}; the ledger says {described(row)}.")
    reason = error_of(row)["message"]
    if not fax.delivered and fax.reason not in reason:
        faults.append(f"{fax.id}: the reason {reason!r} does not name {fax.reason!r}.")
    if len(calls) != fax.calls(most):
        faults.append(f"{fax.id} was given to the provider {len(calls)} times instead of {fax.calls(most)}.")
    if any(each["to"] != fax.line for each in calls):
        faults.append(f"{fax.id} went to another number than {fax.line}.")
    if fax.payload and not all(each["media_ok"] for each in calls):
        faults.append(f"The provider could not fetch the PDF of {fax.id}.")
    return faults


def _by_fax(log: Sequence[Call]) -> dict[str, list[Call]]:
    """The calls of each fax, by the time of their acceptance."""
    calls: dict[str, list[Call]] = defaultdict(list)
    for each in sorted(log, key=lambda call: call["created"]):
        calls[_fax_of(each)].append(each)
    return dict(calls)


def _fax_of(call: Call) -> str:
    """The id of the fax, which its document is named after."""
    return PurePosixPath(urlsplit(call["media_url"]).path).stem


def _lines(faxes: Sequence[FaxScenario]) -> dict[str, list[str]]:
    """The ids of the faxes whose place in their line's queue is known, by line."""
    lines: dict[str, list[str]] = defaultdict(list)
    for fax in faxes:
        if fax.ordered:
            lines[fax.line].append(fax.id)
    return dict(lines)


def _in_order(ids: Sequence[str], calls: Mapping[str, list[Call]]) -> bool:
    firsts = [calls[id_][0]["created"] for id_ in ids if id_ in calls]
    return firsts == sorted(firsts)
