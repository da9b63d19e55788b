"""A webhook record's way: a message is claimed as everywhere, a status callback is just sent.

Callbacks are at least once: they have no claim, and their receiver drops the webhook-id that it has had.
"""

from typing import Any

import msgspec

from mailroom.aws.dynamo import Sets, number, string
from mailroom.channels.webhook.contract import Webhook
from mailroom.channels.webhook.standard_webhooks import Post, Said, StandardWebhooks
from mailroom.clock import milliseconds
from mailroom.delivery.delivery import Delivery, Received, Tools, Wait
from mailroom.environment import WebhookSender
from mailroom.errors import Invalid, Malformed
from mailroom.ledger.items import Claimed
from mailroom.message.message import encode
from mailroom.message.outcome import Misconfigured, Outcome, Rejected, Retry, Sent
from mailroom.outcomes.callbacks import Callback
from mailroom.telemetry import logger

JITTER = 0.2
"""The part of a delay that chance may take away. It never adds: retention is derived from the whole."""

KEEPS_FAILING = 8
"""Tries that may fail before an endpoint is one that keeps failing; half an hour of them by default."""


def tries_that_may_fail(tries: int) -> int:
    """How many of `tries` may fail before an endpoint is one that keeps failing: half, where they are few."""
    return min(KEEPS_FAILING, tries // 2)


class WebhookDelivery(Delivery[Webhook, Post]):
    """Delivers both kinds, with the written-down delays between tries."""

    def __init__(self, settings: WebhookSender, adapter: StandardWebhooks, tools: Tools) -> None:
        super().__init__(settings, adapter, tools)
        self._delays = settings.delays
        self._may_fail = tries_that_may_fail(len(settings.delays) + 1)
        self._retry_after_cap = settings.retry_after_cap_seconds
        self._webhooks = adapter

    def item_of(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body as it is. Raises Malformed for a callback that lacks something."""
        if _is_callback(body):
            _callback(body)
        return body

    def read(self, item: dict[str, Any]) -> Webhook | Invalid | None:
        """A message; a callback is none."""
        return None if _is_callback(item) else super().read(item)

    def deliver(self, record: Received[Webhook]) -> Wait:
        """Take one record as far as it goes."""
        if _is_callback(record.item):
            return self._call_back(_callback(record.item), record)
        return super().deliver(record)

    def retry_wait(self, receives: int, least: float = 0) -> float:
        """Seconds until the next try after the n-th receive; after the last one none, so that the record is
        a dead letter at once."""
        if self._last(receives):
            return 0
        delay = self._delays[receives - 1] * (1 - JITTER * self._tools.jitter())
        return max(delay, min(least, self._retry_after_cap))

    def _record(self, claim: Claimed, message: Webhook, outcome: Outcome, record: Received[Webhook]) -> Wait:
        if isinstance(outcome, Retry):
            self._failed_again(record, message.group)
        return super()._record(claim, message, outcome, record)

    def _failed_again(self, record: Received[Webhook], host: str | None) -> None:
        """Said of an endpoint long before its webhooks are dead letters, so that somebody can ask there."""
        if record.receives > self._may_fail:
            logger.warning("an endpoint keeps failing", host=host, tries=record.receives)
            self.tally["WebhooksFailing"] += 1

    def _last(self, receives: int) -> bool:
        return receives > len(self._delays)

    def _call_back(self, callback: Callback, record: Received[Webhook]) -> Wait:
        if not self._in_time(record):
            return 0
        self._tools.pace.wait()
        said = self._webhooks.exchange(Post(callback.url, callback.webhook_id, encode(callback.payload)))
        match said.outcome:
            case Sent():
                self.tally["CallbacksDelivered"] += 1
                self._note_safely(callback, "delivered", said, record)
                return None
            case Rejected(reason):
                # Nothing is left to do but to say so: where that fails the record comes back for it.
                self._note(callback, "failed", said, record)
                return self._over(
                    "CallbacksRefused", "callback given up", reason=reason, callback=callback.name
                )
            case Retry(reason, after):
                self._over(
                    "CallbacksRetried", "callback not delivered", reason=reason, callback=callback.name
                )
                self._failed_again(record, callback.group)
                wait = self.retry_wait(record.receives, after)
            case Misconfigured(reason):
                logger.error("callback not sent: a fault of configuration", reason=reason)
                self.tally["Misconfigured"] += 1
                wait = self._settings.misconfigured_seconds
        if self._last(record.receives):
            self._note_safely(callback, "failed", said, record)
            return 0
        return wait

    def _note_safely(self, callback: Callback, status: str, said: Said, record: Received[Webhook]) -> None:
        """The same where the record's way is settled: the note is a courtesy to whoever looks, and neither a
        second delivery nor a dead letter that stays away is a price for it."""
        try:
            self._note(callback, status, said, record)
        except Exception:  # noqa: BLE001 - logged; what became of the callback stands
            logger.exception("callback's result not recorded", status=status, callback=callback.name)

    def _note(self, callback: Callback, status: str, said: Said, record: Received[Webhook]) -> None:
        result: Sets = {
            "status": string(status),
            "at": number(milliseconds(self._tools.clock())),
            "code": {"NULL": True} if said.status is None else number(said.status),
            "tries": number(record.receives),
        }
        self._ledger.note_callback(callback.key, callback.name, result)


def _is_callback(body: dict[str, Any]) -> bool:
    """No message has this attribute: its contract refuses it."""
    return "webhook_id" in body


def _callback(body: dict[str, Any]) -> Callback:
    try:
        return msgspec.convert(body, Callback)
    except msgspec.ValidationError as error:
        raise Malformed(f"not a callback: {error}") from None
