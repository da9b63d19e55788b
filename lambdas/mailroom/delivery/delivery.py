"""One message's way to its provider: claim, look for evidence, prepare, submit, record."""

from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from msgspec import structs

from mailroom.aws import queues
from mailroom.clock import milliseconds
from mailroom.delivery.worker import QueueRecord, Tools, Wait
from mailroom.environment import Sender, SuppressingSender
from mailroom.errors import ClaimLost, Invalid
from mailroom.ledger.items import NOWHERE, Claim, Claimed, InProgress, OutOfSequence
from mailroom.ledger.ledger import NewClaim
from mailroom.message.message import Message, parse
from mailroom.message.outcome import (
    Evidence,
    Misconfigured,
    NotFound,
    Outcome,
    Rejected,
    Retry,
    Sent,
    Unknowable,
    Unready,
)
from mailroom.recipients.choices import (
    AllowedRecipients,
    Choices,
    Preferences,
    Reason,
    Suppression,
    Suppressions,
    Unwanted,
    Wanted,
)
from mailroom.telemetry import logger

M = TypeVar("M", bound=Message)
R = TypeVar("R")

_HELD = (
    "an earlier try may have reached the provider, and it is not sent again (on_unknown: hold, or it has "
    "expired, or its recipient may not get it now); ask the provider, and resend it by hand if it never "
    "arrived"
)

_IN_DOUBT = "it may have been sent: the outcome of {} tries is unknown"


class Adapter(Protocol[M, R]):
    """A provider, as a delivery sees it. It knows nothing of queues, tables or retries."""

    @property
    def provider(self) -> str:
        """The provider's name in the ledger."""

    @property
    def account(self) -> str | Unready | None:
        """Where the next submit goes, as far as that one's answer counts later: the provider, and our account
        there; or why nothing can be submitted. None: nobody will be asked."""

    @property
    def contract(self) -> type[M]:
        """The messages that it takes."""

    def prepare(self, message: M) -> R:
        """All that comes before the provider is asked. Raises Invalid; any other error proves it unsent."""

    def submit(self, request: R) -> Outcome:
        """One call to the provider. An exception means that nobody knows whether it was accepted."""

    def look_up(self, message: M, since: int, known: Container[str]) -> Evidence:
        """What became of a try that began at `since` (epoch milliseconds) and was not heard of again.

        `known` holds provider ids that are other messages', or other attempts': none of them is this one.
        """


@dataclass(frozen=True)
class Steps(Generic[M]):
    """The steps of a delivery that a channel takes in a way of its own. None stands for the common step."""

    begin: Callable[[Sequence[M]], None] | None = None
    """Asks what is needed for a whole batch."""
    unwanted: Callable[[M], dict[str, Unwanted]] | None = None
    """Answers who of those that a message reaches may not get it, and why. Asked after it is known that
    nothing was sent, or that this cannot be known. Raises Invalid."""
    accepted: Callable[[Claimed, M, Sent, QueueRecord], Wait] | None = None
    """Follows a submit that the provider has just accepted."""
    already_submitted: Callable[[Claimed, M, Sent, QueueRecord], Wait] | None = None
    """Follows evidence that the provider accepted the message from an earlier invocation."""
    suppress: Callable[[M, Rejected], None] | None = None
    """Acts on a recipient that no longer exists, or has opted out at the provider."""
    retried: Callable[[M, QueueRecord], None] | None = None
    """Acts on a message that the provider did not take this time."""
    retry_wait: Callable[[int, float], float] | None = None
    """Seconds until the next try after the n-th receive; gets the least wait that the provider asked for."""
    line_seconds: float | None = None
    """A message that was submitted on the same line (number) more than so many seconds before a try is no
    evidence of that try: it may be another message. None: look-ups do not use lines."""
    last_submit_receive: int | None = None
    """No receive after this one submits. None: each receive may submit."""
    payload_is_content: bool = False
    """Whether the provider takes the payload itself, which then holds no attributes of the message."""


class Delivery(Generic[M, R]):
    """Delivers one message at a time, each at most once an attempt."""

    def __init__(
        self, settings: Sender, adapter: Adapter[M, R], tools: Tools, steps: Steps[M] | None = None
    ) -> None:
        self._settings = settings
        self._adapter = adapter
        self._contracts = {settings.channel: adapter.contract}
        self._tools = tools
        self._ledger = tools.ledger
        self._tally = tools.tally
        self._steps = Steps[M]() if steps is None else steps
        self._begun: dict[int, NewClaim | Claimed] = {}
        only = settings.recipients_only
        self._allowed = (
            None if only is None else AllowedRecipients(settings.channel, only, settings.redirect_to)
        )

    def read(self, body: dict[str, Any]) -> tuple[dict[str, Any], M | Invalid]:
        """The item and its message, or what is wrong with it. Raises Malformed."""
        try:
            return body, parse(body, self._contracts)
        except Invalid as fault:
            return body, fault

    def begin(self, messages: Sequence[tuple[M, QueueRecord]]) -> None:
        if self._steps.begin is not None:
            self._steps.begin([message for message, _ in messages])
        self._begun = self._claimed_together(messages)

    def retry_wait(self, receives: int, least: float = 0) -> float:
        """Seconds until the next try after the n-th receive, growing and jittered, `least` where it can be.

        Never over the cap: the queue's retention is derived from it.
        """
        if self._steps.retry_wait is not None:
            return self._steps.retry_wait(receives, least)
        cap = self._settings.backoff_cap_seconds
        wait = backoff(receives, self._settings.backoff_seconds, cap, self._tools.jitter)
        return max(min(least, cap), wait)

    def deliver(self, message: M | Invalid, record: QueueRecord) -> Wait:
        if isinstance(message, Invalid):
            return self.refuse(message, record)
        claim = self._claim(message, record)
        if claim is None:
            return 0
        if isinstance(claim, InProgress):
            return claim.seconds + 1
        if isinstance(claim, OutOfSequence):
            logger.error("no attempt leads up to this one", attempt=message.attempt)
            self._tally.add("Malformed")
            return queues.AT_ONCE
        if not isinstance(claim, Claimed):
            return self._tally.note("Duplicates", "already done", found=type(claim).__name__.lower())
        try:
            return self._attempt(claim, message, record)
        except ClaimLost:
            raise
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the record
            # The claim stands, so that whoever gets the record after the lease looks for evidence first.
            logger.exception("outcome unknown; the claim stands until its lease ends")
            self._tally.add("Unknown")
            return self._settings.lease_seconds + 1

    def _claim(self, message: M, record: QueueRecord) -> Claim | None:
        """Take the message for this worker, or learn why not. None: no time is left to submit it."""
        begun = self._begun.get(id(message))
        if self.in_time(record):
            if isinstance(begun, Claimed):
                return begun
            return self._ledger.claim(*(begun or self._wanted(message, self._adapter.account)))
        # This write has to fit into the function's time, too.
        if begun is not None and record.remaining() / 1000 > self._settings.record_seconds:
            self._give_back(begun)
        return None

    def _give_back(self, begun: NewClaim | Claimed) -> None:
        """Release a claim of which nothing was submitted, if it was made."""
        made = begun if isinstance(begun, Claimed) else Claimed(begun.message.key, begun.token, None, None)
        try:
            self._ledger.release(made)
        except ClaimLost:
            pass  # it was never made
        except Exception:  # noqa: BLE001 - logged; the claim ends with its lease
            logger.warning("a claim was not given back", exc_info=True)

    def _wanted(self, message: M, account: str | Unready | None) -> NewClaim:
        elsewhere = None if self._allowed is None else self._allowed.redirect(message.reached)
        return NewClaim(message, _account(account, elsewhere), elsewhere, self._ledger.new_token())

    def _claimed_together(self, messages: Sequence[tuple[M, QueueRecord]]) -> dict[int, NewClaim | Claimed]:
        """Claims of this batch's first attempts, by the message's `id`: made, or yet to be made.

        A crash leaves the outcome of each unknown. `hold` would give all of them up, and a look-up by lines
        could take one that was not sent for its twin that was. There each is claimed when its turn comes.
        """
        whole = [each for each in messages[::-1] if _is_new(*each) and self.in_time(each[1])]
        new = {message.key: message for message, _ in whole}  # of one that comes twice, the first
        begun: dict[int, NewClaim | Claimed] = {}
        alone = self._settings.on_unknown == "hold" or self._steps.line_seconds is not None
        if alone or len(new) < 2:
            return begun
        try:
            account = self._adapter.account
            wanted = [self._wanted(message, account) for message in new.values()]
            begun = {id(each.message): each for each in wanted}
            made = dict(zip(begun, self._ledger.claim_new(wanted), strict=True))
        except Exception:  # noqa: BLE001 - logged; each message is claimed by itself, and waits where it cannot
            logger.warning("not claimed together", exc_info=True)
            return begun
        if odd := {each for each in made.values() if isinstance(each, str)} - {"DuplicateItem"}:
            logger.warning("not all claimed together", reasons=sorted(odd))
        return begun | {at: claim for at, claim in made.items() if isinstance(claim, Claimed)}

    def refuse(self, fault: Invalid, record: QueueRecord) -> Wait:
        """End as failed what can never be sent."""
        if not self._ledger.refuse(record.item, "invalid", str(fault), self._at_fault(fault)):
            return self.retry_wait(record.receives)
        return self._tally.note("Rejected", "refused", field=fault.field)

    def _at_fault(self, fault: Invalid) -> str:
        return fault.attribute(self._adapter.contract.__struct_encode_fields__)

    def in_time(self, record: QueueRecord) -> bool:
        """Whether a submit that starts now, or when its turn comes, is over and recorded in time."""
        return self._tools.pace.left() < self._spare(record)

    def measure(self, message: M, record: QueueRecord) -> None:
        """Note how long it took from the put, or from its time. A later attempt says nothing of that.

        Nothing may fail between the provider's yes and its record, so it is measured after both.
        """
        if record.since is not None and message.attempt == 1:
            waited = self._tools.clock() - max(record.since, message.due() or 0.0)
            self._tally.waits.append(max(0.0, waited))

    def _attempt(self, claim: Claimed, message: M, record: QueueRecord) -> Wait:
        if claim.since is not None or claim.provider_id is not None:
            evidence = self._evidence(claim, message)
            if isinstance(evidence, Sent):
                return (self._steps.already_submitted or self._already_submitted)(
                    claim, message, evidence, record
                )
            if isinstance(evidence, NotFound):
                claim = structs.replace(claim, since=None)
        unsure = claim.since is not None
        if unsure and self._settings.on_unknown == "hold":
            return self._hold(claim)
        if message.expired(self._tools.clock()):
            if unsure:
                return self._hold(claim)  # "not sent" might not be so
            self._ledger.fail(claim, "expired", f"expires_at: {message.expires_at} is past")
            return self._tally.note("Expired", "expired")
        if unsure and not claim.redriven and (wait := self._in_doubt(claim)) is not None:
            return wait
        with self._tools.large if message.objects else nullcontext():
            return self._send(claim, message, record)

    def _evidence(self, claim: Claimed, message: M) -> Evidence:
        """What became of an earlier worker's try."""
        # A provider's id in the ledger proves acceptance; asking, or a provider that cannot tell, would not.
        if claim.provider_id is not None:
            return Sent(claim.provider_id)
        if not claim.accounts:
            return NotFound()  # no try has named an account, so none has submitted
        account = self._adapter.account  # before the look-up, which then asks there
        if isinstance(account, Unready):
            raise RuntimeError(account.reason)  # noqa: TRY004 - nothing was asked, so nothing is decided
        since = claim.since or 0
        known: Container[str] = ()
        submitted = _submitted(claim, message)
        if self._steps.line_seconds is not None and submitted.line is not None:
            known = self._ledger.ids_on_line(submitted.line, since - self._steps.line_seconds * 1000)
        found = self._adapter.look_up(submitted, since, known)
        there = _account(account, claim.redirected_to)
        if isinstance(found, NotFound) and there is not None and not claim.accounts <= {there}:
            # The settings or the credentials were others then: who has it was not asked.
            return Unknowable()
        return found

    def _hold(self, claim: Claimed) -> Wait:
        """An outcome that cannot be known stays so."""
        self._ledger.fail(claim, "outcome_unknown", _HELD)
        return self._tally.note("Held", "held: the outcome of an earlier try is unknown")

    def _in_doubt(self, claim: Claimed) -> Wait:
        """How long a message waits that may have been sent; None: it is sent again now.

        Each resend waits longer than the one before, so that a provider whose answers are lost repeats
        little, and evidence may come. After the last one only a person sends it again: it becomes a dead
        letter, and its redrive is that person's word for one more.
        """
        tries, delays = claim.in_doubt, self._settings.resend_delays
        over = len(tries) > len(delays)
        # A line that may be busy is not freed by a dead letter.
        wait = (self._steps.line_seconds or 0) if over else delays[len(tries) - 1]
        left = tries[-1] / 1000 + wait - self._tools.clock()
        if left <= 0 and not over:
            return None
        logger.warning("in doubt, and not sent again now", tries=len(tries), seconds=max(0, round(left)))
        return self._unsent(
            claim, left + 1 if left > 0 else queues.AT_ONCE, "in_doubt", _IN_DOUBT.format(len(tries))
        )

    def _send(self, claim: Claimed, message: M, record: QueueRecord) -> Wait:
        try:
            whole = self._whole(message)
            permitted = self._permitted(claim, whole)
            if isinstance(permitted, Unwanted):
                in_doubt = claim.since is not None
                return self._hold(claim) if in_doubt else self._suppress(claim, permitted)
            request = self._adapter.prepare(_submitted(claim, permitted))
            unready = self._unready(claim)
        except Invalid as fault:
            self._ledger.fail(claim, "invalid", str(fault), self._at_fault(fault))
            return self._tally.note("Rejected", "rejected", field=fault.field)
        except ClaimLost:
            raise
        except Exception as trouble:  # noqa: BLE001 - logged, and the queue keeps the record
            logger.exception("not prepared; it goes back to the queue unsent")
            return self._unsent(claim, self.retry_wait(record.receives), "unprepared", type(trouble).__name__)
        if unready is not None:
            return self._conclude(claim, message, unready, record)
        return self._submit(claim, message, request, record)

    def _unready(self, claim: Claimed) -> Unready | None:
        """Why nothing may be submitted now. After a crash, "not found" is proof from the account that the
        claim names, and from no other."""
        account = self._adapter.account
        if isinstance(account, Unready):
            return account
        same = _account(account, claim.redirected_to) == claim.account
        return None if same else Retry("the provider's account has changed since the claim")

    def _submit(self, claim: Claimed, message: M, request: R, record: QueueRecord) -> Wait:
        if not self._may_submit(record):
            return self._unsent(claim, 0)
        if claim.since is not None:
            said = "resending: the outcome of an earlier try is unknown"
            self._tally.note("Resent", said, since=claim.since)
        return self._conclude(claim, message, self._adapter.submit(request), record)

    def _whole(self, message: M) -> M:
        """The message with its payload's attributes."""
        if message.payload_ref is None or self._steps.payload_is_content:
            return message
        return parse(self._tools.payloads.expand(message, message.payload_ref), self._contracts)

    def _permitted(self, claim: Claimed, message: M) -> M | Unwanted:
        """The message to those who may get it, or why nobody may."""
        asked = self._steps.unwanted or (lambda _: {})
        unwanted = asked(message)
        if claim.redirected_to is not None:
            # Its topic is its recipients' choice; but who gets it in their place may have said STOP.
            elsewhere = asked(structs.replace(_submitted(claim, message), topic=None))
            if elsewhere:
                return next(iter(elsewhere.values()))
        elif self._allowed is not None:
            unwanted |= self._allowed.refused(message.reached)
        if not unwanted:
            return message
        left = message.without(unwanted)
        if left is message or not left.addressees:
            return next(iter(unwanted.values()))
        for recipient, why in unwanted.items():
            self._ledger.suppress_one(claim, recipient, why.sentence)
        self._tally.note("SuppressedInPart", "sent to some of its recipients", suppressed=len(unwanted))
        return left

    def _suppress(self, claim: Claimed, why: Unwanted) -> Wait:
        self._ledger.suppress(claim, why.code, why.sentence)
        return self._tally.note("Suppressed", "suppressed", code=why.code)

    def _may_submit(self, record: QueueRecord) -> bool:
        """Waits for the turn to submit. A record that may not submit is released, and comes back at once."""
        last = self._steps.last_submit_receive
        if last is not None and record.receives > last:
            logger.error("not submitted: received too often already", receives=record.receives)
            return False
        return self._tools.pace.wait(self._spare(record))

    def _spare(self, record: QueueRecord) -> float:
        """Seconds that a record may wait for its turn: what follows is a submit and its record, and the gap
        after it."""
        needed = max(self._settings.submit_seconds + self._settings.record_seconds, self._tools.pace.gap)
        return record.remaining() / 1000 - needed

    def _conclude(self, claim: Claimed, message: M, outcome: Outcome, record: QueueRecord) -> Wait:
        match outcome:
            case Sent():
                return (self._steps.accepted or self._accepted)(claim, message, outcome, record)
            case Rejected():
                return self._rejected(claim, message, outcome, record)
            case Retry(reason, after):
                if self._steps.retried is not None:
                    self._steps.retried(message, record)
                self._tally.note("Retried", "not sent; it goes back to the queue", reason=reason)
                return self._unsent(claim, self.retry_wait(record.receives, after), "retry", reason)
            case Misconfigured(reason):
                logger.error("not sent: a fault of configuration", reason=reason)
                self._tally.add("Misconfigured")
                return self._unsent(claim, self._settings.misconfigured_seconds, "misconfigured", reason)

    def _accepted(self, claim: Claimed, message: M, sent: Sent, record: QueueRecord) -> Wait:
        # No log line where all goes well: the ledger says it, and one would cost as much as all the rest.
        self._tally.add("Sent")
        try:
            self._complete(claim, message, sent)
        except Exception:
            logger.error("sent, but not recorded", provider_id=sent.provider_id)
            raise
        self.measure(message, record)
        return None

    def _already_submitted(self, claim: Claimed, message: M, sent: Sent, _record: QueueRecord) -> Wait:
        self._complete(claim, message, sent)
        return self._tally.note("Recovered", "an earlier try was accepted", provider_id=sent.provider_id)

    def _complete(self, claim: Claimed, message: M, sent: Sent) -> None:
        line = _submitted(claim, message).line
        self._ledger.complete(claim, self._adapter.provider, sent.provider_id, sent.facts, line)

    def _rejected(self, claim: Claimed, message: M, outcome: Rejected, record: QueueRecord) -> Wait:
        suppresses = self._steps.suppress if claim.redirected_to is None else None
        if (outcome.gone or outcome.opted_out) and suppresses is not None:
            try:
                suppresses(message, outcome)
            except Exception:  # noqa: BLE001 - logged; it was not sent, so trying again costs a call
                logger.exception("a recipient could not be put on the suppression list")
                return self._unsent(claim, self.retry_wait(record.receives), "unmarked", outcome.reason)
        if outcome.opted_out:
            return self._suppress(claim, Unwanted("suppressed", outcome.reason))
        self._ledger.fail(claim, "rejected", outcome.reason)
        return self._tally.note("Rejected", "rejected", reason=outcome.reason)

    def _unsent(self, claim: Claimed, wait: float, code: str = "", reason: str = "") -> Wait:
        """Hand the message back; `code` and `reason` say what kept it from being sent, unless only its time
        did."""
        self._ledger.release(claim, code, reason)
        return wait


class RecipientSteps(Generic[M]):
    """Steps of a delivery to people: whoever is on the suppression list gets nothing more, and whoever has
    opted out of a topic gets nothing of that. Both are asked once a batch. A recipient that turns out to be
    gone, or to have opted out at the provider, enters the list."""

    def __init__(self, settings: SuppressingSender, tools: Tools) -> None:
        self._channel = settings.channel
        self._tools = tools
        self._list = Suppressions(tools.dynamodb, settings.suppressions_table, tools.clock)
        preferences = Preferences(tools.dynamodb, settings.preferences_table, tools.clock)
        self._choices = Choices(self._list, preferences)
        self._asked: set[Wanted] = set()
        self._unwanted: dict[Wanted, Unwanted] = {}

    def begin(self, messages: Iterable[M]) -> None:
        """Ask for all recipients of a batch in one read."""
        self._asked, self._unwanted = set(), {}
        try:
            self._ask(each for message in messages for each in _wanted(message))
        except Exception:  # noqa: BLE001 - logged; each message asks for itself, and waits where it cannot
            logger.warning("who may get nothing could not be read", exc_info=True)

    def unwanted(self, message: M) -> dict[str, Unwanted]:
        """Who of a message's recipients wants nothing of it, and why."""
        wanted = _wanted(message)
        self._ask(wanted)
        return {each.recipient: self._unwanted[each] for each in wanted if each in self._unwanted}

    def mark(self, message: M, outcome: Rejected) -> None:
        """Put the message's recipients on the suppression list."""
        now = milliseconds(self._tools.clock())
        why: Reason = "stop" if outcome.opted_out else "gone"
        for each in message.addressees:
            self._list.mark(Suppression(each, message.event_type, why, now, outcome.reason, message.id))

    def _ask(self, wanted: Iterable[Wanted]) -> None:
        new = [each for each in wanted if each not in self._asked]
        if new:
            # In this order: for other threads, who was asked for is answered.
            self._unwanted.update(self._choices.find(self._channel, new))
            self._asked.update(new)


def to_people(
    settings: SuppressingSender, adapter: Adapter[M, R], tools: Tools, line_seconds: float | None = None
) -> Delivery[M, R]:
    """A delivery of messages that people may not want."""
    people = RecipientSteps[M](settings, tools)
    steps = Steps(
        begin=people.begin, unwanted=people.unwanted, suppress=people.mark, line_seconds=line_seconds
    )
    return Delivery(settings, adapter, tools, steps)


def _account(account: str | Unready | None, redirected_to: str | None) -> str | None:
    """Where a submit goes. A look-up asks for one recipient: what went to another is elsewhere."""
    if isinstance(account, Unready):
        return NOWHERE
    return account if account is None or redirected_to is None else f"{account} for {redirected_to}"


def _submitted(claim: Claimed, message: M) -> M:
    """The message as it goes to the provider: to its recipients, or to who gets it in their place."""
    return message if claim.redirected_to is None else message.redirected(claim.redirected_to)


def _is_new(message: Message, record: QueueRecord) -> bool:
    """Whether the ledger has no item of it, as far as can be told: one that waited for its time has one."""
    return record.receives == 1 and message.attempt == 1 and message.send_at is None


def backoff(receives: int, base: float, cap: float, random: Callable[[], float]) -> float:
    """Seconds to wait after the n-th receive: base, 2·base, 4·base … up to cap, of which 50 to 100 %, so that
    what failed together does not come back together.

    At least half, because the queue's maxReceiveCount is derived from the shortest sum of these waits.
    """
    whole = min(cap, base * 2.0 ** min(receives - 1, 32))
    return whole * (0.5 + random() / 2)


def _wanted(message: Message) -> list[Wanted]:
    return [Wanted(each, message.topic) for each in message.addressees]
