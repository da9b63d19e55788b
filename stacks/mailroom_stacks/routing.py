"""Routing of messages from the mailbox's stream to the channels' queues, if necessary after a wait, and of
outcomes from the ledger's stream to callbacks."""

import json
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from aws_cdk import Stack
from constructs import Construct

from mailroom.content.versions import CURRENT
from mailroom.environment import DispatchSettings, IndexSettings, OutcomesSettings
from mailroom.message.outcome import DETAIL_TYPE, FAILED, SILENT
from mailroom_stacks.channels import ChannelsStack
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.naming import StageStack
from mailroom_stacks.constructs.search import Search
from mailroom_stacks.constructs.stage_alarm import AlarmText, counted, stage_alarm
from mailroom_stacks.constructs.stream import StreamReader, StreamWork
from mailroom_stacks.constructs.templates import read_templates, templates_bucket
from mailroom_stacks.fax import FaxStack
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.release import Release
from mailroom_stacks.settings.enabled_campaigns import EnabledCampaign
from mailroom_stacks.settings.settings import Settings
from mailroom_stacks.webhook import WebhookStack

INDEX = "index-messages"


def outcomes(
    settings: Settings, storage: MailboxStack, webhook: WebhookStack, fax: FaxStack | None
) -> StreamWork:
    """Return the specification of the function `outcomes`, which reads the ledger's stream."""
    section = settings.fax
    queues = [webhook.worker.queue, *([fax.retry.queue] if fax else [])]
    return StreamWork(
        function="outcomes",
        table=storage.ledger,
        filters=list(_filters(settings, fax)),
        counted=settings.monitoring.is_full,
        parallelization=settings.outcomes.parallelization,
        grants=[
            Grant(["sqs:SendMessage"], [queue.queue_arn for queue in queues]),
            *_put_events(settings, storage),
        ],
        environment=OutcomesSettings(
            webhook_queue_url=webhook.worker.queue.queue_url,
            retry_queue_url=fax.retry.queue.queue_url if fax else "",
            channels=sorted({*settings.channels, *(["fax"] if fax else []), "webhook"}),
            # The next two settings are not used without fax.
            max_attempts=section.max_attempts if section else 1,
            retry_delay_seconds=section.retry_delay_seconds if section else 0,
            **_events(settings),
        ),
    )


def index_messages(
    settings: Settings, search: Search, storage: MailboxStack, campaigns: Sequence[EnabledCampaign]
) -> StreamWork:
    """Return the specification of the function `index-messages`, which reads the ledger's stream for search.
    Search has its own function, so that its errors do not delay callbacks and further attempts of faxes.
    DynamoDB recommends at most two readers of a stream
    (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html)."""
    stop_at = {
        campaign.name: campaign.chosen.stop_at for campaign in sorted(campaigns, key=attrgetter("name"))
    }
    filters = [
        '{"eventName":["INSERT"]}',
        # A message may have other recipients at its claim than at the beginning of its wait, and search keeps
        # rows of failed messages for longer, so both changes are indexed again.
        _changes(status=["sending", *FAILED]),
    ]
    if campaigns:  # to count the outcomes of campaigns' messages
        of_campaigns: list[object] = [{"prefix": f"{name}#"} for name in stop_at]
        filters.append(_changes(id=of_campaigns, status=[{"anything-but": [*SILENT]}]))
    return StreamWork(
        function=INDEX,
        table=storage.ledger,
        filters=filters,
        counted=settings.monitoring.is_full,
        parallelization=settings.outcomes.parallelization,
        grants=[
            *search.write(storage.ledger, counts=bool(campaigns)),
            *_pause_bad_runs(search, storage, stop_at),
        ],
        environment=IndexSettings(
            ledger_table=storage.ledger.table_name,
            **search.fields,
            campaigns=stop_at,
            runs_table=storage.runs.table_name if campaigns else "",
        ),
    )


def _pause_bad_runs(search: Search, storage: MailboxStack, stop_at: dict[str, float | None]) -> list[Grant]:
    """Return the permissions to read the counts of runs, and to pause runs, if a campaign has the setting
    `stop_at`."""
    if not any(stop_at.values()):
        return []
    return [search.read_rows(), Grant(["dynamodb:GetItem", "dynamodb:UpdateItem"], [storage.runs.table_arn])]


def _bad_runs_alarm(scope: Construct, settings: Settings) -> None:
    text = AlarmText(
        kind="run-paused",
        meaning="A campaign's run has paused itself, because too many of its messages bounced or caused "
        "complaints, for which the provider may stop the account. Its other messages wait; none of them is "
        "lost.",
        next_step=f"mailroom campaign list --stage {settings.stage} (which run is paused?)",
    )
    stage_alarm(scope, "RunPaused", settings, text, counted(settings, INDEX, "RunsPaused"), 1)


def _filters(settings: Settings, fax: FaxStack | None) -> Iterator[str]:
    """Yield the filter patterns of the ledger's changes that `outcomes` handles; Lambda does not pass it
    other changes."""
    if settings.outcomes.event_bus is not None:
        # This pattern also matches everything that the following patterns match.
        yield _changes(status=[{"anything-but": [*SILENT]}])
        return
    yield _changes(callback_url=[{"exists": True}], status=[{"anything-but": [*SILENT]}])
    yield _changes(status=[*FAILED])
    if fax:
        yield _changes(event_type=["fax"], status=["retrying"])


def _changes(**attributes: list[object]) -> str:
    image = {name: {"S": patterns} for name, patterns in attributes.items()}
    pattern = {"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": image}}
    return json.dumps(pattern, separators=(",", ":"))


def _put_events(settings: Settings, stack: Stack) -> list[Grant]:
    """Return the permission to put events with this stage's source and the detail type of outcomes, as in
    AWS's example:

    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-event-bus-example-policy-cross-account-custom-bus-source.html"""
    bus = settings.outcomes.event_bus
    if bus is None:
        return []
    if not bus.startswith("arn:"):
        bus = stack.format_arn(service="events", resource="event-bus", resource_name=bus)
    conditions = {
        "ForAllValues:StringEquals": {"events:source": _event_source(settings)},
        "StringEquals": {"events:detail-type": DETAIL_TYPE},
    }
    return [Grant(["events:PutEvents"], [bus], conditions=conditions)]


def _events(settings: Settings) -> dict[str, Any]:
    bus = settings.outcomes.event_bus
    if bus is None:
        return {}
    campaigns = sorted(settings.campaigns.enabled)
    return {"event_bus": bus, "event_source": _event_source(settings), "campaigns": campaigns}


def _event_source(settings: Settings) -> str:
    return f"mailroom.{settings.stage}"


class RoutingStack(StageStack):
    """Functions `dispatch`, which reads the mailbox's stream, `outcomes` and, for the setting `search`,
    `index-messages`, which read the ledger's stream, and `release`, which queues messages after a wait."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        storage: MailboxStack,
        channels: ChannelsStack,
        fax: FaxStack | None,
        webhook: WebhookStack,
        campaigns: Sequence[EnabledCampaign],
    ) -> None:
        super().__init__(scope, settings, "routing")
        by_lane = dict(channels.workers)
        if fax:
            by_lane["fax", "normal"] = fax.worker
        by_lane["webhook", "normal"] = webhook.worker
        routes: dict[str, dict[str, str]] = {}
        for (event_type, lane), worker in by_lane.items():
            routes.setdefault(event_type, {})[lane] = worker.queue.queue_url
        reached = [*by_lane.values(), *([fax.retry] if fax else [])]
        grants = [
            Grant(["sqs:SendMessage"], [worker.queue.queue_arn for worker in reached]),
            Grant(["dynamodb:UpdateItem", "dynamodb:PartiQLInsert"], [storage.ledger.table_arn]),
            *read_templates(self, settings, CURRENT),
        ]
        fields: dict[str, Any] = {
            **storage.common,
            "routes": routes,
            # Queues that delay messages, for channels whose own queue cannot.
            "delayed_routes": {"fax": fax.retry.queue.queue_url} if fax else {},
            "default_region": settings.default_region,
            "callback_schemes": settings.url_schemes,
            "callback_ports": settings.webhook.allowed_ports,
            "templates_bucket": templates_bucket(settings),
            "unknown": settings.items.unknown,
        }
        dispatch = StreamWork(
            function="dispatch",
            parallelization=settings.dispatch.parallelization,
            table=storage.mailbox,
            filters=['{"eventName":["INSERT"]}'],
            # At every level: a record that is given up here is a message that nobody sends. One mapping's
            # metrics are within the ten free metrics of an account.
            counted=True,
            grants=grants,
            environment=DispatchSettings(**fields),
        )
        self.dispatch = StreamReader(self, settings, dispatch)
        work = outcomes(settings, storage, webhook, fax)
        self.outcomes = StreamReader(self, settings, work, self.dispatch.unprocessed)
        if storage.search:
            work = index_messages(settings, storage.search, storage, campaigns)
            StreamReader(self, settings, work, self.dispatch.unprocessed)
            if any(campaign.chosen.stop_at for campaign in campaigns):
                _bad_runs_alarm(self, settings)
        lines = [worker.queue.queue_arn for (_, lane), worker in by_lane.items() if lane == "bulk"]
        Release(self, settings, storage, fields, grants, lines)
        self.workers = reached
        """Workers of the queues to which `dispatch` sends messages."""
