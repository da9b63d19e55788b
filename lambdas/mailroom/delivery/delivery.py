"""One message's way to its provider: claim, look for evidence, prepare, submit, record.

`Delivery.deliver` is that order, and the promise: a message is submitted at most once an attempt.
"""

from collections import Counter
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, structs

from mailroom.aws import queues
from mailroom.delivery.timing import Timing
from mailroom.delivery.worker import QueueRecord, Tools, Wait
from mailroom.environment import Sender, SuppressingSender
from mailroom.errors import ClaimLost, Invalid
from mailroom.ledger.claims import Claim, Claimed, InProgress, OutOfSequence
from mailroom.ledger.ledger import NewClaim
from mailroom.message.message import DAY_USED_UP, Key, Message, parse
from mailroom.message.outcome import (
    ANY_ACCOUNT,
    Conflict,
    DayUsedUp,
    Evidence,
    Misconfigured,
    NotFound,
    NotReady,
    Outcome,
    Refusal,
    Rejected,
    Repeatable,
    Retry,
    Sent,
    Unknowable,
)
from mailroom.recipients.choices import AllowedRecipients, BatchChoices, Unwanted
from mailroom.telemetry import logger

M = TypeVar("M", bound=Message)
R = TypeVar("R")

_ASK = "ask the provider, and resend it by hand if it never arrived"
_HELD = f"an earlier try may have reached the provider, and it is not sent again ({{}}); {_ASK}"

_USED_UP = "the provider takes no more today; it waits for the day's quota"
_IN_DOUBT = "it may have been sent: the outcome of {} tries is unknown"


class Adapter(Protocol[M, R]):
    """A provider, as a delivery sees it. It knows nothing of queues, tables or retries."""

    @property
    def provider(self) -> str:
        """The provider's name in the ledger."""

    @property
    def account(self) -> str | None:
        """Where the next submit goes, as far as that one's answer counts later: the provider, and our account
        there. None: nobody will be asked. Raises NotReady while nothing can be submitted."""

    @property
    def contract(self) -> type[M]:
        """The messages that it takes."""

    def prepare(self, message: M) -> R:
        """All that comes before the provider is asked. Raises Invalid and NotReady; any other error proves
        the message unsent as well, and lets it wait."""

    def submit(self, request: R) -> Outcome:
        """One call to the provider. An exception means that nobody knows whether it was accepted."""

    def look_up(self, message: M, since: int, known: Container[str]) -> Evidence:
        """What became of a try that began at `since` (epoch milliseconds) and was not heard of again.

        `known` holds provider ids that are other messages', or other attempts': none of them is this one.
        """


class Ended(Struct, frozen=True):
    """A delivery that was over before the submit; `wait` is what `deliver` returns."""

    wait: Wait


class Delivery(Generic[M, R]):
    """Delivers one message at a time. Public methods beside `read`, `begin` and `deliver` are what a channel
    may do in a way of its own; see FaxDelivery."""

    payload_is_content = False
    """Whether the provider takes the payload itself, which then holds no attributes of the message."""

    def __init__(
        self,
        settings: Sender,
        adapter: Adapter[M, R],
        tools: Tools,
        *,
        choices: BatchChoices | None = None,
        line_seconds: float | None = None,
    ) -> None:
        """`choices`: None where no recipient is a person. `line_seconds`: what was submitted on the same line
        (number) more than so many seconds before a try is no evidence of that try: it may be another message.
        None: look-ups do not use lines."""
        self._settings = settings
        self._adapter = adapter
        self._contracts = {settings.channel: adapter.contract}
        self._tools = tools
        self._ledger = tools.ledger
        self._tally = tools.tally
        self._choices = choices
        self._line_seconds = line_seconds
        self._begun: dict[Key, NewClaim | Claimed] = {}
        self._timing = Timing(settings, tools, lambda receives: self.retry_wait(receives))
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
        """Ask and claim for a whole batch what can be asked and claimed at once. Raises nothing."""
        if self._choices is not None:
            self._choices.begin(message for message, _ in messages)
        self._timing.begin(messages)
        self._begun = self._claimed_together(
            [each for each in messages if not self._timing.keeps(each[0].key)]
        )

    def end(self) -> None:
        """Tell the day's budget what was sent. Raises nothing."""
        self._timing.end()

    def deliver(self, message: M | Invalid, record: QueueRecord) -> Wait:
        """Take one message as far as it goes. Raises ClaimLost, and what the ledger raises to a claim: then
        nothing was submitted, or it was not recorded and the claim stands."""
        if isinstance(message, Invalid):
            return self.refuse(message, record)
        if self._timing.keeps(message.key):
            kept = self._timing.kept(message.key)
            return self.refuse(kept, record) if isinstance(kept, Invalid) else kept
        claim = self._claim(message, record)  # 1. claim: from here on it is this worker's alone
        if not isinstance(claim, Claimed):
            return self._not_claimed(claim, message)
        try:
            with self._memory_for(message):
                evidence = self._evidence(claim, message)  # 2. evidence: what became of an earlier try?
                if isinstance(evidence, Sent):
                    return self.already_submitted(claim, message, evidence, record)
                claim = claim.after(evidence)
                # 3. prepare: all that may still say no
                request = self._prepared(claim, message, record, evidence)
                if isinstance(request, Ended):
                    return request.wait
                outcome = self._adapter.submit(request)  # 4. submit: one call, and the only one
                return self._recorded(claim, message, outcome, record)  # 5. record what it proves
        except ClaimLost:
            raise
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the record
            # The claim stands, so that whoever gets the record after the lease looks for evidence first.
            logger.exception("outcome unknown; the claim stands until its lease ends")
            self._tally.add("Unknown")
            return self._settings.lease_seconds + 1

    def _claim(self, message: M, record: QueueRecord) -> Claim | None:
        """Take the message for this worker, or learn why not. None: no time is left to submit it."""
        begun = self._begun.get(message.key)
        if self.in_time(record):
            if isinstance(begun, Claimed):
                return begun
            return self._ledger.claim(*(begun or self._wanted(message, self._account(), record.since)))
        # This write has to fit into the function's time, too.
        if begun is not None and record.remaining() / 1000 > self._settings.record_seconds:
            self._give_back(begun)
        return None

    def _give_back(self, begun: NewClaim | Claimed) -> None:
        """Release a claim of which nothing was submitted, if it was made."""
        made = begun if isinstance(begun, Claimed) else Claimed(begun.message.key, begun.token)
        try:
            self._ledger.release(made)
        except ClaimLost:
            pass  # it was never made
        except Exception:  # noqa: BLE001 - logged; the claim ends with its lease
            logger.warning("a claim was not given back", exc_info=True)

    def _wanted(self, message: M, account: str | None, put_at: float | None) -> NewClaim:
        elsewhere = None if self._allowed is None else self._allowed.redirect(message.reached)
        return NewClaim(message, _at(account, elsewhere), elsewhere, self._ledger.new_token(), put_at)

    def _account(self) -> str | None:
        """Account of the next submit; None while submitting is impossible."""
        try:
            return self._adapter.account
        except NotReady:
            return None

    def _claimed_together(self, messages: Sequence[tuple[M, QueueRecord]]) -> dict[Key, NewClaim | Claimed]:
        """Claims of this batch's first attempts: made, or yet to be made. What comes twice is left out, and
        each copy claims for itself.

        A crash leaves the outcome of each unknown. `hold` would give all of them up, and a look-up by lines
        could take one that was not sent for its twin that was. There each is claimed when its turn comes.
        """
        copies = Counter(message.key for message, _ in messages)
        new = [
            (each, at.since)
            for each, at in messages
            if _is_new(each, at) and copies[each.key] == 1 and self.in_time(at)
        ]
        if self._settings.on_unknown == "hold" or self._line_seconds is not None or len(new) < 2:
            return {}
        begun: dict[Key, NewClaim | Claimed] = {}
        try:
            account = self._account()
            wanted = [self._wanted(message, account, since) for message, since in new]
            begun = {each.message.key: each for each in wanted}
            made = dict(zip(begun, self._ledger.claim_new(wanted), strict=True))
        except Exception:  # noqa: BLE001 - logged; each message is claimed by itself, and waits where it cannot
            logger.warning("not claimed together", exc_info=True)
            return begun
        if odd := {each for each in made.values() if isinstance(each, str)} - {"DuplicateItem"}:
            logger.warning("not all claimed together", reasons=sorted(odd))
        return begun | {key: claim for key, claim in made.items() if isinstance(claim, Claimed)}

    def _not_claimed(self, claim: Claim | None, message: M) -> Wait:
        """Somebody else has the message, or has done with it; or no time is left (None)."""
        if claim is None:
            return 0
        if isinstance(claim, InProgress):
            return claim.seconds + 1
        if isinstance(claim, OutOfSequence):
            logger.error("no attempt leads up to this one", attempt=message.attempt)
            self._tally.add("Malformed")
            return queues.AT_ONCE
        return self._tally.note("Duplicates", "already done", found=type(claim).__name__.lower())

    def _memory_for(self, message: M) -> AbstractContextManager[Any]:
        return self._tools.large if message.objects else nullcontext()

    def _evidence(self, claim: Claimed, message: M) -> Evidence:
        """What became of an earlier worker's try; where nobody has tried, nobody has sent it."""
        # A provider's id in the ledger proves acceptance; asking, or a provider that cannot tell, would not.
        if claim.checkpoint is not None:
            return Sent(claim.checkpoint.provider_id)
        if not claim.unsettled:
            return NotFound()
        since = claim.unsettled[0].began
        account = self._adapter.account  # before the look-up, which then asks there
        known: Container[str] = ()
        submitted = _submitted(claim, message)
        if self._line_seconds is not None and submitted.line is not None:
            known = self._ledger.ids_on_line(submitted.line, since - self._line_seconds * 1000)
        found = self._adapter.look_up(submitted, since, known)
        there = _at(account, claim.redirected_to)
        if isinstance(found, NotFound | Repeatable) and there and not claim.accounts <= {there}:
            # The settings or the credentials were others then: who has it was not asked.
            return Unknowable()
        if isinstance(found, Repeatable) and found.until <= self._tools.clock():
            return Unknowable()  # its key is forgotten, and would send it anew
        return found

    def _prepared(self, claim: Claimed, message: M, record: QueueRecord, evidence: Evidence) -> R | Ended:
        """The request, for which nothing is left but its submit; or how the delivery ended without one."""
        repeats = isinstance(evidence, Repeatable)
        if (ended := self._not_again(claim, message, repeats=repeats)) is not None:
            return ended
        prepare = evidence.prepare if isinstance(evidence, Repeatable) else self._adapter.prepare
        try:
            permitted = self.permitted(claim, self._whole(message))
            if isinstance(permitted, Unwanted):
                return Ended(self._suppress(claim, permitted))
            submitted = _submitted(claim, permitted)
            request: R = prepare(submitted)
            self._check_account(claim)
        except Invalid as fault:
            return Ended(self._fail(claim, "invalid", str(fault), self._at_fault(fault)))
        except NotReady as why:
            self._timing.answered(claim.key, why.outcome)
            return Ended(self._refused(claim, message, why.outcome, record))
        except ClaimLost:
            raise
        except Exception as trouble:  # noqa: BLE001 - logged, and the queue keeps the record
            logger.exception("not prepared; it goes back to the queue unsent")
            wait = self.retry_wait(record.receives)
            return Ended(self._unsent(claim, wait, "unprepared", type(trouble).__name__))
        if (ended := self._in_turn(claim, record, repeats=repeats)) is None:
            self._timing.spend(submitted)
        return ended or request

    def _not_again(self, claim: Claimed, message: M, *, repeats: bool) -> Ended | None:
        """How a message ends that may not be submitted any more, or not now; None: it may. `repeats`: an
        earlier try's request would go again, and send nothing twice."""
        unsure = bool(claim.unsettled)
        expired = message.expired(self._tools.clock())
        if expired:
            reason = f"expires_at: {message.expires_at} is past"
            return Ended(self._fail(claim, "expired", reason, metric="Expired"))
        if unsure and self._settings.on_unknown == "hold" and not repeats:
            return Ended(self._hold(claim, _HELD.format("on_unknown: hold")))
        return self._in_doubt(claim) if unsure and not repeats and not claim.redriven else None

    def _fail(
        self, claim: Claimed, code: str, reason: str, field: str = "", metric: str = "Rejected"
    ) -> Wait:
        """End a message as failed, and so as not sent. If an earlier try is in doubt, nobody knows that: the
        message is held."""
        if claim.unsettled:
            return self._hold(claim, _HELD.format(reason))
        self._ledger.fail(claim, code, reason, field)
        # The reason of an invalid item may quote it, and no log does.
        return self._tally.note(metric, metric.lower(), **({"field": field} if field else {"reason": reason}))

    def _hold(self, claim: Claimed, why: str) -> Wait:
        """End a message whose outcome cannot be known as `outcome_unknown`."""
        self._ledger.fail(claim, "outcome_unknown", why)
        return self._tally.note("Held", "held: the outcome of an earlier try is unknown")

    def _in_doubt(self, claim: Claimed) -> Ended | None:
        """How long a message waits that may have been sent; None: it is sent again now.

        Each resend waits longer than the one before, so that a provider whose answers are lost repeats
        little, and evidence may come. After the last one only a person sends it again: it becomes a dead
        letter, and its redrive is that person's word for one more.
        """
        tries, delays = claim.unsettled, self._settings.resend_delays
        over = len(tries) > len(delays)
        # A line that may be busy is not freed by a dead letter.
        wait = (self._line_seconds or 0) if over else delays[len(tries) - 1]
        left = tries[-1].began / 1000 + wait - self._tools.clock()
        if left <= 0 and not over:
            return None
        logger.warning("in doubt, and not sent again now", tries=len(tries), seconds=max(0, round(left)))
        wait = left + 1 if left > 0 else queues.AT_ONCE
        return Ended(self._unsent(claim, wait, "in_doubt", _IN_DOUBT.format(len(tries))))

    def _whole(self, message: M) -> M:
        """The message with its payload's attributes."""
        if message.payload_ref is None or self.payload_is_content:
            return message
        return parse(self._tools.payloads.expand(message, message.payload_ref), self._contracts)

    def permitted(self, claim: Claimed, message: M) -> M | Unwanted:
        """The message to those who may get it, or why nobody may. Raises Invalid."""
        unwanted = self._unwanted(message)
        if claim.redirected_to is not None:
            # Its topic is its recipients' choice; but who gets it in their place may have said STOP.
            elsewhere = self._unwanted(structs.replace(_submitted(claim, message), topic=None))
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

    def _unwanted(self, message: M) -> dict[str, Unwanted]:
        return {} if self._choices is None else self._choices.unwanted(message)

    def _check_account(self, claim: Claimed) -> None:
        """Raise NotReady where the submit would not go where the claim says. After a crash, "not found" is
        proof from the account that the claim names, and from no other."""
        if _at(self._adapter.account, claim.redirected_to) != claim.account:
            raise NotReady(Retry("the provider's account has changed since the claim"))

    def _in_turn(self, claim: Claimed, record: QueueRecord, *, repeats: bool) -> Ended | None:
        """Wait for the turn to submit; how the delivery ends where that does not come in time."""
        if not self.may_submit(record):
            return Ended(self._unsent(claim, 0))
        if claim.unsettled:
            metric, how = ("Repeated", "repeating") if repeats else ("Resent", "resending")
            said = f"{how}: the outcome of an earlier try is unknown"
            self._tally.note(metric, said, since=claim.unsettled[0].began)
        return None

    def may_submit(self, record: QueueRecord) -> bool:
        """Waits for the turn to submit. A record that may not submit is released, and comes back at once."""
        return self._tools.pace.wait(self._spare(record))

    def in_time(self, record: QueueRecord) -> bool:
        """Whether a submit that starts now, or when its turn comes, is over and recorded in time."""
        return self._tools.pace.left() < self._spare(record)

    def _spare(self, record: QueueRecord) -> float:
        """Seconds that a record may wait for its turn: what follows is a submit and its record, and the gap
        after it."""
        needed = max(self._settings.submit_seconds + self._settings.record_seconds, self._tools.pace.gap)
        return record.remaining() / 1000 - needed

    def _recorded(self, claim: Claimed, message: M, outcome: Outcome, record: QueueRecord) -> Wait:
        self._timing.answered(claim.key, outcome)
        if isinstance(outcome, Sent):
            return self.accepted(claim, message, outcome, record)
        self._timing.unspend(message.key)
        if isinstance(outcome, Conflict):
            return self._hold(claim, f"{outcome.reason}; {_ASK}")
        return self._refused(claim, message, outcome, record)

    def accepted(self, claim: Claimed, message: M, sent: Sent, record: QueueRecord) -> Wait:
        """Follows a submit that the provider has just accepted."""
        # No log line where all goes well: the ledger says it, and one would cost as much as all the rest.
        self._tally.add("Sent")
        try:
            self._complete(claim, message, sent)
        except Exception:
            logger.error("sent, but not recorded", provider_id=sent.provider_id)
            raise
        self.measure(message, record)
        return None

    def already_submitted(self, claim: Claimed, message: M, sent: Sent, record: QueueRecord) -> Wait:  # noqa: ARG002 - a fax's needs it
        """Follows evidence that the provider accepted the message from an earlier invocation."""
        self._complete(claim, message, sent)
        return self._tally.note("Recovered", "an earlier try was accepted", provider_id=sent.provider_id)

    def _complete(self, claim: Claimed, message: M, sent: Sent) -> None:
        line = _submitted(claim, message).line
        self._ledger.complete(claim, self._adapter.provider, sent.provider_id, sent.facts, line)

    def measure(self, message: M, record: QueueRecord) -> None:
        """Note how long it took from the put, or from its time. A later attempt says nothing of that.

        Nothing may fail between the provider's yes and its record, so it is measured after both.
        """
        if record.since is not None and message.attempt == 1:
            waited = self._tools.clock() - max(record.since, message.due() or 0.0)
            self._tally.waits.append(max(0.0, waited))

    def _refused(self, claim: Claimed, message: M, refusal: Refusal, record: QueueRecord) -> Wait:
        match refusal:
            case Rejected():
                return self._rejected(claim, message, refusal, record)
            case Retry(reason, after):
                self.retried(message, record)
                self._tally.note("Retried", "not sent; it goes back to the queue", reason=reason)
                return self._unsent(claim, self.retry_wait(record.receives, after), "retry", reason)
            case DayUsedUp(reason):
                self._tally.note("DayUsedUp", "not sent: the provider takes no more today", reason=reason)
                self._ledger.release(claim, DAY_USED_UP, _USED_UP)
                return self._timing.used_up(message, record)
            case Misconfigured(reason):
                logger.error("not sent: a fault of configuration", reason=reason)
                self._tally.add("Misconfigured")
                return self._unsent(claim, self._settings.misconfigured_seconds, "misconfigured", reason)

    def _rejected(self, claim: Claimed, message: M, outcome: Rejected, record: QueueRecord) -> Wait:
        choices = self._choices if claim.redirected_to is None else None
        if (outcome.gone or outcome.opted_out) and choices is not None:
            try:
                choices.mark(message, outcome)
            except Exception:  # noqa: BLE001 - logged; it was not sent, so trying again costs a call
                logger.exception("a recipient could not be put on the suppression list")
                return self._unsent(claim, self.retry_wait(record.receives), "unmarked", outcome.reason)
        if outcome.opted_out:
            return self._suppress(claim, Unwanted("suppressed", outcome.reason))
        return self._fail(claim, "rejected", outcome.reason)

    def _suppress(self, claim: Claimed, why: Unwanted) -> Wait:
        """End a message that nobody may get as suppressed, and so as not sent; held if that is in doubt."""
        if claim.unsettled:
            return self._hold(claim, _HELD.format(why.sentence))
        self._ledger.suppress(claim, why.code, why.sentence)
        return self._tally.note("Suppressed", "suppressed", code=why.code)

    def retried(self, message: M, record: QueueRecord) -> None:
        """Follows a submit that the provider did not take this time."""

    def retry_wait(self, receives: int, least: float = 0) -> float:
        """Seconds until the next try after the n-th receive, growing and jittered, `least` where it can be.

        Never over the cap: the queue's retention is derived from it.
        """
        cap = self._settings.backoff_cap_seconds
        wait = backoff(receives, self._settings.backoff_seconds, cap, self._tools.jitter)
        return max(min(least, cap), wait)

    def _unsent(self, claim: Claimed, wait: float, code: str = "", reason: str = "") -> Wait:
        """Hand the message back; `code` and `reason` say what kept it from being sent, unless only its time
        did."""
        self._ledger.release(claim, code, reason)
        return wait

    def refuse(self, fault: Invalid, record: QueueRecord) -> Wait:
        """End as failed what can never be sent."""
        field = self._at_fault(fault)
        if not self._ledger.refuse(record.item, "invalid", str(fault), field, record.since):
            return self.retry_wait(record.receives)
        return self._tally.note("Rejected", "refused", field=fault.field)

    def _at_fault(self, fault: Invalid) -> str:
        return fault.attribute(self._adapter.contract.__struct_encode_fields__)


def to_people(
    settings: SuppressingSender, adapter: Adapter[M, R], tools: Tools, line_seconds: float | None = None
) -> Delivery[M, R]:
    """A delivery of messages that people may not want."""
    choices = BatchChoices(settings, tools.dynamodb, tools.clock)
    return Delivery(settings, adapter, tools, choices=choices, line_seconds=line_seconds)


def _at(account: str | None, redirected_to: str | None) -> str | None:
    """An account as a claim names it. A look-up asks for one recipient: what went to another is elsewhere."""
    if account in (None, ANY_ACCOUNT) or redirected_to is None:
        return account
    return f"{account} for {redirected_to}"


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
