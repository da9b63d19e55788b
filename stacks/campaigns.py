"""Campaigns: their schedules, the function that pages through audiences, and the one that composes."""

import json
from collections.abc import Iterable, Mapping, Sequence

from aws_cdk import App

from stacks.audience_rights import read_audiences, read_secrets
from stacks.campaign_schedules import CampaignSchedules
from stacks.constructs.grants import Grant
from stacks.constructs.table import TTL, Table
from stacks.constructs.work import Work
from stacks.constructs.worker import Worker
from stacks.mailbox import MailboxStack
from stacks.settings.campaigns import collect_polling, collect_rules, compose_polling, compose_rules
from stacks.settings.enabled_campaigns import EnabledCampaign
from stacks.settings.queues import DAY
from stacks.settings.stage import Settings
from stacks.stage_stack import StageStack

DEFINITIONS = "campaigns.json"
KEPT_BACK_SECONDS = 10
"""What `compose` leaves for putting what it has composed."""


class CampaignsStack(StageStack):
    """`collect` reads starts and pages, `compose` the people that collect found."""

    def __init__(
        self, app: App, settings: Settings, storage: MailboxStack, campaigns: Sequence[EnabledCampaign]
    ) -> None:
        super().__init__(app, settings, "campaigns")
        self._campaigns = campaigns
        self.runs = Table(
            self,
            "Runs",
            settings,
            name="campaign-runs",
            key="campaign",
            sort_key="run",
            time_to_live_attribute=TTL,
        )
        self.audience = Worker(self, settings, self._compose(settings, storage))
        self.collect = Worker(self, settings, self._collect(settings))
        CampaignSchedules(self, settings, self.collect, campaigns)

    @property
    def workers(self) -> tuple[Worker, Worker]:
        """Both, in the order of a campaign's way."""
        return self.collect, self.audience

    def _collect(self, settings: Settings) -> Work:
        rules = collect_rules(settings.campaigns, settings.lease_margin_seconds)
        databases = _named(settings, (each.collected for each in self._campaigns))
        own_queue = self.format_arn(service="sqs", resource=settings.name("collect"))
        return Work(
            queue="collect",
            function="collect",
            handler="collect",
            limits=settings.campaigns.collect,
            polling=collect_polling(settings.campaigns),
            rules=rules,
            grants=[
                Grant(["dynamodb:GetItem", "dynamodb:UpdateItem"], [self.runs.table_arn]),
                # Its own as well: there it puts where the next page begins.
                Grant(["sqs:SendMessage"], [self.audience.queue.queue_arn, own_queue]),
                *read_audiences(self, self._campaigns),
                *read_secrets(settings, databases),
            ],
            environment={
                "AUDIENCE_QUEUE_URL": self.audience.queue.queue_url,
                "RUNS_TABLE": self.runs.table_name,
                "RUN_TTL_SECONDS": str(settings.campaigns.run_days * DAY),
                "LEASE_SECONDS": str(rules.lease),
                "DATABASES": json.dumps(_told(settings, databases)),
            },
            extras=extras(settings, self._campaigns, databases),
            # A page's message leads to the next page's: however many those are, they are one chain, bounded
            # by the campaign's max_pages. Lambda would take it for a loop and end it after 16.
            recursive=True,
            network=settings.campaigns.network,
        )

    def _compose(self, settings: Settings, storage: MailboxStack) -> Work:
        databases = _named(settings, (each.composed for each in self._campaigns))
        concurrencies = [each.chosen.concurrency for each in self._campaigns]
        return Work(
            queue="audience",
            function="compose",
            handler="compose",
            limits=settings.campaigns.compose,
            polling=compose_polling(settings.campaigns, concurrencies),
            rules=compose_rules(settings.campaigns, settings.lease_margin_seconds),
            kept_back_seconds=KEPT_BACK_SECONDS,
            grants=[
                Grant(["dynamodb:PutItem"], [storage.mailbox.table_arn]),
                Grant(["dynamodb:UpdateItem"], [storage.ledger.table_arn]),
                Grant(["dynamodb:BatchGetItem"], [storage.preferences.table_arn]),
                Grant(["dynamodb:GetItem", "dynamodb:UpdateItem"], [self.runs.table_arn]),
                *read_secrets(settings, databases),
            ],
            environment={
                **storage.shared_environment,
                **storage.mailbox_environment,
                "PREFERENCES_TABLE": storage.preferences.table_name,
                "RUNS_TABLE": self.runs.table_name,
                "RUN_TTL_SECONDS": str(settings.campaigns.run_days * DAY),
                "DEFAULT_REGION": settings.default_region,
                "DATABASES": json.dumps(_told(settings, databases)),
            },
            extras=extras(settings, self._campaigns, databases),
            network=settings.campaigns.network,
        )


def extras(
    settings: Settings, campaigns: Sequence[EnabledCampaign], databases: Sequence[str]
) -> dict[str, bytes]:
    """What goes into a bundle, by its path there: the definitions of the campaigns, their own code, and what
    the certificates of `databases` are checked with."""
    definitions = {each.name: each.definition() for each in campaigns}
    code = {path: file for each in campaigns for path, file in each.sources().items()}
    certificates = {
        ca_file: campaigns[0].folder.parents[1] / ca_file
        for name in databases
        if (ca_file := settings.databases[name].ca_file)
    }
    files = {path: file.read_bytes() for path, file in {**code, **certificates}.items()}
    return {DEFINITIONS: json.dumps(definitions, indent=1, sort_keys=True).encode(), **files}


def _named(settings: Settings, wanted: Iterable[Iterable[str]]) -> list[str]:
    """Those of the stage's databases that are wanted."""
    names = {name for each in wanted for name in each}
    return [name for name in settings.databases if name in names]


def _told(settings: Settings, databases: Sequence[str]) -> Mapping[str, dict[str, object]]:
    """What a function has to know to reach `databases`."""
    return {
        name: settings.databases[name].model_dump(exclude={"connections"}, exclude_none=True)
        for name in databases
    }
