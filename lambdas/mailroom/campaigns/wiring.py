"""Collect and compose as a function's settings describe them, each made once a process."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mailroom.aws import clients
from mailroom.campaigns import dry_run
from mailroom.campaigns.collector import Collector
from mailroom.campaigns.composer import Composer
from mailroom.campaigns.databases import Databases
from mailroom.campaigns.definition import read
from mailroom.campaigns.drafts import Drafter
from mailroom.campaigns.items import Items
from mailroom.campaigns.modules import Modules
from mailroom.campaigns.runs import Runs
from mailroom.campaigns.sources import Sources
from mailroom.channels.contracts import contracts_of
from mailroom.environment import Collect, Compose
from mailroom.ledger.ledger import Ledger
from mailroom.mailbox import MailboxWriter
from mailroom.recipients.choices import Preferences


class Collecting:
    """The function `collect`."""

    def __init__(self, settings: Collect) -> None:
        self._campaigns = read(Path(settings.campaigns))
        self._databases = Databases(settings.databases, clients.secretsmanager())
        self._sources = Sources(Modules(), self._databases)
        self.collector = Collector(
            self._campaigns,
            self._sources,
            Runs(
                clients.dynamodb(),
                settings.runs_table,
                lease=settings.lease_seconds,
                ttl=settings.run_ttl_seconds,
            ),
            sqs=clients.sqs(),
            queue_url=settings.queue_url,
            audience_queue_url=settings.audience_queue_url,
            databases=self._databases,
        )

    def dry_run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A page of an operator's dry run: see `dry_run.counted`."""
        return dry_run.counted(request, self._campaigns, self._sources, self._databases)


class Composing:
    """The function `compose`."""

    def __init__(self, settings: Compose) -> None:
        self._campaigns = read(Path(settings.campaigns))
        contracts = contracts_of(settings.default_region)
        self._drafter = Drafter(
            Modules(),
            Items(contracts),
            Preferences.of(settings.preferences_table),
            contracts,
            Databases(settings.databases, clients.secretsmanager()),
        )
        self.composer = Composer(
            self._campaigns,
            self._drafter,
            mailbox=MailboxWriter(clients.dynamodb(), settings.mailbox_table, settings.mailbox_ttl_seconds),
            ledger=Ledger.of(settings),
            runs=Runs(clients.dynamodb(), settings.runs_table, ttl=settings.run_ttl_seconds),
            sqs=clients.sqs(),
            queue_url=settings.queue_url,
        )

    def dry_run(self, request: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        """The items that an operator's dry run shows: see `dry_run.composed`."""
        return dry_run.composed(request, self._campaigns, self._drafter, remaining)
