"""From the mailbox's stream, and from schedules, to the channels' queues; from the ledger's to callbacks."""

import json

from aws_cdk import App

from stacks.constructs.grants import Grant
from stacks.constructs.outputs import publish
from stacks.constructs.schedules import Schedules
from stacks.constructs.stream import Reading, StreamReader
from stacks.constructs.work import Work
from stacks.constructs.worker import Worker
from stacks.mailbox import MailboxStack
from stacks.outcomes import outcomes
from stacks.routes import Routes
from stacks.settings.queues import worker_rules
from stacks.settings.stage import Settings
from stacks.stage_stack import StageStack

INSERTS = '{"eventName":["INSERT"]}'


class RoutingStack(StageStack):
    """`dispatch` reads the mailbox's stream, `outcomes` the ledger's; `dispatch-scheduled` brings back what
    had to wait for its `send_at`."""

    def __init__(self, app: App, settings: Settings, storage: MailboxStack, routes: Routes) -> None:
        super().__init__(app, settings, "routing")
        schedules = Schedules(self, settings)
        grants = [
            Grant(["sqs:SendMessage"], routes.arns()),
            Grant(["dynamodb:UpdateItem"], [storage.ledger.table_arn]),
            *schedules.create(),
        ]
        environment = {
            **storage.shared_environment,
            **schedules.environment(),
            "ROUTES": self.to_json_string(routes.urls()),
            "DELAYED_ROUTES": self.to_json_string(routes.delayed()),
            "DEFAULT_REGION": settings.default_region,
            "CALLBACK_SCHEMES": json.dumps(settings.webhook.allowed_schemes),
            "CALLBACK_PORTS": json.dumps(settings.webhook.allowed_ports),
        }
        dispatch = Reading("dispatch", storage.mailbox, [INSERTS], settings.dispatch, grants, environment)
        self.dispatch = StreamReader(self, settings, dispatch)
        self.outcomes = StreamReader(
            self,
            settings,
            outcomes(settings, storage, routes.webhook, routes.fax),
            self.dispatch.unprocessed,
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
                rules=worker_rules(settings.scheduled, settings.lease_margin_seconds),
                grants=[*grants, _read_mailbox(storage)],
                environment={**environment, "MAILBOX_TABLE": storage.mailbox.table_name},
            ),
        )
        publish(self, ScheduleGroupName=str(schedules.group.name))


def _read_mailbox(storage: MailboxStack) -> Grant:
    return Grant(["dynamodb:BatchGetItem"], [storage.mailbox.table_arn])
