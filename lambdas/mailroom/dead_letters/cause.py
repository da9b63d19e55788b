"""Why a letter is dead, and what to do about it: told from the ledger, in a sentence for whoever is woken."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.dead_letters.dead_letter import Letter
from mailroom.dead_letters.subject import Subject

Item = Mapping[str, Any]


class Cause(Struct, frozen=True):
    """For programs, and for people: the sentence ends with what is to be done."""

    code: str
    message: str


_UNDISPATCHED = Cause(
    "undispatched",
    "its time came and it was not dispatched; see the log of dispatch-scheduled, then redrive it",
)
_UNRECORDED = Cause(
    "unrecorded", "a provider's event did not get into the ledger; see the log of feedback, then redrive it"
)
_SUPERSEDED = Cause("superseded", "a later attempt at its message has begun: this is a stale copy; delete it")
_UNCLAIMED = Cause(
    "unclaimed",
    "no worker has claimed it: its function failed before it could, or did not reach the ledger; "
    "see the log of its function, then redrive it",
)
_UNKNOWN = Cause(
    "outcome_unknown",
    "a worker claimed it and did not say what became of it, so it may have been sent; see the log of its "
    "sender, then redrive it: the next worker looks for evidence first",
)
_UNSENT = Cause(
    "unsent", "every worker gave it back unsent and left no word why; see its sender's log, then redrive it"
)

_TROUBLE = "{}; put that right, then redrive it"
_TROUBLES = {
    "retry": "not taken for as long as it may wait: {}; redrive it when that is over",
    "unprepared": "it could not be made ready ({}); see the log of its sender, then redrive it",
}
"""By the code of what kept a message from being sent."""


def cause_of(letter: Letter, subject: Subject, item: Item) -> Cause:
    """`item` is the ledger's, of the message that the letter is about ({}: there is none)."""
    match subject.kind:
        case "malformed":
            return Cause(
                "malformed", f"no message of ours: {subject.detail}; find who sent it, then delete it"
            )
        case "event":
            return _UNRECORDED
        case "campaign":
            return _of_campaign(letter, subject)
        case "callback":
            return _of_callback(subject.detail, item)
    return _settled(subject, item) or _of_message(letter, item)


def _settled(subject: Subject, item: Item) -> Cause | None:
    """Why a redrive would do nothing; None where it would."""
    ended = int(item.get("attempts", 0))
    if "completedAt" in item:
        return Cause("completed", f"its message is {item.get('status')} already: this is a copy; delete it")
    if ended >= subject.attempt:
        return _SUPERSEDED
    if ended < subject.attempt - 1 and "startedAt" not in item:
        return Cause(
            "unfounded",
            f"no attempt that has ended leads up to attempt {subject.attempt}: that number is made up, or "
            "the ledger's item was erased; delete it",
        )
    return None


def _of_message(letter: Letter, item: Item) -> Cause:
    trouble = item.get("trouble")
    if letter.undelivered:
        return _undelivered(letter)
    if letter.queue.startswith("scheduled-"):
        return _UNDISPATCHED
    # Before `trouble`, which a claim leaves standing: what a dead worker met is newer.
    if "startedAt" in item:
        return _UNKNOWN
    if isinstance(trouble, Mapping):
        code = str(trouble.get("code"))
        sentence = _TROUBLES.get(code, _TROUBLE)
        return Cause(code, sentence.format(str(trouble.get("message", "")).rstrip(".")))
    return _UNSENT if item.get("status") == "sending" else _UNCLAIMED


def _undelivered(letter: Letter) -> Cause:
    # SQS did not bring it here, and so knows no queue that it came from.
    return Cause(
        "undelivered",
        f"EventBridge Scheduler could not send it: {letter.undelivered}; put that right, then redrive it",
    )


def _of_campaign(letter: Letter, subject: Subject) -> Cause:
    if letter.undelivered:
        return _undelivered(letter)
    if letter.queue.startswith("collect-"):
        sentence = (
            f"a page of campaign {subject.detail}, was not collected; `mailroom campaign status` says why"
        )
        return Cause("uncollected", f"{sentence}; mend it, then redrive it, or start the run again")
    sentence = f"people of campaign {subject.detail}, were not all composed; see the log of compose"
    return Cause("uncomposed", f"{sentence}, mend it, then redrive it: nobody gets a second message")


def _of_callback(name: str, item: Item) -> Cause:
    results = item.get("callbacks")
    result = results.get(name) if isinstance(results, Mapping) else None
    if not isinstance(result, Mapping):
        return Cause(
            "callback_unsent",
            f"callback {name} was never answered for; see the log of send-webhook, then redrive it",
        )
    answer = "no answer" if result.get("code") is None else f"HTTP {result['code']}"
    return Cause(
        "callback_refused",
        f"callback {name} was not taken in {result.get('tries')} tries, the last got {answer}; "
        "mend the endpoint, then redrive it",
    )
