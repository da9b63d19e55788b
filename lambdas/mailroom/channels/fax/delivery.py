"""How a fax goes: submitted once, followed until it ends, its line kept free of the next one until then.

claim ── submit ── checkpoint ── poll … poll ── hand back ┐        one function's time
      ┌───────────────────────────────────────────────────┘
      └▶ claim ── poll … poll ── delivered                         the next invocation's
"""

from collections.abc import Container
from typing import cast

from mailroom.aws import queues
from mailroom.aws.queues import Entry
from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.contract import Delivered, Fax, FaxRequest, FaxState, Pending, Undelivered, item_of
from mailroom.delivery.adapter import Adapter
from mailroom.delivery.delivery import Delivery, Received, Tools, Wait
from mailroom.environment import FaxSender, Sender
from mailroom.errors import Invalid
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.claim import Claimed
from mailroom.message.body import encode
from mailroom.message.outcome import Sent
from mailroom.outcomes.callbacks import OF_THE_LINE
from mailroom.telemetry import logger

_HOUR_MS = 3_600_000
EARLY_SECONDS = 60
"""A fax may be sent before its `send_at` by as much: the clock that let it wait may be ahead of this one."""


class FaxDelivery(Delivery[Fax, FaxRequest]):
    """Works for a FIFO queue whose groups are lines: what is not finished locks its line."""

    def __init__(self, settings: Sender, adapter: Adapter[Fax, FaxRequest], tools: Tools) -> None:
        super().__init__(settings, adapter, tools)
        self._fax = cast(FaxSender, settings)
        self._provider = cast(FaxAdapter, adapter)
        self._callbacks = UrlPolicy(schemes=self._fax.callback_schemes, ports=self._fax.callback_ports)

    def item_of(self, body: dict[str, object]) -> dict[str, object]:
        """Bodies that an upstream application wrote have a `fax_id`."""
        return item_of(body)

    def deliver(self, record: Received[Fax]) -> Wait:
        """As any message, but under the group of its line, and no other."""
        fax = record.message
        if isinstance(fax, Fax) and record.group not in (None, fax.group):
            return self._send_on(fax, record)
        return super().deliver(record)

    def _refuse(self, record: Received[Fax], fault: Invalid) -> Wait:
        """A bad copy of a fax that is under way must not lock whatever line it came under."""
        return None if super()._refuse(record, fault) is None else queues.AT_ONCE

    def _send_on(self, fax: Fax, record: Received[Fax]) -> Wait:
        """Under another group it could be faxed beside one that is on the same line."""
        entry = Entry("", encode(record.item), group=fax.group, duplicate=fax.duplicate)
        if entry.size > queues.MAX_BYTES:  # nobody takes it, and to wait for that would lock its line
            return self._refuse(record, Invalid("item", "is over 1 MiB as JSON; leave out what no fax needs"))
        if queues.send(self._tools.sqs, self._settings.queue_url, [entry]):
            return self.retry_wait(record.receives)
        return self._over("SentOn", "under another line's group; sent on under its own")

    def _whole(self, message: Fax) -> Fax:
        return message  # its payload is the PDF, which the provider fetches

    def _permitted(self, claim: Claimed, message: Fax) -> Fax:  # noqa: ARG002 - the fax alone decides
        """What came straight to the queue has passed no dispatch that looked at its callback's URL, or let it
        wait for its time. That is asked before the first submit and never again: settings may change while a
        fax is on the line, and it is seen through, and tried again, as it was taken. Raises Invalid."""
        if message.attempt == 1:
            self._callbacks.validate("callback_url", message.callback_url)
            self._check_time(message)
        return message

    def _check_time(self, fax: Fax) -> None:
        """Raise Invalid where its time is to come: here it would lock its line until then."""
        if (fax.due() or 0.0) > self._tools.clock() + EARLY_SECONDS:
            raise Invalid(
                "send_at",
                "lies ahead, and the fax queue lets nothing wait; put the fax into the mailbox, which does, "
                "or into the queue at its time",
            )

    def _known(self, message: Fax, since: int) -> Container[str]:
        # What was on the line before may have been submitted long before it ended.
        earliest = since - self._fax.longest_fax_seconds * 1000 - _HOUR_MS
        return self._ledger.ids_on_line(message.line, earliest)

    def _may_submit(self, record: Received[Fax]) -> bool:
        """Not by a receive after which too few are left to see the fax through: a dead letter frees the
        line, and the next fax would dial while this one is still on it."""
        if record.receives > self._fax.last_submit_receive:
            logger.error("not submitted: received too often already", receives=record.receives)
            return False
        return super()._may_submit(record)

    def _accepted(self, claim: Claimed, message: Fax, sent: Sent, record: Received[Fax]) -> Wait:
        provider_id = sent.provider_id
        self.tally["Submitted"] += 1
        now = int(self._tools.clock() * 1000)
        try:
            self._ledger.checkpoint(claim, self._adapter.provider, provider_id, message.line)
        except Exception:
            logger.error("submitted, but not recorded", provider_id=provider_id)
            raise
        self._waited(message, record)  # not before the record, which nothing may keep from being made
        return self._follow(claim, message, provider_id, now, record)

    def _recovered(self, claim: Claimed, message: Fax, sent: Sent, record: Received[Fax]) -> Wait:
        provider_id = sent.provider_id
        if claim.provider_id is not None and claim.provider != self._adapter.provider:
            return self._elsewhere(claim)
        if claim.provider_id is None:
            self._over("Recovered", "an earlier try was accepted", provider_id=provider_id)
            self._ledger.checkpoint(claim, self._adapter.provider, provider_id, message.line)
        # Found by a look-up, it was submitted some time after `since`: later than it was is the safe side.
        submitted = claim.submitted_at if claim.provider_id else None
        return self._follow(claim, message, provider_id, submitted or int(self._tools.clock() * 1000), record)

    def _elsewhere(self, claim: Claimed) -> Wait:
        """Another provider has it, so the settings were changed with faxes under way. Nobody can be asked;
        its line stays locked for as long as it may be in use, and then a person has to look."""
        logger.error("submitted to another provider; ask there how it ended", provider=claim.provider)
        self.tally["Misconfigured"] += 1
        self._ledger.hand_back(claim)
        ends = (claim.submitted_at or 0) / 1000 + self._fax.longest_fax_seconds
        return max(self._fax.misconfigured_seconds, ends - self._tools.clock())

    def _follow(
        self, claim: Claimed, message: Fax, provider_id: str, submitted: int, record: Received[Fax]
    ) -> Wait:
        """Ask how it stands until it ends, or until the function's time does."""
        while True:
            state = self._state(provider_id)
            if not isinstance(state, Pending):
                return self._ended(claim, message, provider_id, state)
            if self._tools.clock() > submitted / 1000 + self._fax.longest_fax_seconds:
                return self._overdue(claim, message, provider_id)
            if not self._time_to_poll(record):
                self._ledger.hand_back(claim)
                self.tally["HandedBack"] += 1
                return self._fax.poll_seconds
            self._tools.sleep(self._fax.poll_seconds)

    def _state(self, provider_id: str) -> FaxState:
        """How it stands. No answer says nothing about the fax: it may still be on the line."""
        try:
            return self._provider.fetch(provider_id)
        except Exception:  # noqa: BLE001 - logged, and asked again
            logger.warning("the provider did not say how the fax stands", exc_info=True)
            self.tally["PollErrors"] += 1
            return Pending("unknown")

    def _time_to_poll(self, record: Received[Fax]) -> bool:
        """Whether another poll, and the record of what it finds, are over in time."""
        settings = self._fax
        needed = settings.poll_seconds + settings.submit_seconds + settings.record_seconds
        return record.remaining() / 1000 > needed

    def _ended(self, claim: Claimed, message: Fax, provider_id: str, state: Delivered | Undelivered) -> Wait:
        if isinstance(state, Delivered):
            self._ledger.complete(claim, self._adapter.provider, provider_id)
            self.tally["Sent"] += 1
            return None
        detail = "" if state.detail == state.status else state.detail
        said = OF_THE_LINE + state.status + (f" ({detail})" if detail else "")
        if state.again and message.attempt < self._fax.max_attempts:
            self._ledger.retry_later(claim, state.status, said)
            return self._over("Retrying", "not delivered; another attempt follows", status=state.status)
        self._ledger.fail(claim, state.status, said)
        return self._over("Rejected", "not delivered, for good", status=state.status)

    def _overdue(self, claim: Claimed, message: Fax, provider_id: str) -> Wait:
        """Longer than any fax takes. Stopped by us, it may be tried again; where not even that can be known,
        the record goes the way of an outage, with the checkpoint kept for whoever redrives it."""
        try:
            self._provider.cancel(provider_id)
        except Exception:  # noqa: BLE001 - logged; how it stands is asked next, whatever became of this
            logger.warning("an overdue fax could not be cancelled", exc_info=True)
        state = self._state(provider_id)
        if isinstance(state, Pending):
            logger.error("an overdue fax has not ended", status=state.status, provider_id=provider_id)
            self.tally["Overdue"] += 1
            self._ledger.hand_back(claim)
            return self._fax.misconfigured_seconds  # the line waited out the outage already
        if isinstance(state, Undelivered):
            state = Undelivered(state.status, again=True, detail=state.detail)
        return self._ended(claim, message, provider_id, state)
