"""One queue, dead-letter queue and sender for each lane of each channel."""

from aws_cdk import App

from stacks.constructs.grants import Grant
from stacks.constructs.worker import Work, Worker
from stacks.derived import LaneRow, lane_rows
from stacks.mailbox import MailboxStack
from stacks.providers import needs_of
from stacks.settings import Settings
from stacks.stage_stack import StageStack


class ChannelsStack(StageStack):
    """A channel is a row of the settings; what its provider needs beside that is in `providers`."""

    def __init__(self, app: App, settings: Settings, storage: MailboxStack) -> None:
        super().__init__(app, settings, "channels")
        self.workers = {
            (row.event_type, row.lane): Worker(self, settings, self._work(row, settings, storage))
            for row in lane_rows(settings)
        }

    def _work(self, row: LaneRow, settings: Settings, storage: MailboxStack) -> Work:
        needs = needs_of(row.event_type, self, settings)
        return Work(
            queue=row.queue,
            function=row.function,
            handler=row.channel.handler,
            limits=row.channel,
            polling=row.polling,
            rules=row.rules,
            grants=[Grant(["dynamodb:UpdateItem"], [storage.ledger.table_arn]), *needs.grants],
            environment={**storage.shared_environment, **_sender_environment(row), **needs.environment},
            templates=needs.templates,
        )


def _sender_environment(row: LaneRow) -> dict[str, str]:
    return {
        "CHANNEL": row.event_type,
        "LEASE_SECONDS": str(row.rules.lease),
        "PACE_SECONDS": str(row.pace),
        "ON_UNKNOWN": row.channel.on_unknown,
        "BACKOFF_SECONDS": str(row.channel.backoff_seconds),
        "BACKOFF_CAP_SECONDS": str(row.channel.backoff_cap_seconds),
        "MISCONFIGURED_SECONDS": str(row.channel.misconfigured_seconds),
        "SUBMIT_SECONDS": str(row.channel.submit_seconds),
        "RECORD_SECONDS": str(row.channel.record_seconds),
    }
