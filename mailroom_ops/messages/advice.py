"""Advice: what a message's status means for an operator, and what to do next."""

from collections.abc import Iterator
from shlex import quote

from msgspec import Struct, structs

from mailroom.clock import epoch
from mailroom.ledger.items import PAUSED, RUN_UNKNOWN
from mailroom.ledger.status_reader import FORGOTTEN, READY, REMEMBERED_SECONDS, MessageStatus
from mailroom_ops.messages.waiting import SEND_AT, Turn, place_of
from mailroom_ops.shared.times import duration, short

LONG_SECONDS = {READY: 120, "scheduled": 1800, "sending": 1800, "retrying": 7200}
"""Seconds for which a message usually keeps a status. A message in a long queue may keep it for longer."""
LATE_SECONDS = 900
"""Seconds after the scheduled time of a message from which it is called late, if it still waits."""
_FAILED = {
    "invalid": "Its content is invalid: correct it, and put it under a new id.",
    "expired": "Its expires_at had passed: put it under a new id, with a later expires_at.",
    "content_gone": "It could not be queued when it was due, for the reason in its error. If its producer "
    "still wants it to be sent, put it under a new id.",
}
"""Next step for a failed message, by the code of its error, for the codes for which `resend` does not
help."""
CANCELLED = {
    "unless": "To send it after all, put it under a new id without unless.",
    "stopped": "A start of its run sends it, if its person is still in the audience.",
}
"""Advice about a cancelled message, by the code of its error."""
_SUPPRESSED = {
    "opted_out": "Its recipient has opted out of the topic: {opt_outs}",
    "not_allowed_here": "The stage may reach only some recipients: add this one to "
    "mailroom.{stage}.recipients.only in cdk.json and deploy, then: {resend}",
}
"""Next step for a suppressed message, by the code of its error: a template with the fields of `Steps`."""
_QUEUED = {
    "sending": "It is back in its queue, and is tried again.",
    "scheduled": "It is in its queue, and is sent at its time.",
}
"""Sentence about a message that is in its queue, by its status."""
_LISTED = "For the reason, {suppression}"


class Steps(Struct, frozen=True):
    """Instructions for an operator's next steps, each worded as the end of a sentence."""

    stage: str
    resend: str
    settle: str
    overview: str
    dead_letter: str
    opt_outs: str
    suppression: str
    suppressions: str
    cancel: str


def commands(message: MessageStatus, stage: str) -> Steps:
    """Return the instructions for the command line."""
    which = f"{quote(message.id)} --channel {quote(message.event_type)} --stage {stage}"
    return Steps(
        stage,
        resend=f"mailroom messages resend {which}",
        settle=f"mailroom messages settle {which} --as sent (or failed)",
        overview=f"the overview of mailroom console --stage {stage}",
        dead_letter=f"mailroom messages dead-letters {quote(message.id)} --stage {stage}",
        opt_outs=f"mailroom people show RECIPIENT --stage {stage}",
        suppression=f"see mailroom people show RECIPIENT --stage {stage}; to remove the entry, use "
        "mailroom people allow",
        suppressions=f"mailroom people list --stage {stage}",
        cancel=f"mailroom messages cancel {which}",
    )


def buttons(stage: str) -> Steps:
    """Return the instructions for the console."""
    return Steps(
        stage,
        resend="send it again",
        settle="record its outcome",
        overview="the overview",
        dead_letter="the page Dead letters",
        opt_outs="see the recipient's page",
        suppression="see the recipient's page, on which you can also remove the suppression",
        suppressions="see the recipient's page",
        cancel="cancel it",
    )


def advice(
    message: MessageStatus,
    steps: Steps,
    now_s: float,
    since: str | None,
    *,
    deleted: bool = False,
    turn: Turn | None = None,
) -> Iterator[str]:
    """Yield sentences about a message at `now_s` (epoch seconds). `since` is the time at which the message
    reached its status. `deleted` is true if the mailbox no longer has its item. `turn` is the result of
    `turn_of`."""
    dead = message.times.get("dead_lettered_at")
    if dead:
        yield (
            f"It has been in a dead-letter queue since {short(dead)}: {steps.dead_letter} shows the cause; "
            f"remove it, then: {steps.resend}"
        )
        if message.provider_id:
            yield _ended_by_hand(message, steps)
    elif message.status == FORGOTTEN:
        yield (
            "It is in the mailbox, and is older than the stage's records: it may have been sent, and "
            "its record deleted. If it has to be sent, put it under a new id."
        )
    elif message.waits_for:
        yield _waits(message, steps, now_s, turn, deleted=deleted)
    elif message.status in LONG_SECONDS:
        yield from _under_way(message, steps, now_s, since)
    else:
        yield from _ended(message, steps)
    callbacks = message.callbacks.items()
    failed = {name: f"{entry.get('reason')}" for name, entry in callbacks if entry.get("status") == "failed"}
    if refusals := [name for name, reason in failed.items() if reason.startswith("url: ")]:
        yield (
            f"Mailroom did not send these callbacks, because it refuses their URL: {', '.join(refusals)}. "
            f"{failed[refusals[0]].removeprefix('url: ').rstrip('.')}."
        )
    if unanswered := [name for name in failed if name not in refusals]:
        yield f"These callbacks could not be delivered: {', '.join(unanswered)}. Ask the endpoint's owner."


def _under_way(message: MessageStatus, steps: Steps, now_s: float, since: str | None) -> Iterator[str]:
    if message.status == READY:
        yield _ready(message, steps, now_s)
        return
    if message.trouble:
        code, sentence = message.trouble.get("code"), message.trouble.get("message")
        if code == "in_doubt":
            yield (
                "It may have been sent: the provider has reported no outcome. It is sent again after a wait, "
                "a few times at most; then it is a dead letter, which only an operator can send again."
            )
            return
        so_far = "An earlier try, whose outcome is unknown, may have sent it. The last try did not send it"
        not_sent = so_far if "unsettled_since" in message.times else "It was not sent so far"
        if code == "no_outcome":
            not_sent = "It may have been sent, and the next try looks for evidence first"
        tried_again = "by the channel's second provider" if code == "other_provider" else "again"
        yield f"{not_sent}: {sentence} ({code}). It is tried {tried_again}."
    elif "startedAt" not in message.times and message.status in _QUEUED:
        yield _QUEUED[message.status]
    changed = message.updated_at or since
    idle = now_s - epoch(changed) if changed else 0.0
    if idle > LONG_SECONDS[message.status]:
        yield (
            f"Nothing has changed for {duration(idle)}, which is long. See its queue on "
            f"{steps.overview}; if the message is not in it, this puts it back: {steps.resend}"
        )
        if message.provider_id:
            yield _ended_by_hand(message, steps)


def _ended_by_hand(message: MessageStatus, steps: Steps) -> str:
    return f"If no try finds out its outcome, ask {message.provider} for it, then: {steps.settle}"


def _ready(message: MessageStatus, steps: Steps, now_s: float) -> str:
    if message.scheduled_for and epoch(message.scheduled_for) > now_s:
        return f"It waits for {short(message.scheduled_for)}."
    return (
        "It is in the mailbox, but has no record of being sent. If it was put within the last "
        f"{REMEMBERED_SECONDS // 86_400} days, its sending has not begun: see on {steps.overview} "
        f"whether its queue is long; if not, this puts it back: {steps.resend}. An older message "
        "may have been sent, and its record deleted: do not send it again."
    )


def _waits(message: MessageStatus, steps: Steps, now_s: float, turn: Turn | None, *, deleted: bool) -> str:
    if message.waits_for == SEND_AT and deleted:
        due = short(message.scheduled_for)
        return f"It was deleted from the mailbox: at {due} it ends as cancelled, and is not sent."
    late = now_s - epoch(message.scheduled_for or "")
    # If a message waits for the daily budget or for its run, the scheduled time is only when the wait began.
    has_time = message.wait is not None and not message.wait.line
    if late > LATE_SECONDS and has_time and message.waits_for not in (PAUSED, RUN_UNKNOWN):
        return (
            f"It is {duration(late)} late: the function release does not queue waiting messages; see "
            "`mailroom docs release-late`. The message is not lost, and is sent in the end."
        )
    content = " Its content is stored with the wait, so it is sent even if it is deleted from the mailbox."
    return (
        f"{place_of(message, turn)}.{'' if message.waits_for == SEND_AT else content} To take it back: "
        f"{steps.cancel}"
    )


def _ended(message: MessageStatus, steps: Steps) -> Iterator[str]:
    resend = steps.resend
    code = (message.error or {}).get("code", "")
    match message.status, code:
        case "failed", "outcome_unknown":
            yield (
                "Sending was interrupted, and the provider cannot tell if it was sent: ask the recipient. "
                f"If it did not arrive: {resend}"
            )
        case "failed", _:
            yield _FAILED.get(code, f"Fix what the error says, then: {resend}")
        case "suppressed", _:
            yield _SUPPRESSED.get(code, _LISTED).format(**structs.asdict(steps))
        case "bounced" | "complained", _:
            recipients = "Recipients with such a report get" if message.recipients else "Its recipient gets"
            yield f"{recipients} nothing more on this channel: {steps.suppressions}"
        case "undelivered", _:
            yield f"The provider accepted it, and gave up later. To send it once more: {resend}"
        case "cancelled", _:
            yield CANCELLED.get(code, "It was taken back. To send it after all, put it under a new id.")
