"""From the mailbox's stream, and from schedules, to the channels' queues."""

from aws_cdk import App

from stacks.channels import ChannelsStack
from stacks.constructs.grants import Grant
from stacks.constructs.outputs import publish
from stacks.constructs.schedules import Schedules
from stacks.constructs.stream import StreamReader
from stacks.constructs.worker import Work, Worker
from stacks.derived import scheduled_rules
from stacks.mailbox import MailboxStack
from stacks.settings import Settings
from stacks.stage_stack import StageStack


class RoutingStack(StageStack):
    """`dispatch` reads the stream; `dispatch-scheduled` brings back what had to wait for its `send_at`."""

    def __init__(self, app: App, settings: Settings, storage: MailboxStack, channels: ChannelsStack) -> None:
        super().__init__(app, settings, "routing")
        schedules = Schedules(self, settings)
        route = [
            Grant(["sqs:SendMessage"], [worker.queue.queue_arn for worker in channels.workers.values()]),
            Grant(["dynamodb:UpdateItem"], [storage.ledger.table_arn]),
        ]
        environment = {
            **storage.shared_environment,
            **schedules.environment(),
            "ROUTES": self._routes(channels),
        }
        self.dispatch = StreamReader(
            self, settings, storage.mailbox, grants=[*route, *schedules.create()], environment=environment
        )
        self.scheduled = Worker(
            self,
            settings,
            Work(
                queue="scheduled",
                function="dispatch-scheduled",
                handler="dispatch_scheduled",
                limits=settings.scheduled,
                polling=settings.scheduled,
                rules=scheduled_rules(settings),
                grants=[*route, *schedules.create(), _read_mailbox(storage)],
                environment={**environment, "MAILBOX_TABLE": storage.mailbox.table_name},
            ),
        )
        publish(self, ScheduleGroupName=str(schedules.group.name))

    def _routes(self, channels: ChannelsStack) -> str:
        """Queue URLs by event type and lane, as JSON."""
        routes: dict[str, dict[str, str]] = {}
        for (event_type, lane), worker in channels.workers.items():
            routes.setdefault(event_type, {})[lane] = worker.queue.queue_url
        return self.to_json_string(routes)


def _read_mailbox(storage: MailboxStack) -> Grant:
    return Grant(["dynamodb:BatchGetItem"], [storage.mailbox.table_arn])
