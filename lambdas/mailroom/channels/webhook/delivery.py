"""Delivers webhooks and status callbacks. A message is claimed in the ledger as in every channel; a status
callback is sent at least once, without a claim, because receivers drop a repeated webhook-id."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from mailroom.aws.dynamo_values import Sets, number, string
from mailroom.channels.webhook.contract import Post, PostResult, Webhook, tries_that_may_fail
from mailroom.clock import milliseconds
from mailroom.delivery.adapter import Adapter
from mailroom.delivery.batch import Batch
from mailroom.delivery.delivery import Delivery
from mailroom.delivery.worker import DONE, ComeBack, QueueRecord, Result, Tools
from mailroom.environment import WebhookSender
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import Message, encode
from mailroom.message.outcome import Misconfigured, Rejected, Retry, Sent
from mailroom.outcomes import Callback
from mailroom.telemetry import logger

JITTER = 0.2
"""Maximum fraction of a delay that is subtracted at random. Delays are never made longer, because the queue's
retention period is computed from the configured delays."""
MAX_REASON = 300
"""Maximum number of characters of the reason that the ledger stores for a failed callback."""


class WebhookAdapter(Adapter[Webhook, Post], Protocol):
    """Access to endpoints, for messages and for status callbacks."""

    def exchange(self, request: Post) -> PostResult:
        """Make the request, and return its outcome with the status of the response."""


class WebhookBatch(Batch[Webhook, Post]):
    """Webhook messages of one invocation. Status callbacks are not part of the batch, because they are not
    claimed."""

    sender: "WebhookDelivery"

    def deliver(self, message: Webhook | Callback | Invalid, record: QueueRecord) -> Result:
        """Deliver a webhook message, or a status callback."""
        if isinstance(message, Callback):
            return self.sender.call_back(message, record)
        return super().deliver(message, record)


class WebhookDelivery(Delivery[Webhook, Post]):
    """Delivery of the queue's records, webhook messages and status callbacks, with the delays between tries
    that the settings define."""

    batch = WebhookBatch
    settings: WebhookSender
    adapter: WebhookAdapter

    def __init__(self, settings: WebhookSender, adapter: WebhookAdapter, tools: Tools) -> None:
        super().__init__(settings, adapter, tools)
        self._may_fail = tries_that_may_fail(len(settings.delays) + 1)

    def read(self, body: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Read the body of a queue record, and return it with the message or the status callback that it
        holds. Raises Malformed."""
        return (body, _callback(body)) if "webhook_id" in body else super().read(body)

    @contextmanager
    def open(self, messages: Sequence[tuple[Any, QueueRecord]]) -> Iterator[Batch[Webhook, Post]]:
        """Open a batch of the webhook messages. Never raises."""
        with super().open([entry for entry in messages if isinstance(entry[0], Webhook)]) as batch:
            yield batch

    def retry_wait(self, receives: int, minimum: float = 0) -> float:
        """Return the seconds until the next try. `receives` is the number of the present receive; `minimum`
        is the wait that the response requested. Return 0 after the last receive, so that the record becomes
        a dead letter at once."""
        if self._is_last(receives):
            return 0
        delay = self.settings.delays[receives - 1] * (1 - JITTER * self.tools.jitter())
        return max(delay, min(minimum, self.settings.retry_after_cap_seconds))

    def retried(self, message: Message | Callback, record: QueueRecord) -> None:
        """Log a warning about an endpoint that keeps failing, so that an operator can contact its owner long
        before its webhooks become dead letters."""
        if record.receives > self._may_fail:
            logger.warning("an endpoint keeps failing", host=message.group, tries=record.receives)
            self.tools.tally.add("WebhooksFailing")

    def _is_last(self, receives: int) -> bool:
        """Return whether the present receive, with the number `receives`, is the record's last one."""
        return receives > len(self.settings.delays)

    def call_back(self, callback: Callback, record: QueueRecord) -> Result:
        """Send a status callback without a claim, and return the result for its record."""
        if not self.tools.pace.in_time(record):
            return ComeBack(0)
        result = self.adapter.exchange(Post(callback.url, callback.webhook_id, encode(callback.payload)))
        match result.outcome:
            case Sent():
                self.tools.tally.add("CallbacksDelivered")
                self._note_safely(callback, "delivered", result, record)
                return DONE
            case Rejected(reason):
                # Only the write into the ledger remains to be done. If the write fails, the error is raised,
                # so that the record is received again.
                self._note(callback, "failed", result, record)
                self.tools.tally.note(
                    "CallbacksRefused", "callback refused", reason=reason, callback=callback.name
                )
                return DONE
            case Retry(reason, after):
                self.tools.tally.note(
                    "CallbacksRetried", "callback not delivered", reason=reason, callback=callback.name
                )
                self.retried(callback, record)
                wait = self.retry_wait(record.receives, after)
            case Misconfigured(reason):
                logger.error("callback not sent: the configuration is invalid", reason=reason)
                self.tools.tally.add("Misconfigured")
                wait = self.settings.misconfigured_seconds
        if self._is_last(record.receives):
            self._note_safely(callback, "failed", result, record)
            return ComeBack(0)
        return ComeBack(wait)

    def _note_safely(self, callback: Callback, status: str, result: PostResult, record: QueueRecord) -> None:
        """Write the callback's result into the ledger, and only log an error of the write. If the error were
        raised, a delivered callback would be sent again, and a failed callback would become a dead letter
        later."""
        try:
            self._note(callback, status, result, record)
        except Exception:  # noqa: BLE001 - logged; the callback's delivery is not affected
            logger.exception("a callback's result was not recorded", status=status, callback=callback.name)

    def _note(self, callback: Callback, status: str, result: PostResult, record: QueueRecord) -> None:
        entry: Sets = {
            "status": string(status),
            "at": number(milliseconds(self.tools.clock())),
            "code": {"NULL": True} if result.status is None else number(result.status),
            "tries": number(record.receives),
        }
        if isinstance(result.outcome, Rejected | Retry | Misconfigured):
            entry["reason"] = string(result.outcome.reason[:MAX_REASON])
        self.tools.ledger.note_callback(callback.key, callback.name, entry)


def _callback(body: dict[str, Any]) -> Callback:
    """Read a status callback from the body of a queue record with a `webhook_id`, which messages must not
    have. Raises Malformed if an attribute is missing or invalid."""
    try:
        return msgspec.convert(body, Callback)
    except msgspec.ValidationError as error:
        raise Malformed(f"is not a callback: {error}") from None
