"""Sends push notifications: handles a queue's batch, and returns the records that SQS must deliver again."""

from mailroom import environment
from mailroom.delivery.delivery import to_people
from mailroom.delivery.worker import Worker
from mailroom.environment import PushSender
from mailroom.providers.sns.sender import SnsPush
from mailroom.telemetry import instrumented

settings = environment.read(PushSender)
worker = Worker.of(settings, SnsPush.of(settings), to_people)
handler = instrumented(lambda event, context: worker.handle(event, context.get_remaining_time_in_millis))
