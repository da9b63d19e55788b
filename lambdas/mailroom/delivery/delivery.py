"""Delivery of one message to its provider, in six steps: claim, evidence, decision, request, submit, record.

`Delivery.deliver` performs these steps in that order, so that a message is submitted at most once for each
claim.
"""

from collections.abc import Container, Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from msgspec import structs

from mailroom.content.payload_attributes import expanded
from mailroom.delivery.backoff import backoff
from mailroom.delivery.claiming import Claiming, NoTimeLeft, account_for
from mailroom.delivery.other_provider import OtherProviderChoice
from mailroom.delivery.timing import SendingTime
from mailroom.delivery.worker import DONE, TO_DEAD_LETTERS, ComeBack, QueueRecord, Result, Tools
from mailroom.environment import Sender, SuppressingSender
from mailroom.errors import ClaimLost, Invalid, NotSent, OutcomeUnknown
from mailroom.ledger.claims import Claim, Claimed, InProgress, OutOfSequence
from mailroom.ledger.items import PAUSED, provider_of
from mailroom.ledger.ledger import NO_RESPONSE
from mailroom.ledger.run_states import REASON as RUN_STOPPED
from mailroom.ledger.run_states import STOPPED, RunStates
from mailroom.ledger.waits import DAY_USED_UP
from mailroom.message.message import Message, begun_of, parse
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
from mailroom.recipients.choices import AllowedRecipients, BatchChoices, Blocked
from mailroom.telemetry import logger

M = TypeVar("M", bound=Message)
M_contra = TypeVar("M_contra", bound=Message, contravariant=True)
R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)

_HELD = "an earlier try may have reached the provider, so the message is not sent again ({})"
_USED_UP = "the provider's daily quota is used up; the message waits until there is capacity again"
_PAUSED = "the campaign run of the message is paused"
_IN_DOUBT = "in_doubt"
"""Code in the ledger attribute `trouble` while a message whose outcome is unknown waits for its resend."""


class Session(Protocol[M_contra, R_contra]):
    """Access to one account at a provider. A look-up and a submit of one session go to the same account."""

    @property
    def account(self) -> str:
        """Name of the provider and its account, as stored in claims; ANY_ACCOUNT if a look-up has the same
        result for every account."""

    def look_up(self, message: M_contra, since: int, other_ids: Container[str]) -> Evidence:
        """Ask the provider about a try of the message that began at `since` (epoch milliseconds) and whose
        outcome is unknown. Returns the evidence.

        `other_ids` holds provider ids of other messages and of other attempts, which must not be mistaken for
        the id of this try. Raises an error if the look-up fails.
        """

    def submit(self, request: R_contra) -> Outcome:
        """Submit the message with one call to the provider, and return the outcome. Raises NotSent if the
        provider got no request, and any other error if its acceptance is unknown."""


class Adapter(Protocol[M, R]):
    """Access to the provider of one channel. An adapter is independent of queues, tables and retries."""

    @property
    def provider(self) -> str:
        """Name of the provider in the ledger."""

    @property
    def contract(self) -> type[M]:
        """Class of the messages that the adapter sends."""

    def open(self) -> Session[M, R]:
        """Load the credentials of the account in the settings, and return a session. Raises NotReady with the
        reason if the credentials cannot be loaded now."""

    def prepare(self, message: M) -> R:
        """Build the provider's request from the message, before the submit. Raises Invalid and NotReady;
        after any other error the message is retried, because it was not submitted."""


class Delivery(Generic[M, R]):
    """Delivery of a channel's messages to its provider. A channel's subclass may override the public methods
    except `begin` and `end`; see FaxDelivery."""

    payload_is_content = False
    """Whether the payload is the content for the provider (true), or JSON with further attributes of the
    message (false)."""

    def __init__(
        self,
        settings: Sender,
        adapter: Adapter[M, R],
        tools: Tools,
        *,
        choices: BatchChoices | None = None,
        line_seconds: float | None = None,
    ) -> None:
        """Create the delivery of one sender.

        `choices`: suppression list and opt-outs, if the recipients are people. `line_seconds`: a look-up by
        telephone number for a try may also find messages to the same number that were submitted up to this
        many seconds before that try; None if look-ups do not search by number.
        """
        self._settings = settings
        self._adapter = adapter
        self._contracts = {settings.channel: adapter.contract}
        self._tools = tools
        self._ledger = tools.ledger
        self._tally = tools.tally
        self._choices = choices
        self._line_seconds = line_seconds
        self._session: Session[M, R] | Refusal = Retry("no batch has begun")
        """Session of the present batch, or the reason why the account's credentials could not be loaded."""
        self._runs = RunStates(tools.dynamodb, settings.runs_table, tools.clock)
        self._halted: dict[str, str] = {}
        """STOPPED or PAUSED by message id, for the messages of the batch whose campaign run is stopped or
        paused."""
        self._unasked: set[str] = set()
        """Ids of the batch's messages whose campaign run could not be read."""
        only = settings.recipients_only
        self._allowed = (
            None if only is None else AllowedRecipients(settings.channel, only, settings.redirect_to)
        )
        self._timing = SendingTime(settings, tools, lambda receives: self.retry_wait(receives))
        self._claiming = Claiming[M](settings, tools, self._allowed, together=line_seconds is None)
        self._other = OtherProviderChoice(settings.other_provider, tools.clock)
        self._no_other = OtherProviderChoice(None, tools.clock)

    def read(self, body: dict[str, Any]) -> tuple[dict[str, Any], M | Invalid]:
        """Read the body of a queue record: the item, and its message or the reason why the message is
        invalid. Raises Malformed."""
        try:
            return body, parse(body, self._contracts)
        except Invalid as fault:
            return body, fault

    def begin(self, messages: Sequence[tuple[M, QueueRecord]]) -> None:
        """Prepare a batch: load the account's credentials, read the opt-outs and the campaign runs of all
        messages, hold the messages that must wait, and claim the first attempts of the others. Never
        raises."""
        self._other.begin()
        if messages:
            self._session = self._open()
        if self._choices is not None:
            self._choices.begin(message for message, _ in messages)
        self._ask_for_runs(messages)
        messages = [entry for entry in messages if entry[0].id not in self._unasked]
        # The messages of a stopped run are left out: they are cancelled, so they need neither a sending time
        # nor a part of the daily budget.
        timed = [entry for entry in messages if self._halted.get(entry[0].id) != STOPPED]
        self._timing.begin(timed, self._halted)
        ready = [entry for entry in messages if self._timing.postponed(entry[0].key) is None]
        self._claiming.begin(ready, None if isinstance(self._session, Refusal) else self._session.account)

    def _ask_for_runs(self, messages: Sequence[tuple[M, QueueRecord]]) -> None:
        """Find the messages whose campaign run is stopped or paused. Never raises: messages whose run could
        not be read go back to the queue unsent."""
        ids = [message.id for message, _ in messages]
        try:
            self._halted, self._unasked = self._runs.halted(ids), set()
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the records
            logger.exception("the runs of campaigns could not be read; their messages go back to the queue")
            self._halted, self._unasked = {}, {id_ for id_ in ids if begun_of(id_) is not None}

    def _open(self) -> Session[M, R] | Refusal:
        """Load the account's credentials, and return the session, or the reason why they cannot be loaded.
        Never raises."""
        try:
            return self._adapter.open()
        except NotReady as reason:
            return reason.outcome
        except Exception as error:  # noqa: BLE001 - only the error's class is logged: its text may quote a secret
            logger.error("the account could not be opened", error=type(error).__name__)
            return Misconfigured(f"the account cannot be opened: {type(error).__name__}")

    def end(self) -> None:
        """Count the recipients of the sent messages in the daily budget. Never raises."""
        self._timing.end()

    def deliver(self, message: M | Invalid, record: QueueRecord) -> Result:
        """Deliver one message as far as possible now, and return the result for its record. Raises ClaimLost
        and errors of the ledger. Then the message was not submitted, or its outcome was not recorded and the
        claim lasts until its lease ends."""
        if isinstance(message, Invalid):
            return self.fail_invalid(message, record)
        if message.id in self._unasked:
            return ComeBack(self.retry_wait(record.receives))
        if (postponed := self._timing.postponed(message.key)) is not None:
            return self.fail_invalid(postponed, record) if isinstance(postponed, Invalid) else postponed
        # 1. Claim the message, separately or with its batch: only one worker at a time may send it.
        claim = self._claiming.take(message, record)
        if not isinstance(claim, Claimed):
            return self._not_claimed(claim, message)
        try:
            with self._tools.large_message_lock if message.objects else nullcontext():
                return self._deliver(claim, message, record)
        except ClaimLost:
            raise
        except Exception as error:  # noqa: BLE001 - logged, and the queue keeps the record
            # `_submit` catches the errors of a submit, so after this error the message was not submitted.
            logger.exception("not submitted; it goes back to the queue")
            wait = ComeBack(self.retry_wait(record.receives))
            return self._release(claim, wait, "unprepared", _cause(error))

    def _deliver(self, claim: Claimed, message: M, record: QueueRecord) -> Result:
        remaining = self._other.own(claim)
        if remaining is None:
            return self._move(claim)
        claim = remaining
        # 2. Evidence: did an earlier try reach the provider?
        evidence = self._evidence(claim, message, record)
        if isinstance(evidence, Result):
            return evidence
        claim = claim.after(evidence)
        if isinstance(evidence, Sent):
            return self.already_submitted(claim, message, evidence, record)
        # 3. Decision: may the message be submitted now? 4. Request: the last step that may refuse the
        # message.
        request = self._decision(claim, message, evidence, record) or self._request(
            claim, message, evidence, record
        )
        if isinstance(request, Result):
            return request
        # 5. Submit the message, and 6. record the outcome.
        return self._submit(claim, message, request, record)

    def _submit(self, claim: Claimed, message: M, request: R, record: QueueRecord) -> Result:
        """Submit the message once, and record the outcome. After an error the claim lasts until its lease
        ends, and the next worker first looks for evidence of this submit."""
        try:
            outcome: Outcome = self._opened().submit(request)
        except NotSent as error:
            outcome = error.outcome if isinstance(error, NotReady) else Retry(str(error))
        except Exception as error:  # noqa: BLE001 - logged, and the queue keeps the record
            # The error is logged before it is recorded, because the write to the ledger may last until the
            # function times out.
            unknown = self._unknown()
            self._doubt(claim, error)
            return unknown
        try:
            return self._record_outcome(claim, message, outcome, record)
        except ClaimLost:
            raise
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the record
            return self._unknown()

    def _unknown(self) -> Result:
        logger.exception("outcome unknown; the claim lasts until its lease ends")
        self._tally.add("Unknown")
        return ComeBack(self._settings.lease_seconds + 1)

    def _doubt(self, claim: Claimed, error: Exception) -> None:
        """Record why the outcome of a submit is unknown. Never raises: if this record is missing, the cause
        of a later dead letter is only less exact."""
        try:
            self._ledger.doubt(claim, _cause(error))
        except Exception:  # noqa: BLE001 - logged; the claim lasts until its lease ends
            logger.warning("the cause of an unknown outcome was not recorded", exc_info=True)

    def _not_claimed(self, claim: Claim | NoTimeLeft, message: M) -> Result:
        match claim:
            case NoTimeLeft():
                return ComeBack(0)
            case InProgress(seconds):
                return ComeBack(seconds + 1)
            case OutOfSequence():
                logger.error("the attempt before this one has not ended", attempt=message.attempt)
                self._tally.add("Malformed")
                return TO_DEAD_LETTERS
        self._tally.note("Duplicates", "already done", found=type(claim).__name__.lower())
        return DONE

    def _opened(self) -> Session[M, R]:
        """Return the session of the batch. Raises NotReady if the account's credentials could not be
        loaded."""
        if isinstance(self._session, Refusal):
            raise NotReady(self._session)
        return self._session

    def _evidence(self, claim: Claimed, message: M, record: QueueRecord) -> Evidence | Result:
        """Find out whether an earlier try reached the provider. If the look-up fails, the claim is released
        and the message is retried later, because a look-up cannot send the message. Returns the evidence, or
        the record's result if the message cannot be delivered now."""
        # The provider's id in the ledger proves that the provider accepted the message. A look-up might miss
        # the message.
        if claim.checkpoint is not None:
            return Sent(claim.checkpoint.provider_id)
        if not claim.unsettled:
            return NotFound()
        try:
            session = self._opened()
            evidence = self._look_up(session, claim, _submitted(claim, message))
        except NotReady as reason:
            return self._not_ready(claim, message, reason, record)
        except Exception as error:  # noqa: BLE001 - logged, and the queue keeps the record
            logger.exception("the provider could not be asked about an earlier try")
            return self._release(claim, self.look_up_wait(record), "look_up_failed", _cause(error))
        account = account_for(session.account, claim.redirected_to)
        searched = account == ANY_ACCOUNT or claim.accounts <= {account}
        if isinstance(evidence, NotFound | Repeatable) and not searched:
            return Unknowable()  # this look-up cannot search the account of the earlier try
        if isinstance(evidence, Repeatable) and evidence.until <= self._tools.clock():
            # The idempotency key has expired, so the provider would send a second message.
            return Unknowable()
        return evidence

    def _look_up(self, session: Session[M, R], claim: Claimed, message: M) -> Evidence:
        since = claim.unsettled[0].began
        other_ids: Container[str] = ()
        if self._line_seconds is not None and message.line is not None:
            other_ids = self._ledger.ids_on_line(message.line, since - self._line_seconds * 1000)
        return session.look_up(message, since, other_ids)

    def _decision(self, claim: Claimed, message: M, evidence: Evidence, record: QueueRecord) -> Result | None:
        """Fail, hold or postpone a message that must not be submitted now. Returns None if the message may be
        submitted. The sending time is checked only if no earlier try has an unknown outcome."""
        if message.expired(self._tools.clock()):
            reason = f"expires_at: {message.expires_at} is past"
            return self._fail(claim, "expired", reason, metric="Expired")
        if self._halted.get(message.id) == STOPPED:
            # The run's state is read again right before the write, because an operator may restart the run at
            # any time. A restart sends the messages that were cancelled before it. A message that is
            # cancelled after the restart would never be sent.
            if self._runs.halted([message.id]).get(message.id) == STOPPED:
                return self._cancel(claim, STOPPED, RUN_STOPPED)
            return self._release(claim, ComeBack(1))
        if message.conditions and (fulfilled := self._ledger.fulfilled(message.conditions)):
            by = {"unless_fulfilled": structs.asdict(fulfilled)}
            return self._cancel(claim, "unless", f"unless: {fulfilled.text}", by)
        if not claim.unsettled:
            return self._postpone_unsent(claim, message, record)
        # An identical request with the same idempotency key does not send the message a second time.
        if isinstance(evidence, Repeatable):
            return None
        if self._settings.on_unknown == "hold":
            return self._hold(claim, _HELD.format("on_unknown: hold"))
        # An operator who redrives a dead letter decides that the message is sent once more.
        return None if claim.redriven else self._resend_later(claim)

    def _postpone_unsent(self, claim: Claimed, message: M, record: QueueRecord) -> Result | None:
        """Postpone a message whose sending time has not come. It was claimed only because an earlier try
        might have sent it. Returns None if the message may be sent now."""
        if not self._timing.must_wait(message.key):
            return None
        self._ledger.release(claim)
        return self._timing.postpone_unsent(message.key, record)

    def _resend_later(self, claim: Claimed) -> Result | None:
        """Postpone the resend of a message whose outcome is unknown. Returns None if the message is resent
        now.

        Each wait is longer than the previous wait. So few duplicates are sent while the responses of a
        provider are lost, and an event may prove the outcome during a wait. After the last resend the message
        becomes a dead letter, and only an operator sends it again.
        """
        tries, delays = claim.unsettled, self._settings.resend_delays
        given_up = len(tries) > len(delays)
        # A fax that becomes a dead letter frees its telephone line, although the fax may still be in
        # transmission. So the fax waits before it becomes a dead letter.
        delay = (self._line_seconds or 0) if given_up else delays[len(tries) - 1]
        seconds = tries[-1].began / 1000 + delay - self._tools.clock()
        if seconds <= 0 and not given_up:
            return None
        logger.warning("outcome unknown; not resent now", tries=len(tries), seconds=max(0, round(seconds)))
        wait = ComeBack(seconds + 1) if seconds > 0 else TO_DEAD_LETTERS
        code = claim.trouble.get("code")
        cause = f": {claim.trouble['message']}" if code == NO_RESPONSE else ""
        # An earlier wait has already written the cause, so its `trouble` is not replaced.
        trouble = "" if code == _IN_DOUBT else _IN_DOUBT
        return self._release(
            claim, wait, trouble, f"the message may have been sent, and its outcome is unknown{cause}"
        )

    def _request(self, claim: Claimed, message: M, evidence: Evidence, record: QueueRecord) -> R | Result:
        """Build the provider's request, and wait until the message may be submitted. Returns the request, or
        the record's result if the message must not be submitted."""
        prepare = evidence.prepare if isinstance(evidence, Repeatable) else self._adapter.prepare
        try:
            screened = self.screen(claim, self._with_payload(message))
            if isinstance(screened, Blocked):
                return self._suppress(claim, screened)
            submitted = _submitted(claim, screened)
            request: R = prepare(submitted)
            self._opened()  # raises NotReady if the session of the batch could not be opened
        except Invalid as fault:
            return self._fail(claim, "invalid", str(fault), self._attribute(fault))
        except NotReady as reason:
            return self._not_ready(claim, message, reason, record)
        if message.id in self._halted:
            # The message's run is paused. A message whose outcome is unknown cannot wait in the ledger, so it
            # waits in the queue.
            wait = ComeBack(self.retry_wait(record.receives, self._settings.backoff_cap_seconds))
            return self._release(claim, wait, PAUSED, _PAUSED)
        if not claim.unsettled and (withheld := self._other.withheld()) is not None:
            return self._not_sent(claim, message, withheld, record, self._other)
        if not self.take_turn(record):
            return self._release(claim, ComeBack(0))
        if claim.unsettled:
            metric, verb = (
                ("Repeated", "repeating") if isinstance(evidence, Repeatable) else ("Resent", "resending")
            )
            since = claim.unsettled[0].began
            self._tally.note(metric, f"{verb}: the outcome of an earlier try is unknown", since=since)
        self._timing.spend(submitted)
        return request

    def _with_payload(self, message: M) -> M:
        """Read the payload from its bucket, and return the message with the payload's attributes."""
        if message.payload_ref is None or self.payload_is_content:
            return message
        return parse(expanded(self._tools.payloads, message, message.payload_ref), self._contracts)

    def screen(self, claim: Claimed, message: M) -> M | Blocked:
        """Return the message without its blocked recipients, or the reason if all recipients are blocked.
        Raises Invalid."""
        blocked = self._blocked(message)
        if claim.redirected_to is not None:
            # An opt-out from a topic concerns only the original recipients. So the recipient of the redirect
            # is checked without the topic. A STOP text from that recipient still blocks the message.
            redirected = self._blocked(structs.replace(_submitted(claim, message), topic=None))
            if redirected:
                return next(iter(redirected.values()))
        elif self._allowed is not None:
            blocked |= self._allowed.outside(message.reached)
        if not blocked:
            return message
        remaining = message.without(blocked)
        if remaining is message or not remaining.addressees:
            return next(iter(blocked.values()))
        for recipient, reason in blocked.items():
            self._ledger.suppress_one(claim, recipient, reason.sentence)
        self._tally.note("SuppressedInPart", "sent without its blocked recipients", suppressed=len(blocked))
        return remaining

    def _blocked(self, message: M) -> dict[str, Blocked]:
        return {} if self._choices is None else self._choices.blocked(message)

    def take_turn(self, record: QueueRecord) -> bool:
        """Sleep until the message may be submitted. Returns False, without a sleep, if the rest of the
        invocation is too short. Then the queue has to deliver the record again."""
        return self._tools.pace.take_turn(record)

    def _record_outcome(self, claim: Claimed, message: M, outcome: Outcome, record: QueueRecord) -> Result:
        self._timing.answered(claim.key, outcome)
        self._other.answered(outcome)
        if isinstance(outcome, Sent):
            return self.accepted(claim, message, outcome, record)
        if isinstance(outcome, Conflict):
            self._timing.unspend(message.key)
            return self._hold(claim, outcome.reason)
        return self._not_sent(claim, message, outcome, record, self._other)

    def accepted(self, claim: Claimed, message: M, sent: Sent, record: QueueRecord) -> Result:
        """Record a submit that the provider has just accepted, and return the record's result."""
        # A success is not logged: the ledger records it, and a log line would double the cost of the
        # delivery.
        self._tally.add("Sent")
        try:
            self._complete(claim, message, sent)
        except Exception:
            logger.error("sent, but not recorded", provider_id=sent.provider_id)
            raise
        self.measure(message, record)
        return DONE

    def already_submitted(self, claim: Claimed, message: M, sent: Sent, record: QueueRecord) -> Result:  # noqa: ARG002 - FaxDelivery uses the record
        """Record that the provider has accepted a submit of an earlier invocation, and return the record's
        result."""
        self._complete(claim, message, sent)
        self._tally.note("Recovered", "an earlier try was accepted", provider_id=sent.provider_id)
        return DONE

    def _complete(self, claim: Claimed, message: M, sent: Sent) -> None:
        line = _submitted(claim, message).line
        self._ledger.complete(claim, self._adapter.provider, sent.provider_id, sent.facts, line)

    def measure(self, message: M, record: QueueRecord) -> None:
        """Measure how long a first attempt took, from the time when the message was put into the mailbox or
        was due until the provider's acceptance. Later attempts are not measured.

        The caller records the acceptance before this measurement, so that an error here cannot prevent that
        record.
        """
        if record.put_at is not None and message.attempt == 1:
            due = max(message.due() or 0.0, record.due_at or 0.0)
            seconds = self._tools.clock() - max(record.put_at, due)
            self._tally.waits.append(max(0.0, seconds))

    def _not_ready(self, claim: Claimed, message: M, reason: NotReady, record: QueueRecord) -> Result:
        self._timing.answered(claim.key, reason.outcome)
        # If the account was opened, something else that the request needs is missing, such as the key that
        # signs opt-out links. The other provider could not send the message either.
        choice = self._other if isinstance(self._session, Refusal) else self._no_other
        return self._not_sent(claim, message, reason.outcome, record, choice)

    def _not_sent(
        self, claim: Claimed, message: M, refusal: Refusal, record: QueueRecord, choice: OtherProviderChoice
    ) -> Result:
        self._timing.unspend(message.key)
        if choice.moves(refusal, claim, record):
            return self._move(claim, "other_provider", refusal.reason)
        match refusal:
            case Rejected():
                return self._rejected(claim, message, refusal, record)
            case Retry(reason, after):
                self.retried(message, record)
                self._tally.note("Retried", "not sent; it goes back to the queue", reason=reason)
                seconds = self.retry_wait(record.receives, after)
                wait = ComeBack(choice.wait(seconds, claim, record))
                return self._release(claim, wait, "retry", reason)
            case DayUsedUp(reason):
                self._tally.note("DayUsedUp", "not sent: the daily quota is used up", reason=reason)
                self._ledger.release(claim, DAY_USED_UP, _USED_UP)
                return self._timing.used_up(message, record)
            case Misconfigured(reason):
                logger.error("not sent: the configuration is invalid", reason=reason)
                self._tally.add("Misconfigured")
                seconds = self._settings.misconfigured_seconds
                wait = ComeBack(choice.wait(seconds, claim, record))
                return self._release(claim, wait, "misconfigured", reason)

    def _move(self, claim: Claimed, code: str = "", reason: str = "") -> Result:
        """Release the claim of a message that goes to the channel's other provider: because of a refusal, or
        because only that provider can know the outcome of an earlier try."""
        explanation = reason or "the other provider may have sent it"
        self._tally.note("ToOtherProvider", "it goes to the other provider", reason=explanation)
        result = self._release(claim, self._other.hand_over(), code, reason)
        if claim.redriven:
            # The claim has removed `dead_lettered_at`. The other provider's sender needs the attribute to
            # recognise a message that an operator has redriven.
            self._ledger.dead_lettered(claim.key)
        return result

    def _rejected(self, claim: Claimed, message: M, outcome: Rejected, record: QueueRecord) -> Result:
        choices = self._choices if claim.redirected_to is None else None
        if (outcome.gone or outcome.opted_out) and choices is not None:
            try:
                choices.mark(message, outcome)
            except Exception:  # noqa: BLE001 - logged; nothing was sent, so another try costs one call
                logger.exception("a recipient could not be put on the suppression list")
                wait = ComeBack(self.retry_wait(record.receives))
                return self._release(claim, wait, "unmarked", outcome.reason)
        if outcome.opted_out:
            return self._suppress(claim, Blocked("suppressed", outcome.reason))
        return self._fail(claim, "rejected", outcome.reason)

    def _fail(
        self, claim: Claimed, code: str, reason: str, field: str = "", metric: str = "Rejected"
    ) -> Result:
        """End a message as failed. If an earlier try may have sent the message, end it with the code
        `outcome_unknown` instead."""
        if claim.unsettled:
            return self._hold(claim, _HELD.format(reason))
        self._ledger.fail(claim, code, reason, field)
        # The reason of an invalid item may quote the item's content, which must not reach the logs.
        self._tally.note(metric, metric.lower(), **({"field": field} if field else {"reason": reason}))
        return DONE

    def _suppress(self, claim: Claimed, reason: Blocked) -> Result:
        """End a message as suppressed, because all recipients are blocked. If an earlier try may have sent
        the message, end it with the code `outcome_unknown` instead."""
        if claim.unsettled:
            return self._hold(claim, _HELD.format(reason.sentence))
        self._ledger.suppress(claim, reason.code, reason.sentence)
        self._tally.note("Suppressed", "suppressed", code=reason.code)
        return DONE

    def _cancel(
        self, claim: Claimed, code: str, reason: str, facts: Mapping[str, Any] = MappingProxyType({})
    ) -> Result:
        """End a message as cancelled, with further ledger attributes `facts`. If an earlier try may have sent
        the message, end it with the code `outcome_unknown` instead."""
        if claim.unsettled:
            return self._hold(claim, _HELD.format(reason))
        self._ledger.cancel_claimed(claim, code, reason, facts)
        self._tally.note("Cancelled", "cancelled before it was sent", code=code)
        return DONE

    def _hold(self, claim: Claimed, reason: str) -> Result:
        """End a message whose outcome cannot be found out: as failed, with the code `outcome_unknown`."""
        account = claim.unsettled[0].account if claim.unsettled else ""
        provider = provider_of(account) or self._adapter.provider
        advice = f"ask {provider}, and resend the message if it never arrived"
        self._ledger.fail(claim, OUTCOME_UNKNOWN, f"{reason}; {advice}")
        self._tally.note("Held", "held: the outcome of an earlier try is unknown")
        return DONE

    def _release(self, claim: Claimed, result: Result, code: str = "", reason: str = "") -> Result:
        """Release the claim of a message that was not sent, and return `result`. `code` and `reason` describe
        why the message was not sent. Both are empty if only the invocation's remaining time was too short, if
        the message is delivered again in a second, if the other provider has to find out the outcome of an
        earlier try, or if a fax was received too often to be submitted. `code` alone is empty if an earlier
        trouble is kept."""
        self._ledger.release(claim, code, reason)
        return result

    def retried(self, message: M, record: QueueRecord) -> None:
        """Handle a message that the provider did not accept, or that could not be submitted, before it is
        retried. The method is empty unless a channel's subclass overrides it."""

    def retry_wait(self, receives: int, minimum: float = 0) -> float:
        """Return the seconds until the next try after receive number `receives`. The wait grows with each
        receive, has a random part, and lasts at least `minimum` seconds if possible.

        The wait is never longer than the maximum wait of the settings, because the queue's retention is
        derived from that maximum.
        """
        cap = self._settings.backoff_cap_seconds
        wait = backoff(receives, self._settings.backoff_seconds, cap, self._tools.jitter)
        return max(min(minimum, cap), wait)

    def look_up_wait(self, record: QueueRecord) -> ComeBack:  # noqa: ARG002 - FaxDelivery uses the record
        """Return the wait after a look-up that failed. It is as long as the wait after an unknown outcome, so
        that the message does not become a dead letter quickly while look-ups keep failing."""
        return ComeBack(self._settings.lease_seconds + 1)

    def fail_invalid(self, fault: Invalid, record: QueueRecord) -> Result:
        """Record that a message has failed because it is invalid, and return the record's result."""
        attribute = self._attribute(fault)
        if not self._ledger.refuse(record.item, "invalid", str(fault), attribute, record.put_at):
            return ComeBack(self.retry_wait(record.receives))
        self._tally.note("Rejected", "refused", field=fault.field)
        return DONE

    def _attribute(self, fault: Invalid) -> str:
        return fault.attribute(self._adapter.contract.__struct_encode_fields__)


def to_people(
    settings: SuppressingSender, adapter: Adapter[M, R], tools: Tools, line_seconds: float | None = None
) -> Delivery[M, R]:
    """Build the delivery of a channel whose recipients are people: it checks the suppression list and the
    opt-outs."""
    choices = BatchChoices(settings, tools.dynamodb, tools.clock)
    return Delivery(settings, adapter, tools, choices=choices, line_seconds=line_seconds)


def _submitted(claim: Claimed, message: M) -> M:
    """Return the message for the submit: with its own recipients, or with the recipient to whom it is
    redirected."""
    return message if claim.redirected_to is None else message.redirected(claim.redirected_to)


def _cause(error: Exception) -> str:
    """Return the cause of an error as text. Only the texts of Mailroom's own errors are quoted, because the
    texts of other errors may contain addresses."""
    return str(error) if isinstance(error, OutcomeUnknown) else type(error).__name__
