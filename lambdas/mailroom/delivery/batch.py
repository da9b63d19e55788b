"""Batch of messages that one worker delivers together: everything that is read, decided or claimed once for
all of them."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Generic, Protocol

from mailroom.aws.dynamo_batches import batch_get
from mailroom.delivery.adapter import M, R, Session
from mailroom.delivery.sender_state import SenderState
from mailroom.delivery.waiting.day import USED_UP_SECONDS
from mailroom.delivery.waiting.reason import Answer, Entry, WaitReason
from mailroom.delivery.worker import DONE, TO_DEAD_LETTERS, ComeBack, QueueRecord, Result
from mailroom.errors import ClaimLost, Invalid
from mailroom.ledger.claims import Claim, Claimed, InProgress, OutOfSequence
from mailroom.ledger.contents import Held
from mailroom.ledger.ledger import NewClaim
from mailroom.ledger.run_states import REASON as RUN_STOPPED
from mailroom.ledger.run_states import STOPPED
from mailroom.ledger.waits import Wait
from mailroom.message.message import CampaignStart, Key, Message, encode
from mailroom.message.outcome import ANY_ACCOUNT, Misconfigured, NotReady, Refusal
from mailroom.recipients.choices import BatchChoices
from mailroom.telemetry import logger

Waiting = tuple[Wait, QueueRecord]


class AttemptToDeliver(Protocol):
    """Attempt to send one claimed message; see `Attempt`."""

    def run(self) -> Result: ...

    def out_of_time(self) -> Result: ...


class Batch(Generic[M, R]):
    """Messages that a worker delivers together. A new batch reads the opt-outs and the campaign runs of all
    messages, holds the messages that must wait, and claims the first attempts of the others."""

    def __init__(
        self,
        sender: SenderState[M, R],
        attempt: Callable[..., AttemptToDeliver],
        messages: Sequence[tuple[M, QueueRecord]],
    ) -> None:
        """Prepare the delivery of `messages`. Never raises: a message that could not be prepared goes back to
        the queue, or is prepared separately by `deliver`."""
        self.sender = sender
        self._attempt = attempt
        self.halted: dict[CampaignStart, str] = {}
        """STOPPED, PAUSED or RUN_UNKNOWN, for the starts of campaign runs that must not go on."""
        choices, channel = sender.choices, sender.settings.channel
        self.choices = None if choices is None else BatchChoices(choices, channel)
        """Suppression list and opt-outs; None if the recipients are not people."""
        self.waits_after_evidence: dict[Key, Wait] = {}
        """Waits of messages that may have been sent. Such a message waits only after evidence has shown that
        no try has sent it."""
        self.answers: list[Answer] = []
        """Outcomes of the batch's messages, and reasons why messages were not submitted, in any order."""
        self.tools = sender.tools
        self._tested = False
        """Whether a message has been submitted, or is about to be."""
        self._results: dict[Key, Result] = {}
        """Results of the messages that are not sent now."""
        self._invalid: dict[Key, Invalid] = {}
        """Faults of messages whose wait cannot be determined."""
        self._requested: dict[Key, NewClaim] = {}
        """Claims that the batch's call has requested, and may have got although its response was lost."""
        self._claims: dict[Key, Claimed] = {}
        if messages:
            # The account is opened before threads share the batch: a claim, a look-up and a submit use the
            # same account, even if the secret changes.
            self.access  # noqa: B018 - the property opens the account
        entries = self._read(messages)
        # The messages of a stopped run are cancelled, so they need neither a sending time nor a part of the
        # daily budget.
        self._cancel_together([entry for entry in entries if entry.halted == STOPPED])
        self._find_waits([entry for entry in entries if entry.halted != STOPPED])
        unclaimed = self._results.keys() | self._invalid
        self._claim_together([entry for entry in entries if entry.record.key not in unclaimed])

    @cached_property
    def access(self) -> Session[M, R] | Refusal:
        """Session of the batch, or the reason why the account's credentials could not be loaded."""
        try:
            return self.sender.adapter.open()
        except NotReady as reason:
            return reason.outcome
        except Exception as error:  # noqa: BLE001 - only the error's class is logged: its text may quote a secret
            logger.error("the account could not be opened", error=type(error).__name__)
            return Misconfigured(f"the account cannot be opened: {type(error).__name__}")

    @cached_property
    def session(self) -> Session[M, R]:
        """Session of the batch. Raises NotReady if the account's credentials could not be loaded."""
        if isinstance(self.access, Refusal):
            raise NotReady(self.access)
        return self.access

    @cached_property
    def _account(self) -> str | None:
        """Account of the batch's claims; None if the batch cannot be submitted."""
        return None if isinstance(self.access, Refusal) else self.access.account

    def deliver(self, message: M | Invalid, record: QueueRecord) -> Result:
        """Deliver one message as far as possible now, and return the result for its record. Raises ClaimLost
        and errors of the ledger. Then the message was not submitted, or its outcome was not recorded and the
        claim lasts until its lease ends."""
        if isinstance(message, Invalid):
            return self.fail_invalid(message, record)
        if (fault := self._invalid.get(record.key)) is not None:
            return self.fail_invalid(fault, record)
        if (result := self._results.get(record.key)) is not None:
            return result
        if not self.tools.pace.in_time(record):
            self._give_back(message, record)
            return ComeBack(0)
        claim = self._claims.get(record.key) or self.tools.ledger.claim(
            *(self._requested.get(record.key) or self._new_claim(message, record))
        )
        if isinstance(claim, Claimed):
            return self._attempt(self, claim, message, record).run()
        return self._not_claimed(claim, message)

    def withheld(self) -> Refusal | None:
        """Return the reason why a message is not submitted now: the provider has refused the latest messages,
        and another message of the batch already tests whether it still refuses. Returns None if the message
        may be submitted."""
        tested, self._tested = self._tested, True
        return self.sender.other.withheld() if tested else None

    def wait(self, message: Message, record: QueueRecord, wait: Wait | None = None) -> Result:
        """Let a message wait, and return the result for its record: for the reason in `wait` or, by default,
        for the daily budget. The caller must release its claim before."""
        day = self.sender.day
        waiting = wait or self._wait(Entry(message, record), day, day.due())
        results = self._hold([(waiting, record)])
        self._results |= results  # for a copy of the message in this batch
        return results.get(record.key, ComeBack(USED_UP_SECONDS))

    def fail_invalid(self, fault: Invalid, record: QueueRecord) -> Result:
        """Record that a message has failed because it is invalid, and return the record's result."""
        attribute = self.sender.attribute(fault)
        if not self.tools.ledger.refuse(record.item, "invalid", str(fault), attribute, record.put_at):
            return ComeBack(self.sender.retry_wait(record.receives))
        self.tools.tally.note("Rejected", "refused", field=fault.field)
        return DONE

    def close(self) -> None:
        """Account for the batch: each reason to wait learns from the answers. Never raises."""
        for reason in self.sender.reasons:
            try:
                reason.learn(self.answers)
            except Exception:  # noqa: BLE001 - logged; the messages are sent, and the provider counts them too
                logger.warning("the answers to a batch were not accounted", reason=reason.name, exc_info=True)

    def _read(self, messages: Sequence[tuple[M, QueueRecord]]) -> list[Entry]:
        """Read the recipients' choices and the states of the campaign runs in one call, and return the
        messages with the states of their runs. Never raises."""
        starts = [message.campaign_start for message, _ in messages]
        runs = self.sender.runs
        moment, run_keys = self.tools.clock(), runs.keys(starts)
        keys = {runs.table: run_keys} if run_keys else {}
        try:
            if self.choices is not None:
                keys |= self.choices.keys([message for message, _ in messages])
            items = batch_get(self.tools.dynamodb, keys, consistent=(runs.table,))
            if self.choices is not None:
                self.choices.take(items)
            self.halted = runs.states(starts, items.get(runs.table, ()), moment)
        except Exception:  # noqa: BLE001 - logged; choices are read again for each message, and runs now
            logger.warning("suppressed recipients, opt-outs and runs could not be read", exc_info=True)
            self.halted = runs.halted(starts)
        return [
            Entry(message, record, None if start is None else self.halted.get(start))
            for (message, record), start in zip(messages, starts, strict=True)
        ]

    def _cancel_together(self, entries: Sequence[Entry]) -> None:
        """Cancel messages of stopped runs that were certainly not sent, in one call. Never raises: a message
        that is not cancelled here is claimed, and decided by evidence."""
        if not entries:
            return
        try:
            cancelled = self.tools.ledger.cancel_together(
                [(entry.message, entry.record.put_at) for entry in entries], STOPPED, RUN_STOPPED
            )
        except Exception:  # noqa: BLE001 - logged; each message is claimed
            logger.warning("messages of a stopped run were not cancelled in one call", exc_info=True)
            return
        for key in cancelled:
            self._results[key] = DONE
            self.tools.tally.add("Cancelled")

    def _return(self, entries: Sequence[Entry]) -> None:
        """Let messages that could not be prepared go back to the queue."""
        for entry in entries:
            self._results[entry.record.key] = ComeBack(self.sender.retry_wait(entry.record.receives))

    def _find_waits(self, entries: Sequence[Entry]) -> None:
        """Ask each reason which messages must wait, and hold them. A message waits only if it was certainly
        not sent. This is a condition of the write that holds it, which precedes any claim. Any other message
        is claimed first, and waits only if evidence shows that no try has sent it. Never raises."""
        moment = self.tools.clock()
        entries = [entry for entry in entries if not entry.message.expired(moment)]
        waiting: list[Waiting] = []
        for reason in self.sender.reasons:
            try:
                dues = reason.waits(entries, moment)
            except Exception:  # noqa: BLE001 - logged, and the queue keeps the records
                logger.exception("messages that may have to wait go back to the queue", reason=reason.name)
                self.tools.tally.add("Errors")
                self._return(entries)
                break
            if not dues:
                continue
            for entry in entries:
                match dues.get(entry.record.key):
                    case None:
                        pass
                    case Invalid() as fault:
                        self._invalid[entry.record.key] = fault
                    case due:
                        waiting.append((self._wait(entry, reason, due), entry.record))
            entries = [entry for entry in entries if entry.record.key not in dues]
        self._results |= self._hold(waiting)
        self.waits_after_evidence = {
            wait.message.key: wait for wait, record in waiting if record.key not in self._results
        }

    def _wait(self, entry: Entry, reason: WaitReason, due: float) -> Wait:
        message, record = entry.message, entry.record
        return Wait(
            message,
            reason.name,
            min(due, message.expiry() or due),
            self.tools.ledger.new_token(),
            record.put_at,
            self.sender.window.of(message),
            lines_up=self.sender.day.lines_up,
            new=_is_new(entry),
        )

    def _hold(self, waiting: Sequence[Waiting]) -> dict[Key, Result]:
        """Hold messages, and return the results for their records. If an error prevents this, the messages go
        back to the queue. A message that cannot be held because it may have been sent is left out, so that
        it is claimed. Never raises."""
        if not waiting:
            return {}
        waits, contents = [wait for wait, _ in waiting], self.sender.contents
        try:
            contents.put(
                [
                    (Held(wait.message.key, wait.version), encode(record.item), wait.ends)
                    for wait, record in waiting
                ]
            )
            # The contents of earlier waits, and of messages that do not wait, are not needed any more.
            unused: list[Held] = []
            results = self.sender.waits.hold(waits, lambda key, version: unused.append(Held(key, version)))
            marked = [wait for wait, is_held in zip(waits, results, strict=True) if is_held]
            unheld = [wait for wait, is_held in zip(waits, results, strict=True) if not is_held]
            contents.delete([*unused, *(Held(wait.message.key, wait.version) for wait in unheld)])
            self.sender.day.join(marked)
        except Exception:  # noqa: BLE001 - logged, and the queue keeps the records
            logger.exception("the messages that must wait were not held; they go back to the queue")
            self.tools.tally.add("Errors")
            retry_wait = self.sender.retry_wait
            return {record.key: ComeBack(retry_wait(record.receives)) for _, record in waiting}
        metrics = {reason.name: reason.metric for reason in self.sender.reasons}
        for wait in marked:
            self.tools.tally.add(metrics[wait.reason])
        return {wait.message.key: DONE for wait in marked}

    def _claim_together(self, entries: Sequence[Entry]) -> None:
        """Claim the first attempts of the batch in one call. Never raises: a message that is not claimed here
        is claimed separately. A message with two records in the batch is left out, so that each of the two
        records makes a separate claim."""
        if not self.sender.claims_together:
            return
        copies = Counter([entry.record.key for entry in entries])
        new = [entry for entry in entries if _is_new(entry) and copies[entry.record.key] == 1]
        if len(new) < 2 or not self.tools.pace.in_time(new[0].record):
            return
        try:
            self._requested = {
                entry.record.key: self._new_claim(entry.message, entry.record) for entry in new
            }
            replies = self.tools.ledger.claim_new([*self._requested.values()])
        except Exception:  # noqa: BLE001 - logged; each message is claimed in a separate call
            logger.warning("the batch was not claimed in one call", exc_info=True)
            return
        self._claims = {claim.key: claim for claim in replies if isinstance(claim, Claimed)}
        codes = {code for code in replies if isinstance(code, str)} - {"DuplicateItem"}
        if codes:
            logger.warning("not all claimed in one call", reasons=sorted(codes))

    def _new_claim(self, message: Message, record: QueueRecord) -> NewClaim:
        allowed, account = self.sender.allowed, self._account
        redirected_to = None if allowed is None else allowed.redirect(message.reached)
        if account is not None and redirected_to is not None:
            account = account_for(account, redirected_to)
        return NewClaim(message, account, redirected_to, self.tools.ledger.new_token(), record.put_at)

    def _give_back(self, message: M, record: QueueRecord) -> None:
        """Release the claim that the batch's call has made for a message, because too little of the
        function's time is left to submit the message. Releasing takes time too, so it is done only if the
        function has enough time left. Never raises."""
        requested = self._requested.get(record.key)
        if requested is None or record.remaining() / 1000 <= self.sender.settings.record_seconds:
            return
        claim = Claimed(record.key, requested.token)
        try:
            self._attempt(self, claim, message, record).out_of_time()
        except ClaimLost:
            pass  # the batch's call did not get the claim, so no release is needed
        except Exception:  # noqa: BLE001 - logged; the claim ends with its lease
            logger.warning("a claim was not released; it ends with its lease", exc_info=True)

    def _not_claimed(self, claim: Claim, message: M) -> Result:
        match claim:
            case InProgress(seconds):
                return ComeBack(seconds + 1)
            case OutOfSequence():
                logger.error("the attempt before this one has not ended", attempt=message.attempt)
                self.tools.tally.add("Malformed")
                return TO_DEAD_LETTERS
        self.tools.tally.note("Duplicates", "already done", found=type(claim).__name__.lower())
        return DONE


def account_for(account: str, redirected_to: str | None) -> str:
    """Return the name of an account for a claim, with the recipient of a redirect if there is one. A look-up
    searches for one recipient, so a try that was redirected to another recipient counts as a try at another
    account."""
    if account == ANY_ACCOUNT or redirected_to is None:
        return account
    return f"{account} for {redirected_to}"


def _is_new(entry: Entry) -> bool:
    """Return whether the ledger probably lacks an item of the message."""
    message = entry.message
    return entry.record.fresh and message.attempt == 1 and message.send_at is None
