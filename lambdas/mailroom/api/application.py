"""The API as its function's settings describe it."""

import time
from collections.abc import Mapping
from typing import Any

from mailroom.api.intake import Intake
from mailroom.api.paths import routable
from mailroom.api.routes import routes_of
from mailroom.api.states import States
from mailroom.aws import clients
from mailroom.channels.contracts import contracts_of
from mailroom.clock import Clock
from mailroom.content.payloads import Payloads
from mailroom.dispatch.validator import Admission
from mailroom.environment import MessagesApi as Settings
from mailroom.http.url_policy import UrlPolicy
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.reader import LedgerReader
from mailroom.mailbox.oversize import Oversize
from mailroom.mailbox.writer import MailboxWriter

UNDELAYED = frozenset(("fax",))
"""Channels whose queue cannot delay a message: dispatch keeps an attribute of theirs to itself."""


class Application:
    """Answers the requests of an HTTP API (payload format 2.0)."""

    def __init__(self, settings: Settings, clock: Clock = time.time) -> None:
        self._api = routes_of(settings, _intake(settings, clock), _states(settings, clock))

    def answer(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """The response to one request."""
        return self._api.resolve(routable(event), context)


def _intake(settings: Settings, clock: Clock) -> Intake:
    admission = Admission(
        contracts_of(settings.default_region),
        settings.lanes,
        payloads=Payloads(clients.s3(), settings.payload_bucket),
        callbacks=UrlPolicy(schemes=settings.callback_schemes, ports=settings.callback_ports),
        clock=clock,
        waiting=UNDELAYED & settings.lanes.keys(),
    )
    oversize = Oversize(
        clients.s3(), lambda: settings.payload_bucket, settings.payload_ttl_seconds or None, clock=clock
    )
    writer = MailboxWriter(
        clients.dynamodb(),
        settings.mailbox_table,
        settings.mailbox_ttl_seconds,
        oversize=oversize,
        clock=clock,
    )
    return Intake(admission, writer)


def _states(settings: Settings, clock: Clock) -> States:
    reader = LedgerReader(clients.dynamodb(), settings.ledger_table, settings.mailbox_table, clock)
    return States(reader, Ledger.of(settings), contracts_of(settings.default_region), clock)
