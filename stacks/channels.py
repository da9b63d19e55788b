"""One queue, dead-letter queue and sender for each lane of each channel."""

from aws_cdk import App

from stacks.constructs.grants import Grant
from stacks.constructs.stage import StageStack
from stacks.constructs.worker import Work, Worker
from stacks.senders import Needs, StageContext, needs_of, read_payloads, sender_environment
from stacks.settings.channels import LaneRow
from stacks.settings.queues import Waits
from stacks.settings.stage import Settings


class ChannelsStack(StageStack):
    """A channel is a row of the settings; `senders` has what its provider needs beside that."""

    def __init__(self, app: App, settings: Settings, context: StageContext) -> None:
        super().__init__(app, settings, "channels")
        needs = {name: needs_of(name, row, self, context) for name, row in settings.channels.items()}
        self.workers: dict[tuple[str, str], Worker] = {}
        for row in settings.lane_rows():
            work = self._work(row, context, needs[row.event_type])
            self.workers[row.event_type, row.lane] = Worker(self, settings, work)

    def _work(self, row: LaneRow, context: StageContext, needs: Needs) -> Work:
        storage = context.storage
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
                *read_payloads(self, context.settings),
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
