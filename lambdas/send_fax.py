"""Sends faxes: submits the fax of one record of the fax queue, and polls its status until the fax has ended.
If an invocation is too short for this, the next invocation continues."""

from mailroom import environment
from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.delivery import FaxDelivery
from mailroom.delivery.worker import Worker
from mailroom.environment import FaxSender
from mailroom.providers import provider
from mailroom.telemetry import instrumented

settings = environment.read(FaxSender)
adapter = FaxAdapter.of(settings, provider(settings.fax_provider))
worker = Worker.of(settings, adapter, FaxDelivery)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
"""Handler of a record of the fax queue. SQS delivers the record again until the fax has ended."""
