"""Whether a message may be sent again, told from its ledger item alone."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.ledger.items import ERASED_AT

Item = Mapping[str, Any]

ARRIVED = {
    "sent": "its provider accepted it",
    "delivered": "it was delivered",
    "complained": "it was delivered, and its recipient complained",
}
_UNREACHED = ("undelivered", "bounced", "suppressed")
"""What an entry of `recipients` says of somebody who has not got it."""


class Verdict(Struct, frozen=True):
    """`why` is for people. `twice`: it may reach somebody who has had it. `reopened`: that was done before,
    and what is left is to queue it."""

    go: bool
    why: str
    twice: bool = False
    reopened: bool = False


def judge(item: Item, *, force: bool) -> Verdict:
    """What the ledger says about sending it again."""
    if "completedAt" not in item:
        return _under_way(item)
    if ERASED_AT in item:
        return Verdict(go=False, why="its recipient was erased, so it is never sent again")
    status, error = str(item["status"]), item.get("error", {})
    if error.get("code") == "outcome_unknown":
        why = "its outcome is unknown: it may have arrived, so ask its provider first"
        return Verdict(go=True, why=why, twice=True)
    reached = ARRIVED.get(status) or _partly(item, status)
    if reached:
        again = "it may arrive twice" if force else "it would arrive twice; --force sends it all the same"
        return Verdict(force, f"{status}: {reached}, so {again}", twice=True)
    if status == "cancelled" and not force:
        return Verdict(go=False, why="cancelled: its producer took it back; --force sends it all the same")
    said = ": ".join(str(error[name]) for name in ("code", "message") if error.get(name))
    return Verdict(go=True, why=f"{status}: {said}" if said else status)


def _under_way(item: Item) -> Verdict:
    status = str(item.get("status", ""))
    if "dead_lettered_at" in item:
        return Verdict(go=False, why=f"{status}: it is a dead letter; see mailroom dead-letters")
    if awaits_its_copy(item):
        return Verdict(go=True, why="reopened before, and not begun: it is queued again", reopened=True)
    if status == "scheduled":
        return Verdict(go=False, why="scheduled: it waits for its send_at")
    return Verdict(go=False, why=f"{status}: it is on its way; mailroom reconcile puts back what is stuck")


def awaits_its_copy(item: Item) -> bool:
    """Whether it was reopened and nobody has begun the attempt, so that its queue message may be missing. A
    fax's is made of the ledger's stream."""
    return item.get("status") == "retrying" and "startedAt" not in item and item["event_type"] != "fax"


def _partly(item: Item, status: str) -> str:
    """Of a mail to several: that some of them have it, or may have."""
    entries = item.get("recipients", {}).values()
    if status not in _UNREACHED[:2] or all(each.get("status") in _UNREACHED for each in entries):
        return ""
    return "others of its recipients have had it"
