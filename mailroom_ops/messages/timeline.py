"""A message's life as a time-line: the events in the ledger in order, with the time between them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from mailroom.channels.contracts import CHANNELS
from mailroom.clock import epoch
from mailroom.errors import quantity
from mailroom.ledger.items import ERASED_AT, RESTARTED
from mailroom.ledger.status_reader import FORGOTTEN, READY, MessageStatus
from mailroom.providers.registry import PROVIDERS
from mailroom_ops.messages.waiting import SEND_AT, WAITS_FOR
from mailroom_ops.shared.deeds import with_names

FEW = 5
"""Maximum number of recipients who are all shown one by one. If there are more, only recipients for whom
something went wrong are shown."""
TRIED = "try failed"
"""Name of the step of a try that failed."""
_GOOD = ("sent", "delivered", "opened", "clicked", "read")
_BAD = ("failed", "bounced", "complained", "undelivered")
_TOLD = ("sent", "delivered", "delayed", "undelivered", "bounced", "complained", "opened", "clicked", "read")
"""Events that a provider reports. The ledger stores the provider's time of each event, such as `sentAt`."""
_LATER = {"sent": _TOLD[1:], "delivered": ("complained", "opened", "clicked", "read")}
"""Events that can only follow another event, by that event. Reports may arrive in another order, and those of
Twilio do not contain a time."""
_SAME_SECONDS = 0.01
"""Difference between two times up to which they are from the same write: a message's `completedAt` and the
time of an entry of its history."""
_MEANING = {
    READY: "It is in the mailbox, and waits to be sent.",
    FORGOTTEN: "It is older than the stage's records.",
    "scheduled": "Its wait is over, and it is about to be sent.",
    "sending": "It is being sent.",
    "retrying": "It is not sent yet, and another try follows.",
    "sent": "{provider} accepted it, and has not reported more yet.",
    "delivered": "{provider} says that it was delivered.",
    "undelivered": "{provider} accepted it, and gave up later.",
    "bounced": "The recipient's server refused it permanently.",
    "complained": "It was delivered, and its recipient complained.",
    "failed": "It was not sent.",
    "suppressed": "It was not sent, because its recipient is not allowed to get it.",
    "cancelled": "It was cancelled before it was sent.",
}


class Step(Struct, frozen=True):
    """Past or future step of a message."""

    at: str | None
    """Time (ISO 8601), if it was recorded."""
    what: str
    detail: str = ""
    kind: str = ""
    """Either good, bad or ahead; empty for other steps."""
    after: float | None = None
    """Seconds since the step before."""


_NAMES = {name: each.title for name, each in PROVIDERS.items()}
"""Names of providers for people, by their names in the ledger. Names without an entry are shown unchanged."""


def meaning(message: MessageStatus) -> str:
    """Explain a message's present status in a sentence or two."""
    channel = CHANNELS.get(message.event_type)
    if message.recipients and message.status in _TOLD:
        counts = Counter(entry.get("status", "without a report") for entry in message.recipients.values())
        return f"{', '.join(f'{count:,} {status}' for status, count in counts.most_common())}."
    sentence = channel.sent if channel and message.status == "sent" else _MEANING.get(message.status, "")
    if message.waits_for:
        return "It has to wait, and is not sent yet."
    if (message.error or {}).get("code") == "unless":
        sentence = "It was not sent, because a condition of its unless was fulfilled."
    if (message.error or {}).get("code") == "outcome_unknown":
        sentence = "It is unknown whether it was sent."
    if message.status == "retrying" and message.history and message.history[-1].get("code") in RESTARTED:
        sentence = "It is not sent yet. Its campaign's run was started again, and another try follows."
    sentence = sentence.format(provider=_name(message) or "Its provider")
    if "dead_lettered_at" in message.times:
        sentence = "It is a dead letter: it is not tried again until somebody puts it back."
    cause = message.error or message.trouble
    return f"{sentence} {cause.get('message')} ({cause.get('code')})" if cause else sentence


def last_try(steps: Sequence[Step]) -> int:
    """Return the index of the last failed try if more than two tries failed, otherwise 0. The steps after the
    first one and before this index are about earlier tries."""
    tries = [index for index, step in enumerate(steps) if step.what == TRIED]
    return tries[-1] if len(tries) > 2 else 0


def timeline(message: MessageStatus, now_s: float) -> list[Step]:
    """Return the steps of a message, the earliest first. Steps at the same time are in the order in
    which they follow from each other. `now_s` is in epoch seconds."""
    steps = sorted(_steps(message, now_s), key=lambda step: epoch(step.at or ""))
    # A message that was put before the ledger recorded the time of puts has no time in this step.
    life = [Step(message.times.get("putAt"), "came in")]
    for step in steps:
        before = life[-1].at
        gap = None if before is None else epoch(step.at or "") - epoch(before)
        life.append(structs.replace(step, after=gap))
    return life


def _steps(message: MessageStatus, now_s: float) -> Iterator[Step]:
    times, provider = message.times, _name(message) or "its provider"
    operator = message.details.get("erased_by")
    ended_at = times.get("completedAt")
    # A message that ended before its time, such as a cancelled one, is no longer due.
    in_line = message.wait is not None and message.wait.line
    due = message.scheduled_for
    if due and not in_line and not (ended_at and epoch(ended_at) < epoch(due)):
        reason = SEND_AT if message.status == READY else message.waits_for
        detail = f"by {WAITS_FOR[reason]}" if reason else "its wait was over"
        yield Step(due, "due", detail, "ahead" if epoch(due) > now_s else "")
    attempt = max(1, message.attempts + ("completedAt" not in times))
    for name, title, detail, kind in (
        ("startedAt", "sending began", f"try {attempt}" if attempt > 1 else "", ""),
        ("submittedAt", "submitted", f"to {_provider(message)}", ""),
        ("unsettled_since", "in doubt", f"a try since then may have reached {provider}", "bad"),
        ("dead_lettered_at", "dead letter", "given up after too many tries", "bad"),
        (ERASED_AT, "erased", with_names(f"by {operator}") if operator else "", ""),
    ):
        # Only a fax is submitted long before its outcome. Each event about a text changes its `submittedAt`.
        if name in times and (name != "submittedAt" or message.event_type == "fax"):
            yield Step(times[name], title, detail, kind)
    yield from _history(message)
    yield from _told(_told_alone(message), f"reported by {provider}")
    for recipient, entry in message.recipients.items():
        if len(message.recipients) > FEW and entry.get("status") not in _BAD:
            continue  # the list of recipients shows the others
        # The provider accepts the message once for all recipients, so `sentAt` is not repeated for each of
        # them.
        reports = {name: time for name, time in entry.items() if name != "sentAt"}
        yield from _told(reports, f"to {recipient}, reported by {provider}")
    for name, entry in message.callbacks.items():
        if "at" in entry:
            kind = _kind(str(entry.get("status")))
            yield Step(str(entry["at"]), "callback", _callback(name, entry), kind)


def _life(message: MessageStatus) -> list[dict[str, Any]]:
    """Return the history since the message was last resent. The provider's events in the ledger are about
    this part only."""
    begins = [index for index, entry in enumerate(message.history) if entry.get("code") == "reopened"]
    return message.history[begins[-1] if begins else 0 :]


def _told_alone(message: MessageStatus) -> dict[str, str]:
    """Return the times that the provider reported. `sentAt` is omitted if the history already has the entry
    that the provider accepted the message."""
    accepted = any(entry.get("status") == "sent" for entry in _life(message))
    return {name: time for name, time in message.times.items() if not (accepted and name == "sentAt")}


def _told(times: Mapping[str, Any], detail: str) -> Iterator[Step]:
    """Yield a step for each event of the provider, at the provider's time."""
    for word in _TOLD:
        if f"{word}At" in times:
            yield Step(_at(word, str(times[f"{word}At"]), times), word, detail, _kind(word))


def _at(word: str, time: str, *reports: Mapping[str, Any]) -> str:
    """Return the recorded time of an event, or the earliest time of an event that can only follow it."""
    later = [f"{name}At" for name in _LATER.get(word, ())]
    return min([time, *(str(times[name]) for times in reports for name in later if name in times)])


def _history(message: MessageStatus) -> Iterator[Step]:
    """Yield a step for each outcome and for each operation of an operator in the history. Events that have a
    provider's time are omitted, because `_told` yields them. If the history is full and does not contain the
    last outcome, a step for that outcome follows."""
    dated = {name.removesuffix("At") for name in message.times} - {"sent"}
    reported = [entry for entry in _life(message) if entry["status"] in dated]
    for index, entry in enumerate(message.history):
        if entry in reported:
            continue
        time, status, code = str(entry["at"]), str(entry.get("status", "")), str(entry.get("code", ""))
        if code == "reopened":
            yield Step(time, "sent again", "by an operator")
        elif code in RESTARTED:
            yield Step(time, "prepared", "for a later start of its campaign's run")
        elif status == "retrying":
            entries = message.history[: index + 1]
            number = sum(entry.get("code") not in ("reopened", RESTARTED[0]) for entry in entries)
            yield Step(time, TRIED, f"number {number}: {code}; another follows", "bad")
        else:
            detail = f"accepted by {_provider(message)}" if status == "sent" else code
            time = _at(status, time, message.times, *message.recipients.values())
            yield Step(time, status, detail, _kind(status))
    ended_at = message.times.get("completedAt")
    if ended_at and not any(
        abs(epoch(str(earlier["at"])) - epoch(ended_at)) < _SAME_SECONDS for earlier in message.history
    ):
        yield Step(ended_at, "completed", message.status, _kind(message.status))


def _provider(message: MessageStatus) -> str:
    return f"{_name(message) or 'its provider'} {message.provider_id or ''}".strip()


def _name(message: MessageStatus) -> str:
    return _NAMES.get(message.provider or "", message.provider or "")


def _callback(name: str, entry: Mapping[str, Any]) -> str:
    status, _, attempt = name.rpartition(".")
    became = "accepted" if entry.get("status") == "delivered" else entry.get("status")
    code = entry.get("code")
    answered = f"the endpoint answered {code}" if code else entry.get("reason", "the endpoint did not answer")
    count = quantity(int(entry.get("tries") or 0), "try", "tries")
    number = "" if attempt == "1" else f", try {attempt}"
    return f"of {status}{number}: {became}, {count}; {answered}"


def _kind(word: str) -> str:
    return "good" if word in _GOOD else "bad" if word in _BAD else ""
