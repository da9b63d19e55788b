"""Attempt to send one claimed message, in six steps: provider, evidence, decision, request, submit, record.

`Attempt.run` performs these steps in that order, so that a message is submitted at most once for each claim.
"""

from collections.abc import Container, Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, Generic

from msgspec import Struct, structs

from mailroom.content.payload_attributes import expanded
from mailroom.delivery.adapter import M, R
from mailroom.delivery.batch import Batch, account_for
from mailroom.delivery.waiting.reason import Answer
from mailroom.delivery.worker import DONE, TO_DEAD_LETTERS, ComeBack, QueueRecord, Result
from mailroom.errors import ClaimLost, Invalid, NotSent, OutcomeUnknown
from mailroom.ledger.claims import Claimed
from mailroom.ledger.items import PAUSED, RUN_UNKNOWN, provider_of
from mailroom.ledger.ledger import NO_RESPONSE
from mailroom.ledger.run_states import REASON as RUN_STOPPED
from mailroom.ledger.run_states import STOPPED
from mailroom.ledger.waits import DAY_USED_UP, Wait
from mailroom.message.message import parse
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
from mailroom.message.unless import OUTCOME_UNKNOWN
from mailroom.recipients.choices import Blocked
from mailroom.telemetry import logger

_HELD = "an earlier try may have reached the provider, so the message is not sent again ({})"
_IN_DOUBT = "in_doubt"
"""Code in the ledger attribute `trouble` while a message whose outcome is unknown waits for its resend."""
_NOT_FOUND = NotFound()
_NO_LOCK = nullcontext()


class ReleaseReason(Struct, frozen=True):
    """Reason for the release of a claim: the ledger attribute `trouble`, for programs and for people."""

    code: str
    message: str
    keeps_trouble: bool = False
    """Whether the trouble of an earlier try stays, because this reason is independent of the message."""


NO_TIME = ReleaseReason(
    "no_time", "the function's remaining time was too short to submit the message", keeps_trouble=True
)
USED_UP = ReleaseReason(
    DAY_USED_UP,
    "the provider's daily quota is used up; the message waits until there is capacity again",
)
RUN_WAITS = {
    PAUSED: ReleaseReason(PAUSED, "the campaign run of the message is paused"),
    RUN_UNKNOWN: ReleaseReason(RUN_UNKNOWN, "the campaign run of the message cannot be read"),
}
OTHER_TRY = ReleaseReason("other_try", "the other provider may have sent the message", keeps_trouble=True)


class Ended(Exception):
    """End of an attempt before its last step, with the result for the record."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.result = result


class Attempt(Generic[M, R]):
    """Attempt of a message from a worker's claim on. If this worker cannot end the attempt, another worker
    continues it with a claim of its own. A channel's subclass may override the methods without an underscore;
    see FaxAttempt."""

    def __init__(self, batch: Batch[M, R], claim: Claimed, message: M, record: QueueRecord) -> None:
        self.batch = batch
        self.claim = claim
        self.message = message
        self.submitted = message
        """Message with the recipients and the content that the provider gets, from the fourth step on."""
        self.record = record
        start = message.campaign_start
        self.halted = None if start is None else batch.halted.get(start)
        """STOPPED, PAUSED or RUN_UNKNOWN if the message's campaign run does not let it go on."""
        self._began = self._newest = 0
        """Attributes `refusals` and `newest` of UndecidedRefusals when the submit began."""
        self._may_be_sent = False
        """Whether the submit has begun. From then on, no error releases the claim."""
        self.sender = sender = batch.sender
        self.settings = sender.settings
        self.adapter = sender.adapter
        self.tools = sender.tools
        self.ledger = self.tools.ledger
        self.tally = self.tools.tally

    def run(self) -> Result:
        """Perform the six steps, and return the record's result. Raises ClaimLost and errors of the ledger.
        Then the message was not submitted, or its outcome was not recorded and the claim lasts until its
        lease ends."""
        try:
            with self.tools.large_message_lock if self.message.objects else _NO_LOCK:
                self.choose_provider()
                evidence = self.find_evidence()
                if isinstance(evidence, Sent):
                    return self.already_submitted(evidence)
                self.decide(evidence)
                request = self.prepare(evidence)
                self._may_be_sent = True
                outcome = self.submit(request)
                return self.record_outcome(outcome)
        except Ended as end:
            return end.result
        except ClaimLost:
            raise
        except Exception as error:  # noqa: BLE001 - logged, and the queue keeps the record
            if self._may_be_sent:
                return self._keep_claim()
            logger.exception("not submitted; it goes back to the queue")
            self.tally.add("Retried")
            return self.release(ReleaseReason("unprepared", _cause(error)), self.retry())

    def choose_provider(self) -> None:
        """1. Provider: whose message is it? Only the provider of the oldest try with an unknown outcome can
        know that outcome, so the message goes there. Only the own provider's tries remain in the claim."""
        claim = self.sender.other.own(self.claim)
        if claim is None:
            raise Ended(self._move(OTHER_TRY))
        self.claim = claim

    def find_evidence(self) -> Evidence:
        """2. Evidence: did an earlier try reach the provider? If the look-up fails, the claim is released and
        the message is retried later, because a look-up cannot send the message."""
        claim = self.claim
        # The provider's id in the ledger proves that the provider accepted the message. A look-up might miss
        # the message.
        if claim.checkpoint is not None:
            evidence: Evidence = Sent(claim.checkpoint.provider_id)
        elif not claim.unsettled:
            return _NOT_FOUND
        else:
            try:
                evidence = self._look_up(claim)
            except NotReady as reason:
                raise Ended(self._not_ready(reason)) from None
            except Exception as error:  # noqa: BLE001 - logged, and the queue keeps the record
                logger.exception("the provider could not be asked about an earlier try")
                self.tally.add("Retried")
                failed = ReleaseReason("look_up_failed", _cause(error))
                raise Ended(self.release(failed, self.look_up_wait())) from None
        self.claim = claim.after(evidence)
        return evidence

    def decide(self, evidence: Evidence) -> None:
        """3. Decision: may the message be submitted now? It ends if it has expired, its run is stopped, or
        its `unless` is fulfilled. A message that was certainly not sent may have to wait."""
        message = self.message
        if message.expired(self.tools.clock()):
            reason = f"expires_at: {message.expires_at} is past"
            raise Ended(self._fail("expired", reason, metric="Expired"))
        if self.halted == STOPPED:
            raise Ended(self._cancel(STOPPED, RUN_STOPPED))
        if message.unless and (fulfilled := self.ledger.fulfilled(message.conditions)):
            by = {"unless_fulfilled": structs.asdict(fulfilled)}
            raise Ended(self._cancel("unless", f"unless: {fulfilled.text}", by))
        if self.claim.unsettled:
            self._decide_resend(evidence)
        elif (wait := self.batch.waits_after_evidence.get(self.record.key)) is not None:
            raise Ended(self._wait(ReleaseReason(wait.reason, "the message may not be sent yet"), wait))

    def prepare(self, evidence: Evidence) -> R:
        """4. Request: build the provider's request for the recipients who are not blocked, and wait for the
        message's turn. This is the last step that may refuse the message."""
        build = evidence.prepare if isinstance(evidence, Repeatable) else self.adapter.prepare
        try:
            self.submitted = self._redirected(self.screen(self._with_payload()))
            request: R = build(self.submitted)
            self.batch.session  # noqa: B018 - raises NotReady if the account could not be opened
        except Invalid as fault:
            raise Ended(self._fail("invalid", str(fault), self.sender.attribute(fault))) from None
        except NotReady as reason:
            raise Ended(self._not_ready(reason)) from None
        if self.halted in RUN_WAITS:
            # A message whose outcome is unknown cannot wait in the ledger, so it waits in the queue.
            raise Ended(self.release(RUN_WAITS[self.halted], self.retry(self.settings.backoff_cap_seconds)))
        if not self.claim.unsettled and (withheld := self.batch.withheld()) is not None:
            raise Ended(self._refused(withheld))
        self.take_turn()
        if self.claim.unsettled:
            metric, verb = (
                ("Repeated", "repeating") if isinstance(evidence, Repeatable) else ("Resent", "resending")
            )
            since = self.claim.unsettled[0].began
            self.tally.note(metric, f"{verb}: the outcome of an earlier try is unknown", since=since)
        return request

    def submit(self, request: R) -> Outcome:
        """5. Submit the message once. After an error the claim lasts until its lease ends, and the next
        worker first looks for evidence of this submit."""
        undecided = self.sender.undecided
        self._began, self._newest = undecided.refusals, undecided.newest
        try:
            return self.batch.session.submit(request)
        except NotSent as error:
            return error.outcome if isinstance(error, NotReady) else Retry(str(error))
        except Exception as error:  # noqa: BLE001 - logged, and the queue keeps the record
            self._answer(None)
            # The error is logged before it is recorded, because the write to the ledger may last until the
            # function times out.
            unknown = self._keep_claim()
            self._doubt(error)
            raise Ended(unknown) from None

    def record_outcome(self, outcome: Outcome) -> Result:
        """6. Record the outcome, and return the record's result. If the ledger does not respond, the claim
        lasts until its lease ends, as after an unknown outcome."""
        if isinstance(outcome, Rejected) and outcome.undecided:
            outcome = self.sender.undecided.decided(self.record.key, outcome, self._newest)
        self.sender.other.answered(outcome)
        if isinstance(outcome, Sent):
            self.sender.undecided.accepted(self._began)
            self._answer(outcome)
            return self.accepted(outcome)
        if isinstance(outcome, Conflict):
            self._answer(outcome)
            return self._end_unknown(outcome.reason)
        return self._refused(outcome)

    def screen(self, message: M) -> M:
        """Return the message without its blocked recipients. If all recipients are blocked, the message ends
        as suppressed. Raises Invalid."""
        blocked = self._blocked(message)
        allowed = self.sender.allowed
        if self.claim.redirected_to is not None:
            # An opt-out from a topic concerns only the original recipients. So the recipient of the redirect
            # is checked without the topic. A STOP text from that recipient still blocks the message.
            redirected = self._blocked(structs.replace(self._redirected(message), topic=None))
            if redirected:
                raise Ended(self._suppress(next(iter(redirected.values()))))
        elif allowed is not None:
            blocked |= allowed.outside(message.reached)
        if not blocked:
            return message
        remaining = message.without(blocked)
        if remaining is message or not remaining.addressees:
            raise Ended(self._suppress(next(iter(blocked.values()))))
        for recipient, reason in blocked.items():
            self.ledger.suppress_one(self.claim, recipient, reason.sentence)
        self.tally.note("SuppressedInPart", "sent without its blocked recipients", suppressed=len(blocked))
        return remaining

    def take_turn(self) -> None:
        """Sleep until the message may be submitted. If the rest of the invocation is too short, the queue has
        to deliver the record again."""
        if not self.tools.pace.take_turn(self.record):
            raise Ended(self.out_of_time())

    def accepted(self, sent: Sent) -> Result:
        """Record a submit that the provider has just accepted, and return the record's result."""
        # A success is not logged: the ledger records it, and a log line would double the cost of the
        # delivery.
        self.tally.add("Sent")
        try:
            self._complete(self.submitted, sent)
        except Exception:
            logger.error("sent, but not recorded", provider_id=sent.provider_id)
            raise
        self.measure()
        return DONE

    def already_submitted(self, sent: Sent) -> Result:
        """Record that the provider has accepted a submit of an earlier invocation, and return the record's
        result."""
        self._complete(self._redirected(self.message), sent)
        self.tally.note("Recovered", "an earlier try was accepted", provider_id=sent.provider_id)
        return DONE

    def look_up_wait(self) -> ComeBack:
        """Return the wait after a look-up that failed. It is as long as the wait after an unknown outcome, so
        that the message does not become a dead letter quickly while look-ups keep failing."""
        return ComeBack(self.settings.lease_seconds + 1)

    def measure(self) -> None:
        """Measure how long a first attempt took, from the time when the message was put into the mailbox or
        was due until the provider's acceptance. Later attempts are not measured.

        The caller records the acceptance before this measurement, so that an error here cannot prevent that
        record.
        """
        record, message = self.record, self.message
        if record.put_at is not None and message.attempt == 1:
            since = max(record.put_at, message.due() or 0.0, record.due_at or 0.0)
            self.tally.waits.append(max(0.0, self.tools.clock() - since))

    def release(self, reason: ReleaseReason, result: Result) -> Result:
        """Release the claim of a message that this claim has not sent, and return `result`. Only this method
        calls `Ledger.release`."""
        is_kept = reason.keeps_trouble and self.claim.trouble
        self.ledger.release(self.claim, "" if is_kept else reason.code, reason.message)
        return result

    def out_of_time(self) -> Result:
        """Release the claim, because the invocation's remaining time is too short to submit the message."""
        return self.release(NO_TIME, ComeBack(0))

    def _look_up(self, claim: Claimed) -> Evidence:
        """Ask the provider about the earlier tries of unknown outcome. Raises NotReady, and any other error
        if the look-up fails."""
        session, message = self.batch.session, self._redirected(self.message)
        since = claim.unsettled[0].began
        other_ids: Container[str] = ()
        if self.sender.line_seconds is not None and message.line is not None:
            other_ids = self.ledger.ids_on_line(message.line, since - self.sender.line_seconds * 1000)
        evidence = session.look_up(message, since, other_ids)
        account = account_for(session.account, claim.redirected_to)
        searched = account == ANY_ACCOUNT or claim.accounts <= {account}
        if isinstance(evidence, NotFound | Repeatable) and not searched:
            return Unknowable()  # this look-up cannot search the account of the earlier try
        if isinstance(evidence, Repeatable) and evidence.until <= self.tools.clock():
            # The idempotency key has expired, so the provider would send a second message.
            return Unknowable()
        return evidence

    def _decide_resend(self, evidence: Evidence) -> None:
        """Decide about a message of which an earlier try has an unknown outcome. An identical request with
        the same idempotency key does not send a second message. An operator who redrives a dead letter
        decides that the message is sent once more. Otherwise the setting `on_unknown` decides."""
        if isinstance(evidence, Repeatable):
            return
        if self.settings.on_unknown == "hold":
            raise Ended(self._end_unknown(_HELD.format("on_unknown: hold")))
        if not self.claim.redriven:
            self._postpone_resend()

    def _postpone_resend(self) -> None:
        """Postpone the resend of a message whose outcome is unknown, unless the message is resent now.

        Each wait is longer than the previous wait. So few duplicates are sent while the responses of a
        provider are lost, and an event may prove the outcome during a wait. After the last resend the message
        becomes a dead letter, and only an operator sends it again.
        """
        tries, delays = self.claim.unsettled, self.settings.resend_delays
        given_up = len(tries) > len(delays)
        # A fax that becomes a dead letter frees its telephone line, although the fax may still be in
        # transmission. So the fax waits before it becomes a dead letter.
        delay = (self.sender.line_seconds or 0) if given_up else delays[len(tries) - 1]
        seconds = tries[-1].began / 1000 + delay - self.tools.clock()
        if seconds <= 0 and not given_up:
            return
        logger.warning("outcome unknown; not resent now", tries=len(tries), seconds=max(0, round(seconds)))
        trouble = self.claim.trouble
        cause = f": {trouble['message']}" if trouble.get("code") == NO_RESPONSE else ""
        sentence = f"the message may have been sent, and its outcome is unknown{cause}"
        # An earlier wait has already written the cause, so its `trouble` is not replaced.
        doubt = ReleaseReason(_IN_DOUBT, sentence, keeps_trouble=trouble.get("code") == _IN_DOUBT)
        raise Ended(self.release(doubt, ComeBack(seconds + 1) if seconds > 0 else TO_DEAD_LETTERS))

    def _redirected(self, message: M) -> M:
        """Return the message for the submit: with its own recipients, or with the recipient to whom it is
        redirected."""
        to = self.claim.redirected_to
        return message if to is None else message.redirected(to)

    def _with_payload(self) -> M:
        """Read the payload from its bucket, and return the message with the payload's attributes."""
        message, ref = self.message, self.message.payload_ref
        if ref is None or self.sender.payload_is_content:
            return message
        return parse(expanded(self.tools.payloads, message, ref), self.sender.contracts)

    def _blocked(self, message: M) -> dict[str, Blocked]:
        return {} if self.batch.choices is None else self.batch.choices.blocked(message)

    def _keep_claim(self) -> Result:
        logger.exception("outcome unknown; the claim lasts until its lease ends")
        self.tally.add("Unknown")
        return ComeBack(self.settings.lease_seconds + 1)

    def _doubt(self, error: Exception) -> None:
        """Record why the outcome of a submit is unknown. Never raises: if this record is missing, the cause
        of a later dead letter is only less exact."""
        try:
            self.ledger.doubt(self.claim, _cause(error))
        except Exception:  # noqa: BLE001 - logged; the claim lasts until its lease ends
            logger.warning("the cause of an unknown outcome was not recorded", exc_info=True)

    def _complete(self, message: M, sent: Sent) -> None:
        self.ledger.complete(self.claim, self.adapter.provider, sent.provider_id, sent.facts, message.line)

    def _answer(self, outcome: Outcome | None) -> None:
        self.batch.answers.append(Answer(self.record.key, self.submitted.recipient_count, outcome))

    def retry(self, minimum: float = 0) -> ComeBack:
        """Return the result for a record that is retried after the usual wait, or after `minimum` seconds if
        that is longer."""
        return ComeBack(self.sender.retry_wait(self.record.receives, minimum))

    def _not_ready(self, reason: NotReady) -> Result:
        # If the account was opened, something else that the request needs is missing, such as the key that
        # signs opt-out links. The other provider could not send the message either.
        return self._refused(reason.outcome, may_move=isinstance(self.batch.access, Refusal))

    def _refused(self, refusal: Refusal, *, may_move: bool = True) -> Result:
        """Record that the message was not sent. `may_move`: whether the other provider may send the message
        instead."""
        self._answer(refusal)
        claim, record, choice = self.claim, self.record, self.sender.other
        if may_move and choice.moves(refusal, claim, record):
            return self._move(ReleaseReason("other_provider", refusal.reason))
        match refusal:
            case Rejected():
                return self._rejected(refusal)
            case DayUsedUp(reason):
                self.tally.note("DayUsedUp", "not sent: the daily quota is used up", reason=reason)
                return self._wait(USED_UP)
            case Retry(reason, after):
                self.sender.retried(self.message, record)
                self.tally.note("Retried", "not sent; it goes back to the queue", reason=reason)
                code, seconds = "retry", self.sender.retry_wait(record.receives, after)
            case Misconfigured(reason):
                logger.error("not sent: the configuration is invalid", reason=reason)
                self.tally.add("Misconfigured")
                code, seconds = "misconfigured", self.settings.misconfigured_seconds
        wait = choice.wait(seconds, claim, record) if may_move else seconds
        return self.release(ReleaseReason(code, reason), ComeBack(wait))

    def _wait(self, reason: ReleaseReason, wait: Wait | None = None) -> Result:
        """Release the claim, and let the message wait: see `Batch.wait`."""
        self.release(reason, DONE)
        return self.batch.wait(self.message, self.record, wait)

    def _move(self, reason: ReleaseReason) -> Result:
        """Release the claim of a message that goes to the channel's other provider."""
        self.tally.note("ToOtherProvider", "it goes to the other provider", reason=reason.message)
        result = self.release(reason, self.sender.other.hand_over())
        if self.claim.redriven:
            # The claim has removed `dead_lettered_at`. The other provider's sender needs the attribute to
            # recognise a message that an operator has redriven.
            self.ledger.dead_lettered(self.claim.key)
        return result

    def _rejected(self, outcome: Rejected) -> Result:
        choices = self.batch.choices if self.claim.redirected_to is None else None
        if (outcome.gone or outcome.opted_out) and choices is not None:
            try:
                choices.mark(self.message, outcome)
            except Exception:  # noqa: BLE001 - logged; nothing was sent, so another try costs one call
                logger.exception("a recipient could not be put on the suppression list")
                return self.release(ReleaseReason("unmarked", outcome.reason), self.retry())
        if outcome.opted_out:
            return self._suppress(Blocked("suppressed", outcome.reason))
        return self._fail("rejected", outcome.reason)

    def _fail(self, code: str, reason: str, field: str = "", metric: str = "Rejected") -> Result:
        """End a message as failed. If an earlier try may have sent the message, end it with the code
        `outcome_unknown` instead. So do `_suppress` and `_cancel`."""
        if self.claim.unsettled:
            return self._end_unknown(_HELD.format(reason))
        self.ledger.fail(self.claim, code, reason, field)
        # The reason of an invalid item may quote the item's content, which must not reach the logs.
        self.tally.note(metric, metric.lower(), **({"field": field} if field else {"reason": reason}))
        return DONE

    def _suppress(self, reason: Blocked) -> Result:
        """End a message as suppressed, because all recipients are blocked."""
        if self.claim.unsettled:
            return self._end_unknown(_HELD.format(reason.sentence))
        self.ledger.suppress(self.claim, reason.code, reason.sentence)
        self.tally.note("Suppressed", "suppressed", code=reason.code)
        return DONE

    def _cancel(self, code: str, reason: str, facts: Mapping[str, Any] = MappingProxyType({})) -> Result:
        """End a message as cancelled, with further ledger attributes `facts`."""
        if self.claim.unsettled:
            return self._end_unknown(_HELD.format(reason))
        self.ledger.cancel_claimed(self.claim, code, reason, facts)
        self.tally.note("Cancelled", "cancelled before it was sent", code=code)
        return DONE

    def _end_unknown(self, reason: str) -> Result:
        """End a message whose outcome cannot be found out: as failed, with the code `outcome_unknown`."""
        unsettled = self.claim.unsettled
        provider = provider_of(unsettled[0].account if unsettled else "") or self.adapter.provider
        advice = f"ask {provider}, and resend the message if it never arrived"
        self.ledger.fail(self.claim, OUTCOME_UNKNOWN, f"{reason}; {advice}")
        self.tally.note("Held", "held: the outcome of an earlier try is unknown")
        return DONE


def _cause(error: Exception) -> str:
    """Return the cause of an error as text. Only the texts of Mailroom's own errors are quoted, because the
    texts of other errors may contain addresses."""
    return str(error) if isinstance(error, OutcomeUnknown) else type(error).__name__
