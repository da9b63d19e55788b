"""What became of the demo's faxes against what should have: pure, so that it can be tested."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from local.demo.scenarios.faxes import Fax

Ledger = Mapping[tuple[str, str], Mapping[str, Any]]
Call = Mapping[str, Any]
"""One line of the provider's log: a fax that it accepted."""


@dataclass(frozen=True)
class FaxVerdict:
    """`attempts` are faxes that the provider accepted. `lines_in_order` counts the numbers whose queue's
    order is known and was kept; `most_at_once` is the most faxes that were under way to one number, and must
    be 1; `sent_twice` counts faxes that were delivered more than once. `longest` is the longest call and
    `seconds` the time from the first put to the last end, both in seconds."""

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

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def judge_faxes(
    faxes: Sequence[Fax], log: Sequence[Call], ledger: Ledger, most_attempts: int, seconds: float
) -> FaxVerdict:
    """Compare; `most_attempts` is the stage's max_attempts."""
    calls = _by_fax(log)
    delivered = {id_: [each for each in of if each["status"] == "delivered"] for id_, of in calls.items()}
    lost = [fax for fax in faxes if "completedAt" not in ledger.get(fax.key, {})]
    ended = [fax for fax in faxes if fax not in lost]
    failed = [fax for fax in faxes if ledger.get(fax.key, {}).get("status") == "failed"]
    twice = [id_ for id_, of in delivered.items() if len(of) > 1]
    lines = _lines(faxes)
    disordered = [line for line, ids in lines.items() if not _in_order(ids, calls)]
    crowded = {line: most for line, most in _crowds(log).items() if most > 1}
    return FaxVerdict(
        faxes=len(faxes),
        numbers=len({fax.line for fax in faxes if fax.line}),
        delivered=sum(1 for of in delivered.values() if of),
        failed=len(failed),
        attempts=len(log),
        lines_in_order=len(lines) - len(disordered),
        most_at_once=max(_crowds(log).values(), default=0),
        sent_twice=len(twice),
        lost=len(lost),
        longest=round(max((each["ended"] - each["created"] for each in log if each["ended"]), default=0), 1),
        seconds=round(seconds, 2),
        reasons=[{"id": fax.id, **_error(fax, ledger)} for fax in failed],
        failures=[
            *(f"{fax.id} is lost: the ledger says {_status(fax, ledger)}." for fax in lost),
            *(f"{id_} was delivered {len(delivered[id_])} times." for id_ in twice),
            *(f"Up to {most} faxes at once were under way to {line}." for line, most in crowded.items()),
            *(f"The faxes to {line} went in another order than they were queued in." for line in disordered),
            *(f"Nobody asked for {id_}, which the provider got." for id_ in calls.keys() - _ids(faxes)),
            *(fault for fax in ended for fault in _faults(fax, calls, ledger, most_attempts)),
        ],
    )


def _faults(fax: Fax, calls: Mapping[str, list[Call]], ledger: Ledger, most: int) -> list[str]:
    """What is wrong with a fax that has ended."""
    row, of = ledger[fax.key], calls.get(fax.id, [])
    wanted = "sent" if fax.delivered else "failed"
    faults = []
    if row["status"] != wanted:
        faults.append(f"{fax.id} should be {wanted}; the ledger says {_status(fax, ledger)}.")
    said = _error(fax, ledger)["message"]
    if not fax.delivered and fax.reason not in said:
        faults.append(f"{fax.id}: the reason {said!r} does not name {fax.reason!r}.")
    if len(of) != fax.calls(most):
        faults.append(f"{fax.id} was given to the provider {len(of)} times instead of {fax.calls(most)}.")
    if any(each["to"] != fax.line for each in of):
        faults.append(f"{fax.id} went to another number than {fax.line}.")
    if fax.payload and not all(each["media_ok"] for each in of):
        faults.append(f"The provider could not fetch the PDF of {fax.id}.")
    return faults


def _by_fax(log: Sequence[Call]) -> dict[str, list[Call]]:
    """The calls of each fax, which its document is named after, by the time of their acceptance."""
    calls: dict[str, list[Call]] = defaultdict(list)
    for each in sorted(log, key=lambda call: call["created"]):
        calls[PurePosixPath(urlsplit(each["media_url"]).path).stem].append(each)
    return dict(calls)


def _lines(faxes: Sequence[Fax]) -> dict[str, list[str]]:
    """The ids of the faxes whose place in their line's queue is known, by line."""
    lines: dict[str, list[str]] = defaultdict(list)
    for fax in faxes:
        if fax.ordered:
            lines[fax.line].append(fax.id)
    return dict(lines)


def _in_order(ids: Sequence[str], calls: Mapping[str, list[Call]]) -> bool:
    firsts = [calls[id_][0]["created"] for id_ in ids if id_ in calls]
    return firsts == sorted(firsts)


def _crowds(log: Sequence[Call]) -> dict[str, int]:
    """The most faxes that were under way at once, by number."""
    crowds: dict[str, int] = {}
    for line in {each["to"] for each in log}:
        of = [each for each in log if each["to"] == line]
        ends = [each["ended"] or float("inf") for each in of]
        crowds[line] = max(
            sum(other["created"] <= each["created"] < end for other, end in zip(of, ends, strict=True))
            for each in of
        )
    return crowds


def _ids(faxes: Sequence[Fax]) -> set[str]:
    return {fax.id for fax in faxes}


def _status(fax: Fax, ledger: Ledger) -> str:
    row = ledger.get(fax.key)
    return f"{row.get('status')}, {row.get('error', 'no error')}" if row else "nothing"


def _error(fax: Fax, ledger: Ledger) -> dict[str, str]:
    error = ledger[fax.key].get("error") or {}
    return {"code": str(error.get("code", "")), "message": str(error.get("message", ""))}
