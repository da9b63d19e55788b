"""Sends messages again: decides whether it is allowed, reopens each message in the ledger, and queues it.

reopen ─── crash ─── queue      A message that was reopened but not queued is `retrying` without a worker:
                                this command queues it when it is run again, also with `--stuck`.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from secrets import token_hex
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from msgspec import Struct, structs

from mailroom.aws.dynamo_batches import UnprocessedKeys
from mailroom.aws.queues import Entry
from mailroom.clock import milliseconds
from mailroom.errors import Invalid
from mailroom.ledger.items import ERASED_AT, WAIT
from mailroom.message import CAMPAIGN_START
from mailroom.message.message import Key, Message
from mailroom.recipients.choices import Addressee, Choices, Preferences, Suppressions
from mailroom_ops.messages.advice import CANCELLED
from mailroom_ops.messages.sets import WORKERS, MessageResult, found
from mailroom_ops.messages.waiting import WAITS_FOR
from mailroom_ops.repair.requeuer import Requeuer, fax_of, next_attempt
from mailroom_ops.shared.deeds import thing_of
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.stage_queues import DeployedStage, awaits_queuing

Item = Mapping[str, Any]
_FAULTS = (ClientError, BotoCoreError, ResponseParserError, UnprocessedKeys)
"""Exceptions if AWS does not carry out a read or write of a table."""
_UNTAKEN = "it is reopened, but SQS did not accept it: run this again"
ARRIVED = {
    "sent": "its provider accepted it",
    "delivered": "it was delivered",
    "complained": "it was delivered, and its recipient complained",
}
FORCED = "; --force sends it all the same"
"""End of the reason of a refusal that --force overrides."""
SUPPRESSED = "; see mailroom people show"
"""End of the reason if all recipients are suppressed or opted out."""
_UNREACHED = ("undelivered", "bounced", "suppressed")
"""Statuses, in the ledger's `recipients`, of recipients who have not received the message."""


class Judgement(Struct, frozen=True):
    """Decision whether a message may be sent again. `why` is the reason for the operator. `twice` is true if
    the message may reach a recipient who has received it before."""

    go: bool
    why: str
    twice: bool = False


def judge(item: Item, *, force: bool) -> Judgement:
    """Decide by the ledger item of a message whether it may be sent again."""
    if "completedAt" not in item:
        return _under_way(item)
    if ERASED_AT in item:
        return Judgement(go=False, why="its recipient was erased, so it is never sent again")
    status, error = str(item["status"]), item.get("error", {})
    if error.get("code") == "outcome_unknown":
        reason = "its outcome is unknown: it may have arrived, so ask its provider first"
        return Judgement(go=True, why=reason, twice=True)
    reached = ARRIVED.get(status) or _partly(item, status)
    if reached:
        again = "it may arrive twice" if force else f"it would arrive twice{FORCED}"
        return Judgement(force, f"{status}: {reached}, so {again}", twice=True)
    if (code := error.get("code")) in CANCELLED:
        reason = f"{status}: {error.get('message')}. {CANCELLED[code].rstrip('.')}"
        return Judgement(go=False, why=reason)
    if status == "cancelled" and not force:
        return Judgement(go=False, why=f"cancelled: its producer took it back{FORCED}")
    error_text = ": ".join(str(error[name]) for name in ("code", "message") if error.get(name))
    reason = f"{status}: {error_text}" if error_text else status
    # An operator has recorded this outcome, because the real one was unknown: the message may have arrived.
    if error.get("code") == "settled" and ("unsettled_tries" in item or "provider_id" in item):
        return Judgement(go=True, why=f"{reason}; an earlier try may have arrived", twice=True)
    return Judgement(go=True, why=reason)


def _under_way(item: Item) -> Judgement:
    status = str(item.get("status", ""))
    if "dead_lettered_at" in item:
        return Judgement(go=False, why=f"{status}: it is a dead letter")
    if awaits_queuing(item):
        return Judgement(go=True, why="its next attempt is prepared, but not started: it is queued again")
    if status == "scheduled" and WAIT in item:
        return Judgement(go=False, why=f"scheduled: it waits for {WAITS_FOR[item[WAIT]['reason']]}")
    return Judgement(go=False, why=f"{status}: it is on its way")


def _partly(item: Item, status: str) -> str:
    """Return a reason if some recipients have received the message, or may have, or else an empty text."""
    entries = item.get("recipients", {}).values()
    if status not in _UNREACHED[:2] or all(entry.get("status") in _UNREACHED for entry in entries):
        return ""
    return "some of its recipients have received it"


class Resender:
    """Sends messages of one stage again. With `force`, it also sends messages that arrived, were cancelled,
    or would be suppressed.

    `look` renders a message as the stage's sender would (see `Previews.look`), and raises Invalid.
    """

    def __init__(self, stage: DeployedStage, look: Callable[[Message], object], *, force: bool) -> None:
        self._stage = stage
        self._render = look
        self._force = force
        self._requeuer = Requeuer(stage)
        self._choices = Choices(
            Suppressions(stage.dynamodb, stage.name("suppressions")),
            Preferences(stage.dynamodb, stage.name("preferences")),
        )

    def send(self, ready: Sequence[MessageResult], reason: str = "") -> list[MessageResult]:
        """Reopen the ready messages, for a reason or for none, and then queue them. Each is evaluated once
        more, because it may have changed."""
        self._stage.deeds.record("send again", map(thing_of, ready), reason)
        with ThreadPoolExecutor(WORKERS) as pool:
            done = list(pool.map(self._reopen, map(str, count()), ready))
        failed = self._requeuer.send(queued for _, queued in done if queued is not None)
        return [
            structs.replace(message, result="unqueued", why=_UNTAKEN) if str(number) in failed else message
            for number, (message, _) in enumerate(done)
        ]

    def look(self, ref: MessageRef) -> tuple[MessageResult, Item, Item | None]:
        """Return a message's state, its ledger item, and the item to send, if any."""
        item = found(self._stage, ref)
        if isinstance(item, str):
            return MessageResult(ref.id, ref.event_type or "", "", "refused", item), {}, None
        judgement = judge(item, force=self._force)
        content = self._content(item) if judgement.go else None
        if judgement.go:
            judgement = self._fit(item, content, judgement)
        message = MessageResult(
            item["id"],
            item["event_type"],
            str(item.get("status", "")),
            "ready" if judgement.go else "refused",
            judgement.why,
            next_attempt(item) if judgement.go else None,
            judgement.twice,
        )
        return message, item, content

    def _content(self, item: Item) -> Item | None:
        """Return the item to send, from the mailbox, or for a fax from the ledger. Return None if the mailbox
        item no longer exists."""
        if item["event_type"] == "fax":
            return fax_of(item)
        key = Key(item["id"], item["event_type"])
        return next(iter(self._stage.items("mailbox", key)), None)

    def _fit(self, item: Item, content: Item | None, judgement: Judgement) -> Judgement:
        """Return the judgement, or a refusal if the content cannot be sent."""
        # Under a new id the ledger does not prevent a second arrival, so the reason is repeated.
        prefix = f"{judgement.why}; " if judgement.twice else ""
        anew = f"{prefix}to send it after all, put it into the mailbox under a new id"
        if content is None:
            return Judgement(go=False, why=f"it is no longer in the mailbox; {anew}")
        try:
            message = self._requeuer.read(content, next_attempt(item))
            self._render(message)
        except Invalid as fault:
            return Judgement(go=False, why=f"it would fail: {fault}; {anew}")
        blocked = "" if self._force else self._blocked(message)
        if blocked:
            reason = f"it would be suppressed again: {blocked}{SUPPRESSED}"
            return Judgement(go=False, why=reason)
        return judgement

    def _blocked(self, message: Message) -> str:
        """Return why every recipient is suppressed, or an empty text if some are not, or for a channel
        without suppression. Raises UnprocessedKeys."""
        addressees = {Addressee(recipient, message.topic) for recipient in message.addressees}
        if not addressees:
            return ""
        blocked = self._choices.find(message.event_type, addressees)
        return next(iter(blocked.values())).sentence if len(blocked) == len(addressees) else ""

    def _reopen(self, reference: str, ready: MessageResult) -> tuple[MessageResult, tuple[str, Entry] | None]:
        """Reopen a message. Return its result, and its queue message, which is None if it was not reopened or
        if the function `outcomes` makes it. Does not raise AWS's errors, because other messages of the same
        step may be reopened already, and have to be queued."""
        try:
            message, item, content = self.look(MessageRef(ready.id, ready.event_type))
        except _FAULTS as fault:
            return ready.refused(f"it could not be read, and was not changed: {fault}; run this again"), None
        if message.result != "ready" or content is None:
            return message, None
        status, attempt = message.status, message.attempt
        if status != "retrying" and (status, attempt) != (ready.status, ready.attempt):
            # The operator has confirmed the state that was shown, and no other state.
            return message.refused(f"{status}: it has changed since it was shown; run this again"), None
        try:
            if status != "retrying":
                attempt = self._next_life(item, message.may_arrive_twice)
        except _FAULTS as fault:
            reason = f"it may be reopened, but is not queued: {fault}; run this again"
            return structs.replace(message, result="unqueued", why=reason), None
        if attempt is None:
            return message.refused(
                "it has changed just now: somebody else or a function was faster, or an event came"
            ), None
        resent = structs.replace(message, result="resent", attempt=attempt)
        if message.event_type == "fax":
            return resent, None
        return resent, self._requeuer.entry(reference, self._started_now(content), attempt)

    def _started_now(self, content: Item) -> Item:
        """Return the item to send; a message of a campaign's run gets the present time as its start. The
        operator has decided about this message after the earlier starts and stops of the run, which would
        cancel it. A pause still lets it wait, and a later stop or start of the run still cancels it."""
        if CAMPAIGN_START not in content:
            return content
        start = {**content[CAMPAIGN_START], "start": milliseconds(self._stage.clock())}
        return {**content, CAMPAIGN_START: start}

    def _next_life(self, item: Item, twice: bool) -> int | None:
        """Reopen the item. Return the number of the next attempt, or None if the item has changed since it
        was read."""
        key = Key(item["id"], item["event_type"])
        token = token_hex(16)
        attempt = self._stage.ledger(lambda: token).reopen(key, item, arrived=twice)
        if attempt is not None:
            return attempt
        ours = self._stage.written(key, token)
        return next_attempt(ours) if ours is not None and "completedAt" not in ours else None
