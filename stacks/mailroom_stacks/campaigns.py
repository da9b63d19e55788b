"""Campaigns: their schedules, the function that reads audiences page by page, and the function that composes
messages."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from aws_cdk import Annotations, Stack
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from mailroom.campaigns.definition import LANE, File
from mailroom.content.versions import CURRENT
from mailroom.environment import CollectSettings, ComposeSettings, DatabaseSettings, DayLimit
from mailroom_stacks.constructs.grants import Grant, scheduler_role
from mailroom_stacks.constructs.naming import StageStack, pascal
from mailroom_stacks.constructs.search import Search
from mailroom_stacks.constructs.templates import read_templates, templates_bucket
from mailroom_stacks.constructs.worker import Work, Worker
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.campaigns import COLLECTORS
from mailroom_stacks.settings.channels import LaneRow
from mailroom_stacks.settings.enabled_campaigns import EnabledCampaign, compose_concurrency
from mailroom_stacks.settings.queues import queue_rules
from mailroom_stacks.settings.settings import Settings

DEFINITIONS = "campaigns.json"
CAMPAIGNS_MB = 512
"""Memory of both functions, in MiB: a page has up to 10,000 people, and a campaign may have its own code."""


class CampaignsStack(StageStack):
    """Functions `collect`, which handles starts and reads pages of audiences, and `compose`, which writes
    messages to the collected people."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        storage: MailboxStack,
        campaigns: Sequence[EnabledCampaign],
    ) -> None:
        super().__init__(scope, settings, "campaigns")
        self._campaigns = campaigns
        self._runs, self._budgets = storage.runs, storage.budgets
        self._bulk = [*self._lanes(settings)]
        self._limited = [(row, queue) for row, queue in self._bulk if row.channel.days]
        self.audience = Worker(self, settings, self._compose(settings, storage))
        self.collect = Worker(self, settings, self._collect(settings, storage.search))
        self.workers = (self.collect, self.audience)
        unwatched = [campaign.name for campaign in campaigns if campaign.chosen.stop_at]
        if unwatched and storage.search is None:
            Annotations.of(self).add_warning_v2(
                "mailroom:stop-at-without-search",
                f"stop_at of {', '.join(unwatched)} has no effect, because outcomes are only counted with "
                f"mailroom.{settings.stage}.search: set it to true, or stop_at to false.",
            )
        _schedule(Construct(self, "Schedules"), settings, self.collect, campaigns)

    def _collect(self, settings: Settings, search: Search | None) -> Work:
        timeout = settings.times.campaigns_timeout
        rules = queue_rules(settings.times, timeout)
        databases = _named(settings, (campaign.collected for campaign in self._campaigns))
        own_queue = self.format_arn(service="sqs", resource=settings.name("collect"))
        return Work(
            queue="collect",
            function="collect",
            timeout_seconds=timeout,
            memory_mb=CAMPAIGNS_MB,
            maximum_concurrency=COLLECTORS,
            rules=rules,
            grants=[
                Grant(["dynamodb:GetItem", "dynamodb:UpdateItem"], [self._runs.table_arn]),
                # `collect` sends the position of the next page to its own queue.
                Grant(["sqs:SendMessage"], [self.audience.queue.queue_arn, own_queue]),
                *self._look_at_day(),
                *([search.read_rows()] if search else []),
                *read_templates(self, settings, CURRENT),
                *read_audiences(self, self._campaigns),
                *read_secrets(settings, databases),
            ],
            environment=CollectSettings(
                queue_url="",
                audience_queue_url=self.audience.queue.queue_url,
                runs_table=self._runs.table_name,
                lease_seconds=rules.lease,
                **self._limits(),
                templates_bucket=templates_bucket(settings),
                search_table=search.fields["search_table"] if search else "",
                databases=_connections(settings, databases),
            ),
            extras=extras(settings, self._campaigns, databases),
            loop_ends="A run has max_pages pages at most. A page that must wait is queued again with a "
            "delay, until its run goes on, expires or is stopped.",
            network=settings.campaigns.network,
        )

    def _lanes(self, settings: Settings) -> Iterator[tuple[LaneRow, sqs.IQueue]]:
        """Yield the bulk lanes of campaigns' channels with their queues. The queues are imported by name,
        because a reference would prevent the removal of a lane."""
        channels = {campaign.chosen.channel for campaign in self._campaigns}
        for row in settings.lane_rows():
            if row.event_type in channels and row.lane == LANE and not row.fallback:
                arn = self.format_arn(service="sqs", resource=settings.name(row.queue))
                yield row, sqs.Queue.from_queue_arn(self, pascal(row.queue), arn)

    def _limits(self) -> dict[str, Any]:
        """Return the fields of `CollectSettings` for the daily limits of the campaigns' lanes."""
        limits = {
            row.event_type: DayLimit(
                per_day=row.channel.days,
                reserve=row.channel.lanes["normal"].reserve,
                queue_url=queue.queue_url,
            )
            for row, queue in self._limited
        }
        return {"budgets_table": self._budgets.plain_name, "limits": limits} if limits else {}

    def _look_at_day(self) -> list[Grant]:
        """Return the permissions to read the budgets, and the number of messages in the queues."""
        if not self._limited:
            return []
        queues = [*(queue for _, queue in self._limited), self.audience.queue]
        return [
            Grant(["dynamodb:GetItem"], [self._budgets.plain_arn]),
            Grant(["sqs:GetQueueAttributes"], [queue.queue_arn for queue in queues]),
        ]

    def _compose(self, settings: Settings, storage: MailboxStack) -> Work:
        databases = _named(settings, (campaign.composed for campaign in self._campaigns))
        timeout = settings.times.campaigns_timeout
        return Work(
            queue="audience",
            function="compose",
            timeout_seconds=timeout,
            memory_mb=CAMPAIGNS_MB,
            maximum_concurrency=compose_concurrency(self._campaigns),
            rules=queue_rules(settings.times, timeout),
            grants=[
                Grant(["dynamodb:PutItem"], [storage.mailbox.table_arn]),
                Grant(["dynamodb:UpdateItem"], [storage.ledger.table_arn]),
                Grant(["dynamodb:BatchGetItem"], [storage.preferences.table_arn, storage.ledger.table_arn]),
                # If a run is started again, `compose` queues the messages whose items are in the mailbox.
                Grant(["sqs:SendMessage"], [queue.queue_arn for _, queue in self._bulk]),
                Grant(["dynamodb:GetItem", "dynamodb:UpdateItem"], [self._runs.table_arn]),
                *read_secrets(settings, databases),
            ],
            environment=ComposeSettings(
                **storage.common,
                **storage.put,
                queue_url="",
                preferences_table=storage.preferences.table_name,
                runs_table=self._runs.table_name,
                queues={row.event_type: queue.queue_url for row, queue in self._bulk},
                default_region=settings.default_region,
                databases=_connections(settings, databases),
            ),
            extras=extras(settings, self._campaigns, databases),
            network=settings.campaigns.network,
        )


def extras(
    settings: Settings, campaigns: Sequence[EnabledCampaign], databases: Sequence[str]
) -> dict[str, bytes]:
    """Return the further files of a bundle, by path: the definitions of the campaigns, their Python files,
    and the CA certificates of `databases`."""
    definitions = {campaign.name: campaign.definition() for campaign in campaigns}
    code = {path: file for campaign in campaigns for path, file in campaign.sources().items()}
    certificates = {
        ca_file: campaigns[0].folder.parents[1] / ca_file
        for name in databases
        if (ca_file := settings.databases[name].ca_file)
    }
    files = {path: file.read_bytes() for path, file in {**code, **certificates}.items()}
    encoded = msgspec.json.format(msgspec.json.encode(definitions, order="sorted"), indent=1)
    return {DEFINITIONS: encoded, **files}


def _named(settings: Settings, groups: Iterable[Iterable[str]]) -> list[str]:
    """Return the names in `groups` that are databases of the stage, in the order of the settings."""
    names = {name for group in groups for name in group}
    return [name for name in settings.databases if name in names]


def _connections(settings: Settings, databases: Sequence[str]) -> dict[str, DatabaseSettings]:
    """Return the connection settings of `databases`, by name."""
    return {
        name: DatabaseSettings(
            **settings.databases[name].model_dump(exclude_none=True),
            connect_seconds=settings.times.database_connect,
            statement_seconds=settings.times.database_statement,
        )
        for name in databases
    }


LATEST_SECONDS = 3_600
"""Age in seconds at which a start that could not be sent becomes a dead letter, so that an operator
decides."""
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
"""Placeholder that EventBridge Scheduler replaces by the scheduled time. If it sends a start twice, both have
the same time."""


def _schedule(
    scope: Construct, settings: Settings, collect: Worker, campaigns: Sequence[EnabledCampaign]
) -> None:
    """Create the schedules, which send each campaign's name and the scheduled time to the queue of `collect`.
    If sending fails, EventBridge Scheduler sends the message to that queue's dead-letter queue."""
    name = settings.name("campaigns")
    group = scheduler.CfnScheduleGroup(scope, "Group", name=name)
    queues = [collect.queue.queue_arn, collect.dead_letters.queue_arn]
    role = scheduler_role(scope, name, [Grant(["sqs:SendMessage"], queues)])
    kind = scheduler.CfnSchedule
    for campaign in campaigns:
        schedule = campaign.chosen.schedule
        if schedule is None:
            continue
        resource = kind(
            scope,
            f"Schedule-{campaign.name}",
            name=campaign.name,
            group_name=name,
            description=f"Starts the campaign {campaign.name}",
            schedule_expression=f"cron({schedule.cron})",
            schedule_expression_timezone=schedule.time_zone,
            flexible_time_window=kind.FlexibleTimeWindowProperty(mode="OFF"),
            target=kind.TargetProperty(
                arn=collect.queue.queue_arn,
                role_arn=role.role_arn,
                input=json.dumps({"campaign": campaign.name, "scheduled_at": SCHEDULED_TIME}),
                retry_policy=kind.RetryPolicyProperty(maximum_event_age_in_seconds=LATEST_SECONDS),
                dead_letter_config=kind.DeadLetterConfigProperty(arn=collect.dead_letters.queue_arn),
            ),
        )
        resource.add_resource_dependency(group)


UNKNOWN_SUFFIX = "-??????"
"""Pattern of the six characters that Secrets Manager appends to a secret's name in its ARN."""


def read_audiences(stack: Stack, campaigns: Sequence[EnabledCampaign]) -> Iterator[Grant]:
    """Yield the permission to read the files of audiences."""
    audiences = [campaign.definition().audience for campaign in campaigns]
    files = sorted({audience.location for audience in audiences if isinstance(audience, File)})
    if files:
        # Without s3:ListBucket, S3 reports a missing file as access denied. The permission to list a whole
        # bucket would be too broad for a better error message.
        objects = [file.removeprefix("s3://") for file in files]
        arns = [stack.format_arn(service="s3", region="", account="", resource=file) for file in objects]
        yield Grant(["s3:GetObject"], arns)


def read_secrets(settings: Settings, databases: Sequence[str]) -> Iterator[Grant]:
    """Yield the permission to read the secrets of databases."""
    arns = [settings.databases[name].secret_arn for name in databases]
    if arns:
        # The end of an ARN does not show whether it includes the random suffix of Secrets Manager, a hyphen
        # and six characters: the name of a secret may have the same form, such as prod/app-reader.
        either = {*arns, *(f"{arn}{UNKNOWN_SUFFIX}" for arn in arns)}
        yield Grant(["secretsmanager:GetSecretValue"], sorted(either))
