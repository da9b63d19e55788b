"""The functions `collect` and `compose`, made of their settings."""

from collections.abc import Mapping
from pathlib import Path

from mailroom.aws import clients
from mailroom.campaigns.audience import Connections
from mailroom.campaigns.collector import Collector
from mailroom.campaigns.composer import Composer
from mailroom.campaigns.definition import Modules, read
from mailroom.campaigns.drafts import Drafter
from mailroom.campaigns.runs import Runs
from mailroom.campaigns.sources import Sources
from mailroom.channels.contracts import contracts_of
from mailroom.environment import Collect, Compose, Database
from mailroom.ledger.ledger import Ledger
from mailroom.mailbox.writer import MailboxWriter
from mailroom.recipients.preferences import Preferences


def collector_of(settings: Collect) -> Collector:
    """The function `collect`."""
    return Collector(
        read(Path(settings.campaigns)),
        Sources(Modules()),
        Runs(
            clients.dynamodb(),
            settings.runs_table,
            lease=settings.lease_seconds,
            ttl=settings.run_ttl_seconds,
        ),
        sqs=clients.sqs(),
        queue_url=settings.queue_url,
        audience_queue_url=settings.audience_queue_url,
        databases=databases_of(settings.databases),
    )


def composer_of(settings: Compose) -> Composer:
    """The function `compose`."""
    drafter = Drafter(
        Modules(),
        Preferences.of(settings.preferences_table),
        contracts_of(settings.default_region),
        databases_of(settings.databases),
    )
    return Composer(
        read(Path(settings.campaigns)),
        drafter,
        mailbox=MailboxWriter(clients.dynamodb(), settings.mailbox_table, settings.mailbox_ttl_seconds),
        ledger=Ledger.of(settings),
        runs=Runs(clients.dynamodb(), settings.runs_table, ttl=settings.run_ttl_seconds),
        sqs=clients.sqs(),
        queue_url=settings.queue_url,
    )


def databases_of(settings: Mapping[str, Database]) -> Connections | None:
    """The stage's databases; None: the settings name none, and the time to load psycopg is saved."""
    if not settings:
        return None
    from mailroom.campaigns.databases import Databases

    return Databases(settings, clients.secretsmanager())
