"""A message's life as a time-line: what the ledger wrote down of it, in order, with the time between."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, structs

from mailroom.channels.contracts import CHANNELS
from mailroom.clock import epoch
from mailroom.ledger.items import ERASED_AT
from mailroom.ledger.reader import FORGOTTEN, READY, MessageStatus
from mailroom_ops.messages.waiting import SEND_AT, WAITS_FOR

FEW = 5
"""Maximum number of recipients who are shown one by one, whatever became of their mail."""
_GOOD = ("sent", "delivered", "opened", "clicked", "read")
_BAD = ("failed", "bounced", "complained", "undelivered")
_TOLD = (
    *("sent", "delivered", "delayed", "undelivered", "bounced", "complained"),
    *("opened", "clicked", "read"),
)
"""Events from the provider. The ledger has the provider's own time of each, such as `sentAt`."""
_SAME_SECONDS = 0.01
"""The ledger's outcome and its entry in the history are of one write."""
_MEANING = {
    READY: "It has come in, and waits for its turn.",
    FORGOTTEN: "It is older than what Mailroom remembers.",
    "scheduled": "Its wait is over, and it is about to be sent.",
    "sending": "It is being sent.",
    "retrying": "It is not sent yet, and another try follows.",
    "sent": "{provider} accepted it, and has not said more yet.",
    "delivered": "{provider} says that it was delivered.",
    "undelivered": "{provider} accepted it, and gave up later.",
    "bounced": "The recipient's side refused it for good.",
    "complained": "It was delivered, and its recipient complained.",
    "failed": "It was not sent.",
    "suppressed": "It was not sent, for its recipient gets nothing more.",
    "cancelled": "It was taken back before it was sent.",
}


class Step(Struct, frozen=True):
    """A step that happened, or will. `at` is ISO 8601 (None: nobody wrote down when), `after` the seconds
    since the step before; `kind` is good, bad, ahead or ""."""

    at: str | None
    what: str
    detail: str = ""
    kind: str = ""
    after: float | None = None


_NAMES = {name: words for each in CHANNELS.values() for name, words in each.providers.items()}
"""How providers write their names; others stand as the ledger has them."""


def meaning(found: MessageStatus) -> str:
    """Explain a message's present status in a sentence or two."""
    channel = CHANNELS.get(found.event_type)
    if found.recipients and found.status in _TOLD:
        counts = Counter(entry.get("status", "without a report") for entry in found.recipients.values())
        return f"{', '.join(f'{count:,} {status}' for status, count in counts.most_common())}."
    said = channel.sent if channel and found.status == "sent" else _MEANING.get(found.status, "")
    if found.waits_for:
        return "It may not be sent yet."
    if (found.error or {}).get("code") == "unless":
        said = "It was not sent, for another message made it needless."
    if (found.error or {}).get("code") == "outcome_unknown":
        said = "Nobody can tell whether it was sent."
    said = said.format(provider=_name(found) or "Its provider")
    if "dead_lettered_at" in found.times:
        said = "It is a dead letter: nothing tries it again, until somebody puts it back."
    why = found.error or found.trouble
    return f"{said} {why.get('message')} ({why.get('code')})" if why else said


def timeline(found: MessageStatus, now: float) -> list[Step]:
    """Return the steps, the first one first. `now` is in epoch seconds."""
    steps = sorted(_steps(found, now), key=lambda each: epoch(each.at or ""))
    # What was put before the ledger noted it has no time.
    told = [Step(found.times.get("putAt"), "came in")]
    for step in steps:
        before = told[-1].at
        gap = None if before is None else epoch(step.at or "") - epoch(before)
        told.append(structs.replace(step, after=gap))
    return told


def _steps(found: MessageStatus, now: float) -> Iterator[Step]:
    times, provider = found.times, _name(found) or "its provider"
    operator = found.details.get("erased_by")
    ended = times.get("completedAt")
    # What ended before its time, such as a cancelled message, is not due any more.
    in_line = found.wait is not None and found.wait.line
    if found.scheduled_for and not in_line and not (ended and epoch(ended) < epoch(found.scheduled_for)):
        ahead = epoch(found.scheduled_for) > now
        reason = SEND_AT if found.status == READY else found.waits_for
        detail = f"by {WAITS_FOR[reason]}" if reason else "its wait was over"
        yield Step(found.scheduled_for, "due", detail, "ahead" if ahead else "")
    attempt = max(1, found.attempts + ("completedAt" not in times))
    for name, what, detail, kind in (
        ("startedAt", "sending began", f"try {attempt}" if attempt > 1 else "", ""),
        ("submittedAt", "submitted", f"to {_provider(found)}", ""),
        ("unsettled_since", "in doubt", "a try from then on may have sent it", "bad"),
        ("dead_lettered_at", "dead letter", "given up after too many tries", "bad"),
        (ERASED_AT, "erased", f"by {operator}" if operator else "", ""),
    ):
        if name in times:
            yield Step(times[name], what, detail, kind)
    yield from _told(_told_alone(found), f"reported by {provider}")
    yield from _history(found)
    for name, entry in found.callbacks.items():
        if "at" in entry:
            kind = _kind(str(entry.get("status")))
            yield Step(str(entry["at"]), "callback", _callback(name, entry), kind)
    for recipient, entry in found.recipients.items():
        if len(found.recipients) > FEW and entry.get("status") not in _BAD:
            continue  # the recipients' own list has the others
        # That the provider accepted the message is one fact, not one for each of them.
        reports = {name: at for name, at in entry.items() if name != "sentAt"}
        yield from _told(reports, f"to {recipient}, reported by {provider}")


def _life(found: MessageStatus) -> list[dict[str, Any]]:
    """The history since it was last sent again: what the provider told is of that life."""
    begins = [at for at, each in enumerate(found.history) if each.get("code") == "reopened"]
    return found.history[begins[-1] if begins else 0 :]


def _told_alone(found: MessageStatus) -> dict[str, str]:
    """The provider's times, without what our own write says as well: that it accepted the message."""
    accepted = any(each.get("status") == "sent" for each in _life(found))
    return {name: at for name, at in found.times.items() if not (accepted and name == "sentAt")}


def _told(times: Mapping[str, Any], detail: str) -> Iterator[Step]:
    """Return the provider's events, at the provider's own times."""
    for word in _TOLD:
        if f"{word}At" in times:
            yield Step(str(times[f"{word}At"]), word, detail, _kind(word))


def _history(found: MessageStatus) -> Iterator[Step]:
    """The outcome of each attempt, and what operators did; the last outcome alone, if the history is full.
    What the provider told at a time of its own has its step already."""
    told = [
        each for each in _life(found) if each["status"] != "sent" and f"{each['status']}At" in found.times
    ]
    for at, entry in enumerate(found.history):
        if entry in told:
            continue
        time, status, code = str(entry["at"]), str(entry.get("status", "")), str(entry.get("code", ""))
        if code == "reopened":
            yield Step(time, "sent again", "by an operator")
        elif status == "retrying":
            ended = sum(each.get("code") != "reopened" for each in found.history[: at + 1])
            yield Step(time, "try failed", f"number {ended}: {code}; another follows", "bad")
        else:
            yield Step(
                time, status, f"accepted by {_provider(found)}" if status == "sent" else code, _kind(status)
            )
    ended_at = found.times.get("completedAt")
    if ended_at and not any(
        abs(epoch(str(each["at"])) - epoch(ended_at)) < _SAME_SECONDS for each in found.history
    ):
        yield Step(ended_at, "completed", found.status, _kind(found.status))


def _provider(found: MessageStatus) -> str:
    return f"{_name(found) or 'its provider'} {found.provider_id or ''}".strip()


def _name(found: MessageStatus) -> str:
    return _NAMES.get(found.provider or "", found.provider or "")


def _callback(name: str, entry: Mapping[str, Any]) -> str:
    status, _, attempt = name.rpartition(".")
    became = "taken" if entry.get("status") == "delivered" else entry.get("status")
    tries, code = entry.get("tries"), entry.get("code")
    answered = f"the endpoint answered {code}" if code else entry.get("reason", "the endpoint did not answer")
    made = f"{tries} {'try' if tries == 1 else 'tries'}"
    number = "" if attempt == "1" else f", try {attempt}"
    return f"of {status}{number}: {became}, {made}; {answered}"


def _kind(word: str) -> str:
    return "good" if word in _GOOD else "bad" if word in _BAD else ""
