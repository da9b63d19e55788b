"""Fax gateway: it sends the faxes of a line one after the other, and has a queue for further attempts."""

from typing import Final

from constructs import Construct

from mailroom.environment import FaxSender, RetryFaxSettings
from mailroom.ledger.items import LINES
from mailroom.providers import client_modules, providers_of
from mailroom_stacks.channels import CLOCK_SKEW_SECONDS, MEDIA_SECONDS, reachable, sender_fields
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.naming import StageStack
from mailroom_stacks.constructs.storage import provider_secret, read_payloads
from mailroom_stacks.constructs.worker import Work, Worker
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.fax import Fax, fax_rules, mover_rules
from mailroom_stacks.settings.settings import Settings

TTL_MINUTES = 5
"""Minutes in which the provider may retry by itself. It is short, because Mailroom makes the retries."""
QUALITY: Final = "fine"
"""Resolution of faxes at the provider."""


class FaxStack(StageStack):
    """Functions `send-fax`, which reads the FIFO fax queue, and `retry-fax`, which moves faxes from the retry
    queue back into the fax queue."""

    def __init__(self, scope: Construct, settings: Settings, fax: Fax, storage: MailboxStack) -> None:
        super().__init__(scope, settings, "fax")
        formats = [f"{row.credentials} of {row.title}" for row in providers_of("fax").values()]
        self.secret = provider_secret(
            self,
            settings,
            "fax",
            f"Credentials of the provider: {' or '.join(formats)}",
            construct_id="Secret",
        )
        self.worker = Worker(self, settings, self._send(settings, fax, storage))
        self.retry = Worker(self, settings, self._move(settings, fax))

    def _send(self, settings: Settings, fax: Fax, storage: MailboxStack) -> Work:
        times = settings.times
        rules = fax_rules(times)
        ledger = storage.ledger.table_arn
        own_queue = self.format_arn(service="sqs", resource=settings.name("fax.fifo"))
        return Work(
            queue="fax",
            fifo=True,
            function="send-fax",
            timeout_seconds=times.fax_timeout,
            maximum_concurrency=fax.concurrent_calls,
            rules=rules,
            channel="fax",
            modules=client_modules("fax"),
            loop_ends="A fax is queued again only once, in the message group of its number.",
            grants=[
                # For a message with `unless`, the sender reads the outcomes of other messages.
                Grant(["dynamodb:UpdateItem", "dynamodb:BatchGetItem"], [ledger]),
                Grant(["dynamodb:Query"], [f"{ledger}/index/{LINES}"]),
                # If a producer puts a fax into the message group of another number, the sender queues it
                # again in the right group.
                Grant(["sqs:SendMessage"], [own_queue]),
                self.secret.read(),
                *read_payloads(self, settings),
            ],
            environment=FaxSender(
                **storage.common,
                **sender_fields(
                    times,
                    "fax",
                    fax.on_unknown,
                    lease=rules.lease,
                    pace=fax.pace,
                    submit_seconds=times.fax_submit,
                    record_seconds=times.fax_record,
                ),
                fax_provider=fax.provider,
                fax_secret_arn=self.secret.secret_arn,
                fax_base_url=fax.url,
                fax_senders=fax.senders,
                fax_connection_id=fax.connection_id or "",
                fax_ttl_minutes=TTL_MINUTES,
                fax_quality=QUALITY,
                media_seconds=MEDIA_SECONDS,
                poll_seconds=times.fax_poll,
                longest_fax_seconds=times.longest_fax,
                max_attempts=fax.max_attempts,
                last_submit_receive=rules.last_submit_receive,
                clock_skew_seconds=CLOCK_SKEW_SECONDS,
                callback_schemes=settings.url_schemes,
                callback_ports=settings.webhook.allowed_ports,
                **reachable(settings, "fax"),
            ),
        )

    def _move(self, settings: Settings, fax: Fax) -> Work:
        return Work(
            queue="fax-retry",
            function="retry-fax",
            timeout_seconds=settings.times.fax_mover_timeout,
            batch_size=10,  # Lambda's largest batch without a batching window
            rules=mover_rules(fax, settings.times),
            grants=[Grant(["sqs:SendMessage"], [self.worker.queue.queue_arn])],
            environment=RetryFaxSettings(queue_url="", fax_queue_url=self.worker.queue.queue_url),
        )
