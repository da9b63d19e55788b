"""Delivery of a fax: it is submitted once and followed until it ends, and its line waits until then.

claim ── submit ── checkpoint ── poll … poll ── hand back ┐        one function's time
      ┌───────────────────────────────────────────────────┘
      └▶ claim ── poll … poll ── delivered                         the next invocation's
"""

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
from mailroom.delivery.delivery import Delivery
from mailroom.delivery.worker import DONE, TO_DEAD_LETTERS, ComeBack, QueueRecord, Result, Tools
from mailroom.environment import FaxSender
from mailroom.errors import Invalid
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.claims import Checkpoint, Claimed
from mailroom.message.message import encode
from mailroom.message.outcome import Sent
from mailroom.outcomes import OF_THE_LINE
from mailroom.recipients.choices import Blocked
from mailroom.telemetry import logger

_HOUR = 3600
EARLY_SECONDS = 60
"""Seconds by which a fax may be sent before its `send_at`: the clock that let it wait may be ahead of
ours."""


class FaxDelivery(Delivery[Fax, FaxRequest]):
    """Delivers faxes of a FIFO queue whose groups are lines: an unfinished fax locks its line. `accepted` and
    `already_submitted` follow a fax that was submitted."""

    _settings: FaxSender
    _adapter: FaxAdapter
    payload_is_content = True
    """The payload is the PDF, which the provider fetches."""

    def __init__(self, settings: FaxSender, adapter: FaxAdapter, tools: Tools) -> None:
        # The fax before on the line may have been submitted long before it ended.
        super().__init__(settings, adapter, tools, line_seconds=settings.longest_fax_seconds + _HOUR)
        self._callbacks = UrlPolicy(schemes=settings.callback_schemes, ports=settings.callback_ports)

    def read(self, body: dict[str, Any]) -> tuple[dict[str, Any], Fax | Invalid]:
        """Read a queue's body: the item and its fax. Bodies of an upstream application have a `fax_id`.
        Raises Malformed."""
        return super().read(item_of(body))

    def deliver(self, message: Fax | Invalid, record: QueueRecord) -> Result:
        """Take a fax as far as it goes, as any message, but only under the group of its line."""
        if isinstance(message, Invalid):
            return self.fail_invalid(message, record)
        if record.group not in (None, message.group):
            return self._send_on(message, record)
        return super().deliver(message, record)

    def fail_invalid(self, fault: Invalid, record: QueueRecord) -> Result:
        """End an invalid fax as failed. A bad copy of a fax that is under way must not lock the line of its
        group."""
        return DONE if super().fail_invalid(fault, record) is DONE else TO_DEAD_LETTERS

    def _send_on(self, fax: Fax, record: QueueRecord) -> Result:
        """Queue a fax under its own group: under another, it could be sent beside one on the same line."""
        entry = Entry("", encode(record.item), group=fax.group, duplicate=fax.duplicate)
        if entry.size > queues.MAX_BYTES:  # SQS refuses it for ever, and retries would lock the line
            too_large = Invalid("item", "is over 1 MiB as JSON; leave out what no fax needs")
            return self.fail_invalid(too_large, record)
        if queues.send(self._tools.sqs, self._settings.queue_url, [entry]):
            return ComeBack(self.retry_wait(record.receives))
        self._tally.note("SentOn", "under another line's group; sent on under its own")
        return DONE

    def screen(self, claim: Claimed, message: Fax) -> Fax | Blocked:
        """Check the callback's URL and the time as well, for a fax that came straight to the queue has not
        passed dispatch. Both are checked before the first submit only: settings may change while a fax is on
        the line, and its later attempts go by the settings of the first. Raises Invalid."""
        if message.attempt == 1:
            self._callbacks.validate("callback_url", message.callback_url)
            self._check_time(message)
        return super().screen(claim, message)

    def _check_time(self, fax: Fax) -> None:
        """Raise Invalid if the fax's time is in the future: in this queue the fax would lock its line until
        then."""
        if (fax.due() or 0.0) > self._tools.clock() + EARLY_SECONDS:
            raise Invalid(
                "send_at",
                "lies ahead, and the fax queue lets nothing wait; put the fax into the mailbox, which does, "
                "or into the queue at its time",
            )

    def take_turn(self, record: QueueRecord) -> bool:
        """Wait for the turn to submit. After the last receive that may submit, too few are left to follow the
        fax to its end: a dead letter frees the line, and the next fax would dial while this one is on it."""
        if record.receives > self._settings.last_submit_receive:
            logger.error("not submitted: received too often already", receives=record.receives)
            return False
        return super().take_turn(record)

    def accepted(self, claim: Claimed, message: Fax, sent: Sent, record: QueueRecord) -> Result:
        """Keep the provider's id, and follow the fax until it ends."""
        provider_id = sent.provider_id
        self._tally.add("Submitted")
        submitted = int(self._tools.clock() * 1000)
        try:
            self._ledger.checkpoint(claim, self._adapter.provider, provider_id, message.line)
        except Exception:
            logger.error("submitted, but not recorded", provider_id=provider_id)
            raise
        self.measure(message, record)
        return self._follow(claim, message, provider_id, submitted, record)

    def already_submitted(self, claim: Claimed, message: Fax, sent: Sent, record: QueueRecord) -> Result:
        """Follow a fax that an earlier invocation submitted."""
        provider_id = sent.provider_id
        if claim.checkpoint is not None and claim.checkpoint.provider != self._adapter.provider:
            return self._elsewhere(claim, claim.checkpoint)
        if claim.checkpoint is None:
            self._tally.note("Recovered", "an earlier try was accepted", provider_id=provider_id)
            self._ledger.checkpoint(claim, self._adapter.provider, provider_id, message.line)
        # The time of a submit that a look-up found is unknown; too late is the safe side.
        submitted = claim.checkpoint.submitted_at if claim.checkpoint else None
        return self._follow(claim, message, provider_id, submitted or int(self._tools.clock() * 1000), record)

    def _elsewhere(self, claim: Claimed, checkpoint: Checkpoint) -> Result:
        """Let a fax wait that another provider has, because the settings were changed with faxes under way.
        That provider cannot be asked; the line stays locked for as long as it may be in use, and then an
        operator has to look."""
        logger.error("submitted to another provider; ask there how it ended", provider=checkpoint.provider)
        self._tally.add("Misconfigured")
        self._ledger.hand_back(claim)
        ends = checkpoint.submitted_at / 1000 + self._settings.longest_fax_seconds
        return ComeBack(max(self._settings.misconfigured_seconds, ends - self._tools.clock()))

    def _follow(
        self, claim: Claimed, message: Fax, provider_id: str, submitted: int, record: QueueRecord
    ) -> Result:
        """Poll the fax until it ends, or until the function's time does."""
        while True:
            state = self._state(provider_id)
            if not isinstance(state, Pending):
                return self._ended(claim, message, provider_id, state)
            if self._tools.clock() > submitted / 1000 + self._settings.longest_fax_seconds:
                return self._overdue(claim, message, provider_id)
            if not self._time_to_poll(record):
                self._ledger.hand_back(claim)
                self._tally.add("HandedBack")
                return ComeBack(self._settings.poll_seconds)
            self._tools.sleep(self._settings.poll_seconds)

    def _state(self, provider_id: str) -> FaxState:
        """Fetch the fax's state. Without a response the fax counts as pending: it may still be on the
        line."""
        try:
            return self._adapter.open().ask(lambda api: api.fetch(provider_id))
        except Exception:  # noqa: BLE001 - logged, and asked again
            logger.warning("the provider did not say how the fax stands", exc_info=True)
            self._tally.add("PollErrors")
            return Pending("unknown")

    def look_up_wait(self, record: QueueRecord) -> ComeBack:
        """Return the wait after a look-up that failed: a back-off, for the fax locks its line until then. The
        receives until the last that may submit cover an outage in such waits."""
        return ComeBack(self.retry_wait(record.receives))

    def _time_to_poll(self, record: QueueRecord) -> bool:
        """Tell whether another poll, and the record of its result, would be over in time."""
        settings = self._settings
        needed = settings.poll_seconds + settings.submit_seconds + settings.record_seconds
        return record.remaining() / 1000 > needed

    def _ended(
        self, claim: Claimed, message: Fax, provider_id: str, state: Delivered | Undelivered
    ) -> Result:
        if isinstance(state, Delivered):
            self._ledger.complete(claim, self._adapter.provider, provider_id)
            self._tally.add("Sent")
            return DONE
        detail = "" if state.detail == state.status else state.detail
        reason = OF_THE_LINE + state.status + (f" ({detail})" if detail else "")
        if state.again and message.attempt + message.retry_count < self._settings.max_attempts:
            self._ledger.retry_later(claim, state.status, reason)
            self._tally.note("Retrying", "not delivered; another attempt follows", status=state.status)
            return DONE
        self._ledger.fail(claim, state.status, reason)
        self._tally.note("Rejected", "not delivered, for good", status=state.status)
        return DONE

    def _overdue(self, claim: Claimed, message: Fax, provider_id: str) -> Result:
        """Stop a fax that has taken longer than any fax does. If it is still pending after that, the record
        comes back as in an outage; the checkpoint stays for an operator's redrive."""
        try:
            self._adapter.open().ask(lambda api: api.cancel(provider_id))
        except Exception:  # noqa: BLE001 - logged; how it stands is asked next, whatever became of this
            logger.warning("an overdue fax could not be cancelled", exc_info=True)
        state = self._state(provider_id)
        if isinstance(state, Pending):
            logger.error("an overdue fax has not ended", status=state.status, provider_id=provider_id)
            self._tally.add("Overdue")
            self._ledger.hand_back(claim)
            return ComeBack(self._settings.misconfigured_seconds)  # the line waited out the outage already
        return self._ended(claim, message, provider_id, state)
