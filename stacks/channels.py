"""One queue, dead-letter queue and sender for each lane of each channel."""

from aws_cdk import App

from stacks.constructs.grants import Grant
from stacks.constructs.stage import StageStack
from stacks.constructs.worker import Work, Worker
from stacks.providers import needs_of
from stacks.providers.around import Around
from stacks.senders import read_payloads, sender_environment
from stacks.settings.channels import LaneRow
from stacks.settings.queues import Waits
from stacks.settings.stage import Settings


class ChannelsStack(StageStack):
    """A channel is a row of the settings; what its provider needs beside that is in `providers`."""

    def __init__(self, app: App, settings: Settings, around: Around) -> None:
        super().__init__(app, settings, "channels")
        self.workers = {
            (row.event_type, row.lane): Worker(self, settings, self._work(row, around))
            for row in settings.lane_rows()
        }

    def _work(self, row: LaneRow, around: Around) -> Work:
        needs, storage = needs_of(row.event_type, self, around), around.storage
        return Work(
            queue=row.queue,
            function=row.function,
            handler=row.channel.handler,
            limits=row.channel,
            polling=row.polling,
            rules=row.rules,
            grants=[
                Grant(["dynamodb:UpdateItem"], [storage.ledger.table_arn]),
                # A message of any channel may have its further attributes there.
                *read_payloads(self, around.settings),
                *needs.grants,
            ],
            environment={
                **storage.shared_environment,
                **sender_environment(
                    row.event_type,
                    row.channel,
                    Waits.of(row.channel),
                    lease=row.rules.lease,
                    pace=row.pace,
                    submit_seconds=row.channel.submit_seconds,
                ),
                **needs.environment,
            },
            templates=needs.templates,
            channel=row.event_type,
            kept_back_seconds=row.channel.record_seconds,
        )
