"""Sends faxes: one record of the fax queue in, followed until the fax ends or goes to the next invocation."""

from mailroom import environment
from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.delivery import FaxDelivery
from mailroom.delivery.worker import Worker
from mailroom.environment import FaxSender
from mailroom.telemetry import instrumented

settings = environment.read(FaxSender)
worker = Worker.of(settings, FaxAdapter.of(settings), FaxDelivery)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
"""One record of the fax queue; it comes back until its fax has ended."""
