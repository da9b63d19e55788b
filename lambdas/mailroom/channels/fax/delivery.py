"""Delivers faxes: submits a fax once and polls its state until it is delivered or has failed. Until then, no
other fax is sent to the same line (the recipient's number).

claim ── submit ── checkpoint ── poll … poll ── hand back ┐        first invocation
      ┌───────────────────────────────────────────────────┘
      └▶ claim ── poll … poll ── delivered                         next invocation
"""

from contextlib import suppress
from typing import Any

from mailroom.aws import queues
from mailroom.aws.queues import Entry
from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.contract import (
    Delivered,
    Fax,
    FaxRequest,
    FaxState,
    Pending,
    Undelivered,
    item_of,
)
from mailroom.clock import END_OF_TIME, epoch
from mailroom.delivery.attempt import Attempt, Ended, ReleaseReason
from mailroom.delivery.batch import Batch
from mailroom.delivery.delivery import Delivery
from mailroom.delivery.worker import DONE, TO_DEAD_LETTERS, ComeBack, QueueRecord, Result, Tools
from mailroom.environment import FaxSender
from mailroom.errors import Invalid
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.claims import Checkpoint
from mailroom.message.message import encode
from mailroom.message.outcome import Facts, Sent
from mailroom.outcomes import OF_THE_LINE
from mailroom.telemetry import logger

_HOUR = 3600
EARLY_SECONDS = 60
"""Maximum seconds by which a fax may be sent before its `send_at`, because the clock of the function that
delayed the fax may be ahead of this function's clock."""

TOO_LATE = ReleaseReason(
    "received_too_often",
    "the queue record was received too often to send the fax and to poll it until it ends",
    keeps_trouble=True,
)


class FaxAttempt(Attempt[Fax, FaxRequest]):
    """Attempt to send one fax. `accepted` and `already_submitted` poll the state of a submitted fax."""

    sender: "FaxDelivery"
    settings: FaxSender
    adapter: FaxAdapter

    def screen(self, message: Fax) -> Fax:
        """Check the fax's callback URL and `send_at` before the checks of every channel, because dispatch has
        not checked a fax that a program put into the fax queue directly. The two are only checked in the
        first attempt, so that a later change of the settings does not make the fax invalid. Raises
        Invalid."""
        if message.attempt == 1:
            self.sender.callbacks.validate("callback_url", message.callback_url)
            self._check_time(message)
        return super().screen(message)

    def _check_time(self, fax: Fax) -> None:
        """Raise Invalid if the fax's `send_at` is in the future, because a fax that waits in the fax queue
        blocks its line until that time."""
        if (fax.due() or 0.0) > self.tools.clock() + EARLY_SECONDS:
            raise Invalid(
                "send_at",
                "is in the future, but a fax cannot wait in the fax queue; put it into the mailbox, or into "
                "the queue at that time",
            )

    def take_turn(self) -> None:
        """Wait until the rate limit permits the fax to be submitted, unless the queue record was received too
        often for that.

        If a fax were submitted in one of its last receives, too few receives would be left to poll the fax
        until it ends. The queue record would become a dead letter during the transmission, and the next fax
        would be sent to a line that is in use.
        """
        if self.record.receives > self.settings.last_submit_receive:
            logger.error("not submitted: received too often", receives=self.record.receives)
            raise Ended(self.release(TOO_LATE, ComeBack(0)))
        super().take_turn()

    def accepted(self, sent: Sent) -> Result:
        """Store the provider's id of the fax in the ledger, and poll the fax until it ends."""
        provider_id = sent.provider_id
        self.tally.add("Submitted")
        try:
            self.ledger.checkpoint(self.claim, self.adapter.provider, provider_id, self.message.line)
        except Exception:
            logger.error("submitted, but not recorded", provider_id=provider_id)
            raise
        self.measure()
        return self._follow(provider_id, int(self.tools.clock() * 1000))

    def already_submitted(self, sent: Sent) -> Result:
        """Poll a fax that an earlier invocation submitted until it ends."""
        provider_id, checkpoint = sent.provider_id, self.claim.checkpoint
        if checkpoint is not None and checkpoint.provider != self.adapter.provider:
            return self._elsewhere(checkpoint)
        if checkpoint is None:
            self.tally.note("Recovered", "an earlier try was accepted", provider_id=provider_id)
            self.ledger.checkpoint(self.claim, self.adapter.provider, provider_id, self.message.line)
        # If a look-up found the fax, the time at which it was submitted is unknown. The current time is used
        # instead, so that the fax becomes overdue later, but never too early.
        submitted = checkpoint.submitted_at if checkpoint else None
        return self._follow(provider_id, submitted or int(self.tools.clock() * 1000))

    def _elsewhere(self, checkpoint: Checkpoint) -> Result:
        """Postpone a fax that was submitted to another provider before the setting of the provider changed.

        The fax's state cannot be fetched from the other provider. The line stays blocked for as long as the
        fax may still be in transmission. Afterwards an operator has to find out whether the fax arrived.
        """
        logger.error("submitted to another provider; ask there for the result", provider=checkpoint.provider)
        self.tally.add("Misconfigured")
        reason = f"it was submitted to {checkpoint.provider}, which is not the provider of faxes any more"
        self.ledger.hand_back(self.claim, "elsewhere", reason)
        ends = checkpoint.submitted_at / 1000 + self.settings.longest_fax_seconds
        return ComeBack(max(self.settings.misconfigured_seconds, ends - self.tools.clock()))

    def _follow(self, provider_id: str, submitted: int) -> Result:
        """Poll the fax until it ends, or until the function has too little time left for another poll."""
        while True:
            state = self._state(provider_id)
            if not isinstance(state, Pending):
                return self._ended(provider_id, state, submitted)
            if self.tools.clock() > submitted / 1000 + self.settings.longest_fax_seconds:
                return self._overdue(provider_id, submitted)
            if not self._time_to_poll():
                self.ledger.hand_back(self.claim)
                self.tally.add("HandedBack")
                return ComeBack(self.settings.poll_seconds)
            self.tools.sleep(self.settings.poll_seconds)

    def _state(self, provider_id: str) -> FaxState:
        """Fetch the fax's state. Return Pending if the provider does not respond, because the fax may still
        be in transmission."""
        try:
            return self.adapter.open().ask(lambda api: api.fetch(provider_id))
        except Exception:  # noqa: BLE001 - logged; the next poll fetches the state again
            logger.warning("the state of a fax could not be fetched", exc_info=True)
            self.tally.add("PollErrors")
            return Pending("unknown")

    def look_up_wait(self) -> ComeBack:
        """Return the wait after a failed look-up. The wait is only the usual back-off, because the fax blocks
        its line during the wait. Together, the waits between the receives in which a fax may be submitted
        are longer than a usual outage of the provider."""
        return self.retry()

    def _time_to_poll(self) -> bool:
        """Return whether the function has enough time left for another poll and for writing its result into
        the ledger."""
        settings = self.settings
        needed = settings.poll_seconds + settings.submit_seconds + settings.record_seconds
        return self.record.remaining() / 1000 > needed

    def _ended(self, provider_id: str, state: Delivered | Undelivered, submitted: int) -> Result:
        if isinstance(state, Delivered):
            facts = _facts(state, submitted)
            self.ledger.complete(self.claim, self.adapter.provider, provider_id, facts, status="delivered")
            self.tally.add("Sent")
            return DONE
        detail = "" if state.detail == state.status else state.detail
        reason = OF_THE_LINE + state.status + (f" ({detail})" if detail else "")
        fax = self.message
        if state.fault == "account" and not self.claim.redriven:
            return self._misconfigured(reason)
        # Neither a limit of the day nor the fault of an account that an operator has corrected is an attempt
        # of the line.
        counts = state.fault not in ("account", "day")
        attempts = fax.attempt + fax.retry_count - self.claim.uncounted
        if not counts or (state.again and attempts < self.settings.max_attempts):
            self.ledger.retry_later(self.claim, state.status, reason, counts=counts)
            metric = "DayUsedUp" if state.fault == "day" else "Retrying"
            self.tally.note(metric, "not delivered; another attempt follows", status=state.status)
            return DONE
        self.ledger.fail(self.claim, state.status, reason)
        self.tally.note("Rejected", "not delivered, and not retried", status=state.status)
        return DONE

    def _misconfigured(self, reason: str) -> Result:
        """Let a fax that was not delivered because of the account become a dead letter. After an operator has
        redriven it, another attempt follows."""
        logger.error("not delivered: the configuration is invalid", reason=reason)
        self.tally.add("Misconfigured")
        self.ledger.hand_back(self.claim, "misconfigured", reason)
        return TO_DEAD_LETTERS

    def _overdue(self, provider_id: str, submitted: int) -> Result:
        """Cancel a fax that has taken longer than `longest_fax_seconds`. If the fax is still pending after
        the cancellation, its queue record is received again after `misconfigured_seconds`. The provider's id
        of the fax stays in the ledger, so that polling can continue after an operator redrives the fax."""
        try:
            self.adapter.open().ask(lambda api: api.cancel(provider_id))
        except Exception:  # noqa: BLE001 - logged; the fax's state is fetched next in any case
            logger.warning("an overdue fax could not be cancelled", exc_info=True)
        state = self._state(provider_id)
        if isinstance(state, Pending):
            logger.error("an overdue fax has not ended", status=state.status, provider_id=provider_id)
            self.tally.add("Overdue")
            self.ledger.hand_back(self.claim, "overdue", "it did not end in time, and was not cancelled")
            # The wait may be long, because the fax has already blocked its line for longer than any fax
            # takes.
            return ComeBack(self.settings.misconfigured_seconds)
        return self._ended(provider_id, state, submitted)


class FaxBatch(Batch[Fax, FaxRequest]):
    """Faxes of one invocation."""

    def deliver(self, message: Fax | Invalid, record: QueueRecord) -> Result:
        """Deliver a fax if the message group of its queue record is that of the fax's line. Otherwise put the
        fax into the queue again under the message group of its line."""
        if isinstance(message, Invalid) or record.group in (None, message.group):
            return super().deliver(message, record)
        return self._send_on(message, record)

    def fail_invalid(self, fault: Invalid, record: QueueRecord) -> Result:
        """Write into the ledger that an invalid fax has failed. If this is impossible, for example because
        the queue record is an invalid copy of a fax in transmission, move the queue record to the dead-letter
        queue, so that its retries do not block the line."""
        return DONE if super().fail_invalid(fault, record) is DONE else TO_DEAD_LETTERS

    def _send_on(self, fax: Fax, record: QueueRecord) -> Result:
        """Put a fax into the queue again under the message group of its line. Under another message group the
        fax could be sent while another fax uses the same line."""
        entry = Entry("", encode(record.item), group=fax.group, duplicate=fax.duplicate)
        if entry.size > queues.MAX_BYTES:  # SQS never accepts it, so retries would only block the line
            too_large = Invalid("item", "is over 1 MiB as JSON; remove attributes that a fax does not use")
            return self.fail_invalid(too_large, record)
        if queues.send(self.tools.sqs, self.sender.settings.queue_url, [entry]):
            return ComeBack(self.sender.retry_wait(record.receives))
        self.tools.tally.note("SentOn", "in the wrong message group; moved to its own group")
        return DONE


class FaxDelivery(Delivery[Fax, FaxRequest]):
    """Delivery of the faxes of a FIFO queue. The message group is the recipient's line, so an unfinished fax
    blocks later faxes to this line."""

    batch = FaxBatch
    attempt = FaxAttempt
    payload_is_content = True
    """Whether a message's payload is its content and not a JSON item. The payload of a fax is the PDF that
    the provider fetches."""

    def __init__(self, settings: FaxSender, adapter: FaxAdapter, tools: Tools) -> None:
        # A look-up needs the ids of earlier faxes to the same number, so that it does not take one of them
        # for this fax. An earlier fax may have been submitted long before its transmission ended.
        super().__init__(settings, adapter, tools, line_seconds=settings.longest_fax_seconds + _HOUR)
        self.callbacks = UrlPolicy(schemes=settings.callback_schemes, ports=settings.callback_ports)

    def read(self, body: dict[str, Any]) -> tuple[dict[str, Any], Fax | Invalid]:
        """Read a message body of the fax queue, and return the item and the fax in it. A body with a `fax_id`
        comes from an upstream application and is converted to an item first. Raises Malformed."""
        return super().read(item_of(body))


def _facts(state: Delivered, submitted: int) -> Facts:
    """Return the provider's facts about a delivered fax for its ledger item. An invalid value is omitted,
    because the fax has arrived in any case. `submitted` is in epoch milliseconds."""
    facts: Facts = {"sent_from": f"{state.sender}"[:16]} if state.sender else {}
    if (pages := f"{state.pages}"[:4]).isdecimal():
        facts["pages"] = int(pages)
    with suppress(ValueError, OverflowError):
        if 0 < (second := int(epoch(f"{state.at}"))) < END_OF_TIME:
            # The providers' times are in seconds. Within its second, the delivery is after the submit.
            facts["deliveredAt"] = sorted((second * 1000, submitted, second * 1000 + 999))[1]
    return facts
